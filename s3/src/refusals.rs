//! Records refused requests for the operator, with what would help.
//!
//! Only refusals that somebody can do something about are recorded: not that something does not exist, that a condition
//! does not hold, that a client went away, or that this server failed.

use crate::compatibility::Compatibility;
use crate::errors::{DeniedRight, S3Error};
use crate::request::fields::Fields;
use crate::request::query::Query;
use crate::request::target::Target;
use crate::request::unsupported_headers;
use crate::routing::route;
use cairn_http1::RequestHead;
use cairn_identity::{Authentication, ChunkedBody, PayloadDigest, Principal};
use cairn_model::Timestamp;
use cairn_net::Request;
use cairn_observe::{RefusedBy, RefusedRecorder, RefusedRequest, RefusedRight, paths_are_logged};
use std::sync::Arc;

/// Longest user agent that is copied, in bytes. The record is cut again.
const USER_AGENT_BYTES_MAX: usize = 256;

/// What is known of a refused request.
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
}

impl Refusal<'_> {
    /// Records the request, if it is one that an operator wants to see.
    pub(crate) fn record(self, recorder: &RefusedRecorder) {
        let Some(refused_by) = refused_by(self.error) else { return };
        let Self { request, target, operation, authentication, principal, error, now, compatibility } = self;
        let is_strict = compatibility == Compatibility::Strict;
        // Before the request is routed, the path is not known to begin with a bucket: the host may name it.
        let target = target.filter(|_| !operation.is_empty());
        let names_keys = paths_are_logged();
        let key = target.map(Target::key_text).filter(|_| names_keys).unwrap_or_default();
        recorder.record(RefusedRequest {
            time: now,
            request_id: request.id.clone(),
            client: request.client,
            user_agent: user_agent(&request.head),
            access_key: access_key(authentication, error),
            method: request.head.method().as_str().to_owned(),
            operation,
            bucket: target.map(|target| target.bucket_text().to_owned()).unwrap_or_default(),
            key: key.to_owned(),
            status: error.status(),
            code: error.code(),
            message: message(error),
            refused_by,
            right: error.denied_right().map(|right| shown_right(right, names_keys)),
            advice: extended_advice(error, request)
                .filter(|_| is_strict && target.is_some())
                .or_else(|| advice(error, request, target, principal.as_deref(), names_keys)),
            principal,
        });
    }
}

