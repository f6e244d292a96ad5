//! `/s/{token}`, `/s/{token}/unlock` and `/s/{token}/content`: shares, for people.
//!
//! The token is checked first, and an unknown one costs nothing more. The record of the share is read for every request, so
//! a change of it is in force at once.

mod content;
mod cookie;
mod descriptor;
mod path;
mod refusal;
mod reply;
mod unlock;
mod visit;

use crate::public::links::PublicLinks;
use crate::public::negotiation::{Language, prefers_page};
use crate::public::page::{Message, PasswordProblem, render_locked, render_message};
use crate::types::link::{LinkKind, LinkStatus};
use crate::types::share::Share;
use crate::types::token::CapabilityToken;
use cairn_http1::{Method, RequestHead};
use cairn_net::{Request, RequestBody, Response};
use path::SharePage;
use refusal::Refusal;
use reply::{ShareReply, request_id};
use visit::Visit;

pub(crate) use reply::error_body;

impl PublicLinks {
    /// Returns whether a path belongs to shares.
    #[must_use]
    pub fn is_share_path(path: &str) -> bool {
        path::is_share_path(path)
    }

    /// Answers a request whose path belongs to shares.
    pub async fn answer_share(&self, request: &Request, body: &mut RequestBody<'_>) -> Response {
        let id = request_id(request);
        let is_head = *request.head.method() == Method::HEAD;
        let found = path::parse(request.head.path());
        let page = found.map(|(_, page)| page);
        let (reply, error_code) = match self.share_reply(request, id, found, body).await {
            Ok(reply) => (reply, None),
            Err(refused) => {
                if let Some(reason) = refused.reason() {
                    self.sharing.count_denied(LinkKind::Share, reason);
                }
                (refuse(&request.head, found, &refused, id), Some(refused.code()))
            }
        };
        reply.into_response(page, id, is_head, error_code)
    }

    async fn share_reply(
        &self,
        request: &Request,
        id: &str,
        found: Option<(&str, SharePage)>,
        body: &mut RequestBody<'_>,
    ) -> Result<ShareReply, Refusal> {
        let (text, page) = found.ok_or(Refusal::NotFound)?;
        let method = request.head.method();
        let is_allowed = match page {
            SharePage::Descriptor | SharePage::Content => *method == Method::GET || *method == Method::HEAD,
            SharePage::Unlock => *method == Method::POST,
        };
        let is_reload = page == SharePage::Unlock && *method == Method::GET && prefers_page(&request.head);
        if !is_allowed && !is_reload {
            return Err(Refusal::MethodNotAllowed(page.methods()));
        }
        let token = CapabilityToken::parse(text).ok_or(Refusal::NotFound)?;
        let share = self.sharing.find::<Share>(&token.hash())?.ok_or(Refusal::NotFound)?;
        let visit = Visit { links: self, request, id, token: &token, page, share: &share };
        match share.status_at(self.sharing.now()) {
            LinkStatus::Active => {}
            LinkStatus::Exhausted if page == SharePage::Content && content::may_continue(&visit) => {}
            status => return Err(Refusal::Gone(status)),
        }
        match page {
            SharePage::Descriptor => descriptor::descriptor(&visit).await,
            SharePage::Content => content::content(&visit).await,
            // After a wrong password, people load the address of the form again.
            SharePage::Unlock if is_reload => {
                Ok(ShareReply::see_other(visit.relative_url(SharePage::Descriptor)))
            }
            SharePage::Unlock => unlock::unlock(&visit, body).await,
        }
    }
}

/// Returns the reply to a refused request: a page for people, JSON for programs.
fn refuse(
    head: &RequestHead,
    found: Option<(&str, SharePage)>,
    refusal: &Refusal,
    request_id: &str,
) -> ShareReply {
    let page = found.map(|(_, page)| page);
    let is_form = page == Some(SharePage::Unlock) && unlock::is_form(head);
    if !prefers_page(head) && !is_form {
        return ShareReply::error(refusal, request_id).with_headers_of(refusal);
    }
    let language = Language::of(head);
    let locked = |problem| {
        let (token, page) = found.unwrap_or(("", SharePage::Descriptor));
        render_locked(language, &visit::relative_url(token, page, SharePage::Unlock), problem, false)
    };
    let message = |message| render_message(language, message);
    let html = match refusal {
        Refusal::Locked => locked(None),
        Refusal::PasswordIncorrect => locked(Some(PasswordProblem::Incorrect)),
        Refusal::TooManyAttempts { .. } => {
            locked(Some(PasswordProblem::TooManyAttempts(refusal.retry_after().unwrap_or(1))))
        }
        Refusal::NotFound => message(Message::NotFound),
        Refusal::Gone(status) => message(Message::Gone(*status)),
        Refusal::ObjectMissing => message(Message::ObjectMissing),
        Refusal::Full | Refusal::NotReady(_) | Refusal::Internal => message(Message::Unavailable),
        Refusal::CrossSite
        | Refusal::Destination
        | Refusal::Prefetch
        | Refusal::MethodNotAllowed(_)
        | Refusal::Invalid(..)
        | Refusal::PreconditionFailed
        | Refusal::RangeNotSatisfiable(_) => message(Message::Unusable),
    };
    ShareReply::page(refusal.status(), language, html).with_headers_of(refusal)
}
