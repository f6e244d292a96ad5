//! `/s/{token}`, `/s/{token}/unlock` and `/s/{token}/content`: shares, for people.
//!
//! The token is checked first, and an unknown one costs nothing more. The record of the share is read for every request, so
//! a change of it is in force at once.

mod content;
mod cookie;
mod descriptor;
mod path;
mod refusals;
mod reply;
mod unlock;
mod visit;

use crate::denied::DeniedReason;
use crate::public::links::PublicLinks;
use crate::public::negotiation::{Language, prefers_page};
use crate::public::page::{Message, PasswordProblem, render_locked, render_message};
use crate::public::refusal::Refusal;
use crate::public::reply::Reply;
use crate::types::link::{LinkKind, LinkStatus};
use crate::types::share::Share;
use crate::types::token::CapabilityToken;
use cairn_http1::{Method, RequestHead};
use cairn_net::{Request, RequestBody, Response};
use cairn_observe::client_request_id;
use path::SharePage;
use visit::Visit;

impl PublicLinks {
    /// Returns whether a path belongs to shares.
    #[must_use]
    pub fn is_share_path(path: &str) -> bool {
        path::is_share_path(path)
    }

    /// Answers a request whose path belongs to shares.
    pub async fn answer_share(&self, request: &Request, body: &mut RequestBody<'_>) -> Response {
        let id = client_request_id(request.head.header_values("x-request-id")).unwrap_or(&request.id);
        let found = path::parse(request.head.path());
        let page = found.map(|(_, page)| page);
        let (reply, error_code) = match self.share_reply(request, id, found, body).await {
            Ok(reply) => (reply, None),
            Err(refused) => {
                if let Some(reason) = refused.reason {
                    self.links.count_denied(LinkKind::Share, reason);
                }
                (refuse(&request.head, found, &refused, id), Some(refused.code))
            }
        };
        reply::response(reply, page, id, error_code)
    }

    async fn share_reply(
        &self,
        request: &Request,
        id: &str,
        found: Option<(&str, SharePage)>,
        body: &mut RequestBody<'_>,
    ) -> Result<Reply, Refusal> {
        let (text, page) = found.ok_or_else(refusals::not_found)?;
        let method = request.head.method();
        let is_allowed = match page {
            SharePage::Descriptor | SharePage::Content => *method == Method::GET || *method == Method::HEAD,
            SharePage::Unlock => *method == Method::POST,
        };
        let is_reload = page == SharePage::Unlock && *method == Method::GET && prefers_page(&request.head);
        if !is_allowed && !is_reload {
            return Err(refusals::method_not_allowed(page.methods()));
        }
        let token = CapabilityToken::parse(text).ok_or_else(refusals::not_found)?;
        let found = self.links.find::<Share>(&token.hash()).map_err(refusals::of_store)?;
        let share = found.ok_or_else(refusals::not_found)?;
        let visit = Visit { public: self, request, id, token: &token, page, share: &share };
        match share.status_at(self.links.now()) {
            LinkStatus::Active => {}
            LinkStatus::Exhausted if page == SharePage::Content && content::may_continue(&visit) => {}
            status => return Err(refusals::gone(status)),
        }
        if !self.author_allows(&share, request.client) {
            return Err(refusals::author());
        }
        match page {
            SharePage::Descriptor => descriptor::descriptor(&visit).await,
            SharePage::Content => content::content(&visit).await,
            // After a wrong password, people load the address of the form again.
            SharePage::Unlock if is_reload => {
                Ok(reply::see_other(&visit.relative_url(SharePage::Descriptor)))
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
) -> Reply {
    let page = found.map(|(_, page)| page);
    let is_form = page == Some(SharePage::Unlock) && unlock::is_form(head);
    let mut reply = if prefers_page(head) || is_form {
        let language = Language::of(head);
        reply::page(refusal.status, language, refusal_page(found, refusal, language))
    } else {
        reply::error(refusal, request_id)
    };
    refusal.write_headers(&mut reply.head);
    reply
}

/// Returns the page of a refusal.
fn refusal_page(found: Option<(&str, SharePage)>, refusal: &Refusal, language: Language) -> String {
    let problem = match refusal.reason {
        Some(DeniedReason::Locked) => None,
        Some(DeniedReason::Password) => Some(PasswordProblem::Incorrect),
        Some(DeniedReason::Attempts) => {
            Some(PasswordProblem::TooManyAttempts(refusal.retry_after.unwrap_or(1).into()))
        }
        reason => return render_message(language, Message::of(reason, refusal.status)),
    };
    let (token, page) = found.unwrap_or(("", SharePage::Descriptor));
    render_locked(language, &visit::relative_url(token, page, SharePage::Unlock), problem, false)
}
