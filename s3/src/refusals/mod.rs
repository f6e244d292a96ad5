//! Records refused requests for the operator, with what would help.
//!
//! Only refusals that somebody can do something about are recorded: not that something does not exist, that a condition
//! does not hold, that a client went away, or that this server failed.

mod advice;
mod rule;

use crate::compatibility::Compatibility;
use crate::errors::{DeniedRight, S3Error};
use crate::request::target::Target;
use advice::{advice, extended_advice};
use cairn_engine::Engine;
use cairn_http1::RequestHead;
use cairn_identity::{Authentication, Authenticator, Credentials, Principal, Usability};
use cairn_model::Timestamp;
use cairn_net::Request;
use cairn_observe::{
    DecidingRule, RefusedAccount, RefusedBy, RefusedRecorder, RefusedRequest, RefusedRight, RefusingSetting,
    RightsMark, paths_are_logged,
};
use rule::deciding_rule;
use std::sync::Arc;

/// The text of a 501 that another mode would answer.
const EXTENDED_IMPLEMENTS: &str =
    "With the setting s3.compatibility = \"extended\" the server implements it.";

/// Longest user agent that is copied, in bytes. The record is cut again.
const USER_AGENT_BYTES_MAX: usize = 256;

/// A refused request, with what is known of it.
pub(crate) struct Refusal<'a> {
    pub(crate) request: &'a Request,
    pub(crate) target: Option<&'a Target>,
    /// Empty if the request was refused before it was routed.
    pub(crate) operation: &'static str,
    pub(crate) authentication: Option<&'a Authentication>,
    /// The name in the request log.
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) error: &'a S3Error,
    pub(crate) now: Timestamp,
    /// The mode of the server.
    pub(crate) compatibility: Compatibility,
    /// The engine in which the rule that decided is looked up.
    pub(crate) engine: &'a Engine,
    /// The authenticator in which the credential that was not accepted is looked up.
    pub(crate) authenticator: &'a Authenticator<Box<dyn Credentials>>,
}

impl Refusal<'_> {
    /// Records the request, if it is one that an operator wants to see.
    pub(crate) fn record(self, recorder: &RefusedRecorder) {
        let Some(refused_by) = refused_by(self.error) else { return };
        let Self {
            request,
            target,
            operation,
            authentication,
            principal,
            error,
            now,
            compatibility,
            engine,
            authenticator,
        } = self;
        // Before the request is routed, the path is not known to begin with a bucket: the host may name it.
        let target = target.filter(|_| !operation.is_empty());
        let names_keys = paths_are_logged();
        let (bucket, key) = target.map(Target::recordable).unwrap_or_default();
        let key = if names_keys { key } else { "" };
        // A right contains the key.
        let right = error.denied_right().filter(|_| target.is_none_or(|target| !target.has_token()));
        let right = right.map(|right| refused_right(right, authentication, names_keys));
        let failed = failed_credential(authenticator, authentication, error);
        let rule = match failed {
            Some((_, usability)) => unusable(usability),
            None => deciding_rule(refused_by, error, engine, compatibility, target, &request.head),
        };
        let other_mode = target
            .and_then(|_| extended_advice(compatibility, error, request, engine.store().encrypts_at_rest()));
        let setting = refusing_setting(error, other_mode.is_some());
        recorder.record(RefusedRequest {
            time: now,
            request_id: request.id.clone(),
            client: request.client,
            user_agent: user_agent(&request.head),
            access_key: access_key(authentication, failed),
            method: request.head.method().as_str().to_owned(),
            operation,
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            status: error.status(),
            code: error.code(),
            message: message(error),
            refused_by,
            advice: other_mode.or_else(|| {
                advice(error, request, target, principal.as_deref(), right.as_ref(), rule.as_ref())
            }),
            right,
            rule,
            setting,
            principal,
        });
    }
}

/// Adds to a 501 of the mode `strict` that the other mode implements what was requested, if it does. Clients show the
/// message to people who do not see the operator's records.
pub(crate) fn naming_mode(
    error: S3Error,
    (mode, engine): (Compatibility, &Engine),
    request: &Request,
    target: Option<&Target>,
) -> S3Error {
    let is_named = error.status() == 501 && error.setting() == Some(RefusingSetting::Compatibility);
    let at_rest = engine.store().encrypts_at_rest();
    if is_named || target.is_some_and(|_| extended_advice(mode, &error, request, at_rest).is_some()) {
        let message = format!("{} {EXTENDED_IMPLEMENTS}", error.message());
        return error.saying(message);
    }
    error
}

