//! Advice for the operator about a refused request, as one sentence.

use crate::compatibility::Compatibility;
use crate::errors::S3Error;
use crate::headers::encryption;
use crate::request::fields::Fields;
use crate::request::query::Query;
use crate::request::target::Target;
use crate::request::unsupported_headers;
use crate::routing::route;
use cairn_http1::RequestHead;
use cairn_identity::{ChunkedBody, PayloadDigest};
use cairn_net::Request;
use cairn_observe::{CorsMismatch, DecidingRule, RefusedRight};

/// Returns what would help; `None` if the message says it.
pub(super) fn advice(
    error: &S3Error,
    request: &Request,
    target: Option<&Target>,
    principal: Option<&str>,
    right: Option<&RefusedRight>,
    rule: Option<&DecidingRule>,
) -> Option<String> {
    let (bucket, _) = target.map(Target::recordable).unwrap_or_default();
    if let Some(right) = right {
        let (action, resource) = (right.action, right.resource());
        let principal = principal.unwrap_or_default();
        return Some(if error.hides_missing() {
            format!(
                "The object does not exist. Clients that may not list the bucket are told 403 in place of 404. To let \
                 {principal} see that it is missing, allow {action} on {resource}."
            )
        } else if right.is_denied_explicitly {
            format!(
                "A policy of {principal} denies {action} on {resource}, and a deny wins over every allow. Change that policy \
                 or detach it."
            )
        } else if right.is_for_new_objects {
            format!(
                "The policies of {principal} allow {action} with only_if_absent, which is not enough for this request. A \
                 statement without it is, and allows to overwrite objects, too."
            )
        } else {
            format!("Attach a policy to {principal} that allows {action} on {resource}.")
        });
    }
    if let Some(DecidingRule::Credential { state }) = rule {
        return Some(credential_advice(state).to_owned());
    }
    let advice = match error.code() {
        _ if error.is_about_lock() => {
            "Wait until the retention ends, or remove the legal hold. Governance retention can be bypassed with \
             x-amz-bypass-governance-retention and s3:ManageBucket."
        }
        "AccessForbidden" => return Some(cors_advice(&request.head, bucket, rule)),
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
pub(super) fn extended_advice(
    mode: Compatibility,
    error: &S3Error,
    request: &Request,
    encrypts_at_rest: bool,
) -> Option<String> {
    let is_only_in_extended = mode == Compatibility::Strict
        && error.status() == 501
        && !is_implemented(Compatibility::Strict, request, encrypts_at_rest)
        && is_implemented(Compatibility::Extended, request, encrypts_at_rest);
    is_only_in_extended.then(|| {
        "Set s3.compatibility = \"extended\" on the server: that mode implements what was requested."
            .to_owned()
    })
}

fn is_implemented(mode: Compatibility, request: &Request, encrypts_at_rest: bool) -> bool {
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
        && encryption::check(fields, encrypts_at_rest).is_ok()
}

/// Returns what helps if a credential may not be used.
fn credential_advice(state: &str) -> &'static str {
    match state {
        "account_disabled" => {
            "Enable the account (cairn service-account enable), or give the client another credential."
        }
        "credential_disabled" => {
            "Enable the credential (cairn service-account credential enable), or give the client another one."
        }
        _ => "Give the client a new credential (cairn service-account rotate, or temporary-credential).",
    }
}

/// Returns the CORS rule that a preflight needs.
fn cors_advice(head: &RequestHead, bucket: &str, rule: Option<&DecidingRule>) -> String {
    if let Some(DecidingRule::CorsRules { mismatch: Some(CorsMismatch::Bucket), .. }) = rule {
        return format!("The bucket {bucket} does not exist. Check the name of the bucket in the URL.");
    }
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
