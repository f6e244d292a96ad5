//! One request for a share, and what may be done with it.

use super::cookie;
use super::path::SharePage;
use super::refusals;
use crate::downloads::Visitor;
use crate::public::links::PublicLinks;
use crate::public::refusal::Refusal;
use crate::types::link::LinkKind;
use crate::types::share::Share;
use crate::types::token::CapabilityToken;
use cairn_http1::Method;
use cairn_net::Request;
use cairn_observe::{AuditRecord, AuditResult, Source};

/// The header with an unlock token.
const UNLOCK_HEADER: &str = "x-service-unlock";

/// A request whose path names a share.
pub(crate) struct Visit<'r> {
    pub(crate) public: &'r PublicLinks,
    pub(crate) request: &'r Request,
    /// The id of the request, for the response, the log and the audit trail.
    pub(crate) id: &'r str,
    /// The token, which is the one of the share.
    pub(crate) token: &'r CapabilityToken,
    /// The wanted part of the share.
    pub(crate) page: SharePage,
    pub(crate) share: &'r Share,
}

/// The access of a visitor to a share's object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// The share has no password.
    Open,
    /// The visitor has given the password. Holds what identifies the visitor.
    Unlocked([u8; 16]),
    /// The password is missing.
    Locked,
}

impl Visit<'_> {
    /// Returns whether the visitor may see the object: by the header, or else by the cookie.
    pub(crate) fn access(&self) -> Access {
        if !self.share.is_password_protected() {
            return Access::Open;
        }
        let head = &self.request.head;
        let cookies = cookie::sent(head, self.share.link.id);
        let mut tokens = head.header_str(UNLOCK_HEADER).into_iter().chain(cookies);
        let found = tokens.find_map(|token| self.public.links.check_unlock(self.share, token));
        found.map_or(Access::Locked, Access::Unlocked)
    }

    /// Returns whether the request carries anything that could unlock the share.
    pub(crate) fn has_unlock(&self) -> bool {
        let head = &self.request.head;
        head.header(UNLOCK_HEADER).is_some() || !cookie::sent(head, self.share.link.id).is_empty()
    }

    /// Returns the visitor, for the count of downloads.
    ///
    /// # Errors
    /// The share is locked.
    pub(crate) fn visitor(&self) -> Result<Visitor, Refusal> {
        let unlock = match self.access() {
            Access::Open => None,
            Access::Unlocked(unlock) => Some(unlock),
            Access::Locked => return Err(refusals::locked()),
        };
        Ok(Visitor::new(self.request.client, unlock))
    }

    /// Returns the absolute URL of the share.
    pub(crate) fn url(&self) -> String {
        let host = self.request.head.header_str("host");
        self.public.links.url(LinkKind::Share, self.token, host)
    }

    /// Returns the URL of another page of the share, relative to this one, so that it works behind every proxy.
    pub(crate) fn relative_url(&self, page: SharePage) -> String {
        relative_url(self.token.expose(), self.page, page)
    }

    pub(crate) fn is_head(&self) -> bool {
        *self.request.head.method() == Method::HEAD
    }

    /// Records something that the visitor was refused or that failed. Never waits.
    pub(crate) fn audit(&self, source: Source<'_>, result: AuditResult, resource: String, detail: String) {
        let record = AuditRecord { detail, ..self.audit_record(result, resource) };
        self.public.audit.offer(source, record);
    }

    /// Returns a record of this request.
    pub(crate) fn audit_record(&self, result: AuditResult, resource: String) -> AuditRecord {
        AuditRecord {
            resource,
            source_ip: Some(self.request.client),
            request_id: self.id.to_owned(),
            ..AuditRecord::new(AuditRecord::ANONYMOUS, self.page.operation(), result)
        }
    }
}

/// Returns the URL of a page of a share, relative to another one.
pub(crate) fn relative_url(token: &str, from: SharePage, to: SharePage) -> String {
    let name = match to {
        SharePage::Descriptor => "",
        SharePage::Unlock => "unlock",
        SharePage::Content => "content",
    };
    match (from, to) {
        (SharePage::Descriptor, SharePage::Descriptor) => token.to_owned(),
        (SharePage::Descriptor, _) => format!("{token}/{name}"),
        (_, SharePage::Descriptor) => format!("../{token}"),
        (_, _) => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{SharePage, relative_url};

    #[test]
    fn relative_urls_lead_from_each_page_to_each_other() {
        use SharePage::{Content, Descriptor, Unlock};
        for (from, to, expected) in [
            (Descriptor, Descriptor, "T"),
            (Descriptor, Unlock, "T/unlock"),
            (Unlock, Descriptor, "../T"),
            (Unlock, Unlock, "unlock"),
            (Unlock, Content, "content"),
            (Content, Unlock, "unlock"),
        ] {
            assert_eq!(relative_url("T", from, to), expected);
        }
    }
}
