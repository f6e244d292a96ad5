//! Who calls: the bearer token of the system, a management token, or the root credential by HTTP Basic (RFC 7617).
//!
//! Secrets are compared in constant time, and of a name and a secret both are always compared. Nothing here says why a
//! credential was refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_http1::RequestHead;
use cairn_identity::Role;
use cairn_identity::directory::{Directory, TokenId};
use serde::Serialize;
use subtle::ConstantTimeEq;

use crate::error::AdminError;

/// How a caller proved who it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuthenticationKind {
    Token,
    Basic,
}

/// An authenticated caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Caller {
    pub(crate) role: Role,
    /// Its name in the audit trail.
    pub(crate) principal: String,
    /// Which management token it is, for names of tokens are not unique.
    pub(crate) token: Option<TokenId>,
    pub(crate) authentication: AuthenticationKind,
}

/// The principal behind the system token.
const SYSTEM_PRINCIPAL: &str = "system";
/// The principal behind the root credential.
const ROOT_PRINCIPAL: &str = "root";

/// What callers are checked against. Has no `Debug`, for it holds secrets.
#[derive(Clone)]
pub struct ManagementCredentials {
    /// The system token; the configuration keeps it from being short.
    pub system_token: String,
    /// The root credential's access key.
    pub root_access_key: String,
    /// The root credential's secret key.
    pub root_secret_key: String,
    /// The token of `/metrics`; without one nobody gets them.
    pub scrape_token: Option<String>,
}

impl ManagementCredentials {
    /// Finds out who sent a request. Management tokens are those of the directory.
    pub(crate) fn authenticate(
        &self,
        head: &RequestHead,
        directory: Option<&Directory>,
    ) -> Result<Caller, AdminError> {
        // Repeated, the field would already have been refused with the head.
        let value = head.header_str("authorization").ok_or(AdminError::Unauthenticated)?;
        let (scheme, credential) = value.split_once(' ').ok_or(AdminError::Unauthenticated)?;
        let credential = credential.trim_start_matches(' ');
        let known = if scheme.eq_ignore_ascii_case("bearer") {
            self.by_token(credential).or_else(|| by_management_token(credential, directory?))
        } else if scheme.eq_ignore_ascii_case("basic") {
            self.by_root(credential)
        } else {
            None
        };
        known.ok_or(AdminError::Unauthenticated)
    }

    /// Whether the scrape token was sent, as a bearer token.
    pub(crate) fn is_scraper(&self, head: &RequestHead) -> bool {
        let sent = head.header_str("authorization").and_then(|value| value.split_once(' '));
        let token = sent.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let secret = self.scrape_token.as_deref().unwrap_or_default();
        token.is_some_and(|(_, token)| is_secret(token.trim_start_matches(' ').as_bytes(), secret))
    }

    fn by_token(&self, token: &str) -> Option<Caller> {
        let caller = Caller {
            role: Role::SystemAdmin,
            principal: SYSTEM_PRINCIPAL.to_owned(),
            token: None,
            authentication: AuthenticationKind::Token,
        };
        is_secret(token.as_bytes(), &self.system_token).then_some(caller)
    }

    fn by_root(&self, encoded: &str) -> Option<Caller> {
        let decoded = STANDARD.decode(encoded).ok()?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        let name_is_right = is_secret(&decoded[..colon], &self.root_access_key);
        let secret_is_right = is_secret(&decoded[colon + 1..], &self.root_secret_key);
        let caller = Caller {
            role: Role::SystemAdmin,
            principal: ROOT_PRINCIPAL.to_owned(),
            token: None,
            authentication: AuthenticationKind::Basic,
        };
        (name_is_right & secret_is_right).then_some(caller)
    }
}

/// Whether a request carries a credential whose secret a person may have chosen.
pub(crate) fn is_guessable(head: &RequestHead) -> bool {
    let scheme = head.header_str("authorization").and_then(|value| value.split_once(' '));
    scheme.is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"))
}

/// Whether a browser says that a page of another origin sent the request. A browser adds a stored user name and password to
/// such requests by itself, so they must not be taken for what the user wanted; a token it never adds.
pub(crate) fn is_cross_site(head: &RequestHead) -> bool {
    let site = head.header_str("sec-fetch-site");
    let origin = head.header_str("origin").map(|origin| origin.rsplit("//").next().unwrap_or_default());
    site.is_some_and(|site| !matches!(site, "same-origin" | "none"))
        || origin.is_some_and(|origin| {
            head.header_str("host").is_none_or(|host| !origin.eq_ignore_ascii_case(host))
        })
}

/// The caller behind a management token that has not expired.
fn by_management_token(token: &str, directory: &Directory) -> Option<Caller> {
    let found = directory.find_token(token)?;
    Some(Caller {
        role: found.role,
        principal: format!("token:{}", found.name),
        token: Some(found.id),
        authentication: AuthenticationKind::Token,
    })
}

/// Compares in a time that depends on the lengths alone. An empty secret matches nothing.
fn is_secret(given: &[u8], secret: &str) -> bool {
    !secret.is_empty() && bool::from(given.ct_eq(secret.as_bytes()))
}