/// Returns what refused a request; `None` if nobody can do anything about it.
fn refused_by(error: &S3Error) -> Option<RefusedBy> {
    match (error.status(), error.code()) {
        // Throttled guesses of the root credential. Other clients are told to slow down for want of room.
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

/// Returns the access key of an account that was used. An unknown access key is not recorded: it may be a mistyped secret.
fn access_key(authentication: Option<&Authentication>, error: &S3Error) -> Option<String> {
    match authentication {
        Some(Authentication { principal: Principal::Account(_), access_key, .. }) => {
            Some(access_key.to_string())
        }
        Some(_) => None,
        None if error.code() == "SignatureDoesNotMatch" => {
            error.elements().iter().find(|(name, _)| *name == "AWSAccessKeyId").map(|(_, key)| key.clone())
        }
        None => None,
    }
}

/// Returns the message without what it quotes from a signature: a part of a secret that was given as an access key may be there.
fn message(error: &S3Error) -> String {
    let quotes_credential =
        matches!(error.code(), "AuthorizationHeaderMalformed" | "AuthorizationQueryParametersError");
    if !quotes_credential {
        return error.message().to_owned();
    }
    let parts = error.message().split('"').enumerate();
    parts.map(|(number, part)| if number % 2 == 0 { part } else { "\"…\"" }).collect()
}

/// Returns a right as policies name it. Without keys, the resource is all objects of the bucket.
fn shown_right(right: &DeniedRight, names_keys: bool) -> RefusedRight {
    let resource = match &right.key {
        None => format!("bucket:{}", right.bucket),
        Some(key) if names_keys => format!("bucket:{}/{key}", right.bucket),
        Some(_) => format!("bucket:{}/*", right.bucket),
    };
    let is_denied_explicitly = right.is_denied_explicitly;
    RefusedRight { action: right.action.name(), resource, is_denied_explicitly }
}

/// Returns what would help; `None` if the message says it.
fn advice(
    error: &S3Error,
    request: &Request,
    target: Option<&Target>,
    principal: Option<&str>,
    names_keys: bool,
) -> Option<String> {
    let bucket = target.map(Target::bucket_text).unwrap_or_default();
    if let Some(right) = error.denied_right() {
        let RefusedRight { action, resource, is_denied_explicitly } = shown_right(right, names_keys);
        let principal = principal.unwrap_or_default();
        return Some(if error.hides_missing() {
            format!(
                "The object does not exist. Clients that may not list the bucket are told 403 in place of 404. To let \
                 {principal} see that it is missing, allow {action} on {resource}."
            )
        } else if is_denied_explicitly {
            format!(
                "A policy of {principal} denies {action} on {resource}, and a deny wins over every allow. Change that policy \
                 or detach it."
            )
        } else {
            format!("Attach a policy to {principal} that allows {action} on {resource}.")
        });
    }
    let advice = match error.code() {
        _ if error.is_about_lock() => {
            "Wait until the retention ends, or remove the legal hold. Governance retention can be bypassed with \
             x-amz-bypass-governance-retention and s3:ManageBucket."
        }
        "AccessForbidden" => return Some(cors_advice(&request.head, bucket)),
        "QuotaExceeded" => {
            return Some(format!(
                "Raise the quota (cairn quota set {bucket} --bytes SIZE --objects NUMBER), or delete objects."
            ));
        }
        "MethodNotAllowed" => {
            let allow = error.headers().iter().find(|(name, _)| *name == "allow").map(|(_, value)| value)?;
            return Some(format!("Check bucket and key in the URL: this resource has the methods {allow}."));
        }
        "BadDigest" | "XAmzContentSHA256Mismatch" => {
            "The body was changed on its way, or the digest is that of other bytes. Look for a proxy that compresses or \
             changes bodies."
        }
        "MissingContentLength" => {
            "The client must send Content-Length, so it must know the size of the body before it begins."
        }
        "EntityTooLarge" => {
            "Let the client upload in parts: set its threshold for multipart uploads to 5 GiB or less."
        }
        "EntityTooSmall" => "Set the client's part size to 5 MiB or more.",
        "InvalidDigest" => "Send Content-MD5 as Base64 of the 16 bytes of the digest.",
        "InvalidLocationConstraint" => {
            "Set the client's region to us-east-1, or send no location constraint."
        }
        "RequestTimeout" => {
            "The client or the network stood still for longer than server.body_timeout_seconds."
        }
        "InsufficientStorage" => "Delete objects, or enlarge the file system.",
        _ => return error.advice().map(str::to_owned),
    };
    Some(advice.to_owned())
}

/// Returns the advice to change the server's mode, if only `extended` implements what was requested.
fn extended_advice(error: &S3Error, request: &Request) -> Option<String> {
    let is_only_in_extended = error.status() == 501
        && !is_implemented(Compatibility::Strict, request)
        && is_implemented(Compatibility::Extended, request);
    is_only_in_extended.then(|| {
        "Set s3.compatibility = \"extended\" on the server: that mode implements what was requested."
            .to_owned()
    })
}

fn is_implemented(mode: Compatibility, request: &Request) -> bool {
    let head = &request.head;
    let (Ok(target), Ok(query)) = (Target::parse(head.path()), Query::parse(head.query())) else {
        return false;
    };
    let headers: Vec<(&str, &[u8])> = head.headers().collect();
    let fields = Fields::new(&headers, &query);
    let chunked = fields.get("x-amz-content-sha256").and_then(ChunkedBody::parse);
    let payload = match (mode, chunked) {
        (Compatibility::Extended, Some(body)) => PayloadDigest::Chunked(body),
        _ => PayloadDigest::Unsigned,
    };
    let route = route(mode, head.method(), target.resource(), &query, fields);
    let accepted = route.accepted_body(payload);
    route.refusal(head.method()).is_none()
        && unsupported_headers::check(mode, fields, head.framing(), accepted).is_ok()
}

/// Returns the CORS rule that a preflight needs.
fn cors_advice(head: &RequestHead, bucket: &str) -> String {
    let sent = |name| head.header_str(name).unwrap_or_default();
    let (origin, method) = (sent("origin"), sent("access-control-request-method"));
    let headers = match sent("access-control-request-headers") {
        "" => String::new(),
        headers => format!(" with the headers {headers}"),
    };
    format!(
        "Add a CORS rule to the bucket {bucket} that allows the origin {origin} the method {method}{headers}."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::ErrorCode;
    use cairn_engine::EngineError;
    use cairn_identity::policy::{Action, Decision, Resource};
    use cairn_identity::{AuthError, MalformedReason};

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

    #[test]
    fn unknown_access_keys_are_not_recorded() {
        let error: S3Error =
            AuthError::UnknownAccessKey { access_key: "a mistyped secret".to_owned() }.into();
        assert_eq!(access_key(None, &error), None);
        assert!(!message(&error).contains("mistyped"));
    }

    #[test]
    fn rights_are_named_as_in_policies() {
        let right = |key: Option<&str>| DeniedRight {
            action: Action::PutObject,
            bucket: "b".to_owned(),
            key: key.map(str::to_owned),
            is_denied_explicitly: false,
        };
        let resource = |key, names_keys| shown_right(&right(key), names_keys).resource;
        assert_eq!(resource(None, true), "bucket:b");
        assert_eq!(resource(Some("k/l"), true), "bucket:b/k/l");
        assert_eq!(resource(Some("k/l"), false), "bucket:b/*");
    }
}