/// Classifies a refusal; `None` if the operator cannot act on it.
fn refused_by(error: &S3Error) -> Option<RefusedBy> {
    match (error.status(), error.code()) {
        // Throttled guesses of the root credential, which are 503 too. Other 503s mean that a queue was full.
        _ if error.is_about_signature() && error.status() != 501 => Some(RefusedBy::Authentication),
        (_, "QuotaExceeded") => Some(RefusedBy::Quota),
        (_, "AccessForbidden") => Some(RefusedBy::CorsRules),
        (_, "ClientDisconnected" | "IncompleteBody") => None,
        (409, "InvalidBucketState") => Some(RefusedBy::Request),
        (404 | 409 | 412 | 416, _) => None,
        (400..=499, _) if error.is_about_lock() => Some(RefusedBy::ObjectLock),
        (400..=499, _) if error.denied_because().is_some() => Some(RefusedBy::Policy),
        (400..=499, _) => Some(RefusedBy::Request),
        (501, _) => Some(RefusedBy::NotImplemented),
        (507, _) => Some(RefusedBy::Storage),
        _ => None,
    }
}

fn user_agent(head: &RequestHead) -> String {
    let sent = head.header("user-agent").unwrap_or_default();
    String::from_utf8_lossy(&sent[..sent.len().min(USER_AGENT_BYTES_MAX)]).into_owned()
}

/// Returns the access key of an account that was not accepted, and whether its credential may be used. An access key that
/// no account has is not returned: it may be a mistyped secret.
fn failed_credential<'e>(
    authenticator: &Authenticator<Box<dyn Credentials>>,
    authentication: Option<&Authentication>,
    error: &'e S3Error,
) -> Option<(&'e str, Usability)> {
    if authentication.is_some() || !error.is_about_signature() {
        return None;
    }
    let (_, access_key) = error.elements().iter().find(|(name, _)| *name == "AWSAccessKeyId")?;
    Some((access_key, authenticator.usability(access_key)?))
}

/// Returns the rule for a credential that may not be used.
const fn unusable(usability: Usability) -> Option<DecidingRule> {
    let state = match usability {
        Usability::Usable => return None,
        Usability::AccountDisabled => "account_disabled",
        Usability::CredentialDisabled => "credential_disabled",
        Usability::CredentialExpired => "credential_expired",
    };
    Some(DecidingRule::Credential { state })
}

/// Returns the access key of an account that was used.
fn access_key(authentication: Option<&Authentication>, failed: Option<(&str, Usability)>) -> Option<String> {
    match authentication {
        Some(Authentication { principal: Principal::Account(_), access_key, .. }) => {
            Some(access_key.to_string())
        }
        Some(_) => None,
        None => failed.map(|(access_key, _)| access_key.to_owned()),
    }
}

/// Returns the message without what it quotes from a signature: a part of a secret that was given as an access key may be
/// there.
fn message(error: &S3Error) -> String {
    let quotes_credential =
        matches!(error.code(), "AuthorizationHeaderMalformed" | "AuthorizationQueryParametersError");
    if !quotes_credential {
        return error.message().to_owned();
    }
    let parts = error.message().split('"').enumerate();
    parts.map(|(number, part)| if number % 2 == 0 { part } else { "\"…\"" }).collect()
}

/// Returns the right that is missing, with the account whose policies decided.
fn refused_right(
    right: &DeniedRight,
    authentication: Option<&Authentication>,
    shows_key: bool,
) -> RefusedRight {
    let account = match authentication.map(|found| &found.principal) {
        Some(Principal::Account(account)) => {
            Some(RefusedAccount { id: account.id.to_string(), rights: RightsMark::of(&account.rights) })
        }
        Some(Principal::Root | Principal::Anonymous) | None => None,
    };
    let DeniedRight { action, bucket, key, is_denied_explicitly, is_for_new_objects } = right;
    RefusedRight {
        action: action.name(),
        bucket: bucket.clone(),
        key: key.clone(),
        shows_key,
        is_denied_explicitly: *is_denied_explicitly,
        is_for_new_objects: *is_for_new_objects,
        account,
    }
}

