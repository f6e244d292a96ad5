//! Authentication with a token or by HTTP Basic (RFC 7617).
//!
//! Tokens are the system token, the management tokens of the directory, and the scrape token of `/metrics`.
//!
//! People whom an OpenID provider has identified are callers, too.
//!
//! Secrets are compared in constant time. A name and its secret are always both compared. No error says why a
//! credential was refused.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_http1::RequestHead;
use cairn_identity::directory::{Directory, TokenId};
use cairn_identity::{Role, Standing};
use cairn_openid::Person;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::error::AdminError;

/// The authentication method of a caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AuthenticationKind {
    Token,
    Basic,
    OpenId,
}

impl AuthenticationKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Basic => "basic",
            Self::OpenId => "openid",
        }
    }
}

/// An authenticated caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Caller {
    pub(crate) standing: Standing,
    /// Name in the audit trail.
    pub(crate) principal: String,
    /// The management token that was used. The names of tokens are not unique.
    pub(crate) token: Option<TokenId>,
    /// The identity of a person at the provider. The names of people are not unique.
    pub(crate) subject: Option<Arc<str>>,
    pub(crate) authentication: AuthenticationKind,
}

impl Caller {
    /// Returns the caller that a person is.
    pub(crate) fn of_person(person: &Person) -> Self {
        Self {
            standing: person.standing.clone(),
            principal: format!("person:{}", person.name),
            token: None,
            subject: Some(person.subject.as_str().into()),
            authentication: AuthenticationKind::OpenId,
        }
    }

    /// Returns a name of the credential that no other one has.
    pub(crate) fn credential(&self) -> String {
        match (self.token, &self.subject) {
            (Some(token), _) => token.to_string(),
            (None, Some(subject)) => format!("person:{subject}"),
            (None, None) => self.principal.clone(),
        }
    }

    /// Returns what identifies the credential or the person. The names of tokens and of people are not unique.
    pub(crate) fn identity(&self) -> (&str, Option<TokenId>, Option<&str>) {
        match &self.subject {
            Some(subject) => ("", None, Some(subject)),
            None => (&self.principal, self.token, None),
        }
    }

    /// Describes the management token or the person for the audit trail; empty for root and the system token.
    pub(crate) fn audited(&self) -> String {
        match (self.token, &self.subject) {
            (Some(token), _) => format!("token {token}"),
            (None, Some(subject)) => format!("subject {subject}"),
            (None, None) => String::new(),
        }
    }
}

/// Principal of the system token.
const SYSTEM_PRINCIPAL: &str = "system";
/// Principal of the root credential.
const ROOT_PRINCIPAL: &str = "root";

/// The credentials of the configuration. Has no `Debug`, because it holds secrets. They are zeroed on drop.
#[derive(Clone)]
pub struct ManagementCredentials {
    /// The system token. The configuration ensures that it is long enough.
    pub system_token: Zeroizing<String>,
    /// The root credential's access key.
    pub root_access_key: String,
    /// The root credential's secret key.
    pub root_secret_key: Zeroizing<String>,
    /// The token of `/metrics`. Without one, `/metrics` is refused.
    pub scrape_token: Option<Zeroizing<String>>,
}

impl ManagementCredentials {
    /// Authenticates the caller of a request. Management tokens are looked up in the directory.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`.
    pub(crate) fn authenticate(
        &self,
        head: &RequestHead,
        directory: Option<&Directory>,
    ) -> Result<Caller, AdminError> {
        // A head with a repeated field was already refused.
        let value = head.header_str("authorization").ok_or(AdminError::Unauthenticated)?;
        let (scheme, credential) = value.split_once(' ').ok_or(AdminError::Unauthenticated)?;
        let credential = credential.trim_start_matches(' ');
        let known = if scheme.eq_ignore_ascii_case("bearer") {
            self.authenticate_token(credential, directory)
        } else if scheme.eq_ignore_ascii_case("basic") {
            self.by_root(credential)
        } else {
            None
        };
        known.ok_or(AdminError::Unauthenticated)
    }

    /// Returns the caller that a token belongs to.
    pub(crate) fn authenticate_token(&self, token: &str, directory: Option<&Directory>) -> Option<Caller> {
        self.by_token(token).or_else(|| by_management_token(token, directory?))
    }

    /// Returns the caller that the root credential belongs to, if it is this one.
    pub(crate) fn authenticate_root(&self, access_key: &str, secret_key: &str) -> Option<Caller> {
        let name_is_right = matches_secret(access_key.as_bytes(), &self.root_access_key);
        let secret_is_right = matches_secret(secret_key.as_bytes(), &self.root_secret_key);
        let caller = Caller {
            standing: Standing::Role(Role::SystemAdmin),
            principal: ROOT_PRINCIPAL.to_owned(),
            token: None,
            subject: None,
            authentication: AuthenticationKind::Basic,
        };
        (name_is_right & secret_is_right).then_some(caller)
    }

    /// Returns whether the request has the scrape token as its bearer token.
    pub(crate) fn is_scraper(&self, head: &RequestHead) -> bool {
        let sent = head.header_str("authorization").and_then(|value| value.split_once(' '));
        let token = sent.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let secret = self.scrape_token.as_ref().map_or("", |token| token.as_str());
        token.is_some_and(|(_, token)| matches_secret(token.trim_start_matches(' ').as_bytes(), secret))
    }

    fn by_token(&self, token: &str) -> Option<Caller> {
        let caller = Caller {
            standing: Standing::Role(Role::SystemAdmin),
            principal: SYSTEM_PRINCIPAL.to_owned(),
            token: None,
            subject: None,
            authentication: AuthenticationKind::Token,
        };
        matches_secret(token.as_bytes(), &self.system_token).then_some(caller)
    }

    fn by_root(&self, encoded: &str) -> Option<Caller> {
        let decoded = Zeroizing::new(STANDARD.decode(encoded).ok()?);
        let (access_key, secret_key) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
        self.authenticate_root(access_key, secret_key)
    }
}

/// Returns whether a request has an HTTP Basic credential, whose secret a person may have chosen.
pub(crate) fn has_basic_credential(head: &RequestHead) -> bool {
    let scheme = head.header_str("authorization").and_then(|value| value.split_once(' '));
    scheme.is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"))
}

/// Returns whether a browser says that a page of another origin sent the request.
///
/// Browsers add a stored user name and password to such requests on their own, so the user may not have wanted them.
/// They never add a token.
pub(crate) fn is_cross_site(head: &RequestHead) -> bool {
    let site = head.header_str("sec-fetch-site");
    let origin = head.header_str("origin").map(|origin| origin.rsplit("//").next().unwrap_or_default());
    site.is_some_and(|site| !matches!(site, "same-origin" | "none"))
        || origin.is_some_and(|origin| {
            head.header_str("host").is_none_or(|host| !origin.eq_ignore_ascii_case(host))
        })
}

/// Returns the caller that a valid management token belongs to.
fn by_management_token(token: &str, directory: &Directory) -> Option<Caller> {
    let found = directory.find_token(token)?;
    Some(Caller {
        standing: Standing::Role(found.role),
        principal: format!("token:{}", found.name),
        token: Some(found.id),
        subject: None,
        authentication: AuthenticationKind::Token,
    })
}

/// Compares in a time that depends only on the lengths. An empty secret matches nothing.
fn matches_secret(given: &[u8], secret: &str) -> bool {
    !secret.is_empty() && bool::from(given.ct_eq(secret.as_bytes()))
}