/// Returns the key of the configuration that would change the answer.
fn refusing_setting(error: &S3Error, extended_would_help: bool) -> Option<RefusingSetting> {
    match error.code() {
        _ if extended_would_help => Some(RefusingSetting::Compatibility),
        "RequestTimeout" => Some(RefusingSetting::BodyTimeout),
        "InsufficientStorage" => Some(RefusingSetting::ReserveBytes),
        _ => error.setting(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::ErrorCode;
    use cairn_engine::EngineError;
    use cairn_identity::policy::{Action, Decision, Resource};
    use cairn_identity::{AuthError, Generation, MalformedReason};

    fn by(error: impl Into<S3Error>) -> Option<&'static str> {
        refused_by(&error.into()).map(RefusedBy::name)
    }

    #[test]
    fn refusals_that_somebody_can_change_are_recorded() {
        for (error, expected) in [
            (S3Error::not_implemented("no"), Some("not_implemented")),
            (AuthError::NoAuthentication.into(), Some("authentication")),
            (AuthError::TooManyFailures.into(), Some("authentication")),
            (
                S3Error::denied(Action::GetObject, Resource::Bucket("b"), Decision::DeniedImplicitly),
                Some("policy"),
            ),
            (EngineError::ObjectLocked.into(), Some("object_lock")),
            (EngineError::QuotaExceeded.into(), Some("quota")),
            (EngineError::StorageFull.into(), Some("storage")),
            (EngineError::InvalidBucketState.into(), Some("request")),
            (ErrorCode::MissingContentLength.into(), Some("request")),
            (ErrorCode::BadDigest.into(), Some("request")),
            (ErrorCode::AccessForbidden.into(), Some("cors_rules")),
        ] {
            assert_eq!(refused_by(&error).map(RefusedBy::name), expected, "{}", error.code());
        }
        for code in ErrorCode::ALL {
            let status = code.row().status;
            let is_ordinary = matches!(status, 404 | 412 | 416 | 500 | 503);
            assert!(!is_ordinary || by(*code).is_none(), "{}", code.row().code);
        }
        for silent in [ErrorCode::ClientDisconnected, ErrorCode::IncompleteBody, ErrorCode::BucketNotEmpty] {
            assert_eq!(by(silent), None);
        }
    }

    /// A secret key in place of an access key, with slashes: its parts were in the message.
    #[test]
    fn messages_do_not_quote_credentials() {
        let error =
            AuthError::HeaderMalformed(MalformedReason::CredentialDate("part/of a secret".to_owned()));
        let shown = message(&error.clone().into());
        assert!(error.message().contains("part/of a secret") && !shown.contains("secret"), "{shown}");
        assert!(shown.contains("incorrect date format"), "{shown}");
        let plain = S3Error::invalid_request("Say \"please\".");
        assert_eq!(message(&plain), "Say \"please\".");
    }

    /// Has one account, whose credential is disabled.
    struct OneDisabled;

    impl Credentials for OneDisabled {
        fn find(&self, _: &str, _: Timestamp) -> Option<cairn_identity::Credential> {
            None
        }

        fn version(&self) -> u64 {
            0
        }

        fn principal(&self, _: &str, _: Generation) -> Option<Principal> {
            None
        }

        fn usability(&self, access_key: &str) -> Option<Usability> {
            (access_key == "AKKNOWN").then_some(Usability::CredentialDisabled)
        }
    }

    #[test]
    fn access_keys_of_accounts_are_recorded_and_unknown_ones_are_not() {
        let authenticator = Authenticator::new(Box::new(OneDisabled) as Box<dyn Credentials>);
        let refused = |access_key: &str| -> S3Error {
            AuthError::UnknownAccessKey { access_key: access_key.to_owned() }.into()
        };
        let (known, unknown) = (refused("AKKNOWN"), refused("a mistyped secret"));
        assert_eq!(failed_credential(&authenticator, None, &unknown), None);
        assert!(!message(&unknown).contains("mistyped"));
        let failed = failed_credential(&authenticator, None, &known);
        assert_eq!(failed, Some(("AKKNOWN", Usability::CredentialDisabled)));
        assert_eq!(access_key(None, failed).as_deref(), Some("AKKNOWN"));
        assert_eq!(access_key(None, None), None);
        let rule = unusable(Usability::CredentialDisabled);
        assert_eq!(rule, Some(DecidingRule::Credential { state: "credential_disabled" }));
        assert_eq!(unusable(Usability::Usable), None);
    }

    #[test]
    fn settings_that_would_help_are_named() {
        for (error, expected) in [
            (ErrorCode::RequestTimeout.into(), Some(RefusingSetting::BodyTimeout)),
            (EngineError::StorageFull.into(), Some(RefusingSetting::ReserveBytes)),
            (AuthError::DataPlaneRefused.into(), Some(RefusingSetting::RootS3Enabled)),
            (AuthError::NoAuthentication.into(), None),
            (
                S3Error::not_implemented("no").setting_at(RefusingSetting::BaseHosts),
                Some(RefusingSetting::BaseHosts),
            ),
            (EngineError::QuotaExceeded.into(), None),
        ] {
            assert_eq!(refusing_setting(&error, false), expected, "{}", error.code());
        }
        let strict = S3Error::not_implemented("no");
        assert_eq!(refusing_setting(&strict, true), Some(RefusingSetting::Compatibility));
    }
}
