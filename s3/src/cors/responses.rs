//! Responses to CORS preflights, and the CORS headers of other responses.
//!
//! A preflight is answered before authentication, because browsers never sign one. Missing buckets and buckets without
//! rules are therefore refused in the same words: only authenticated clients may learn which buckets exist.

use crate::compatibility::Compatibility;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::reply::Reply;
use crate::request::target::Target;
use cairn_cors::{Admission, CrossOrigin, METHODS, Rules};
use cairn_engine::Engine;
use cairn_http1::{RequestHead, ResponseHead, StatusCode};

const ORIGIN: &str = "origin";
const REQUEST_METHOD: &str = "access-control-request-method";
const REQUEST_HEADERS: &str = "access-control-request-headers";
/// The request headers on which responses depend if a bucket has rules.
const VARY: &str = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";

const NO_ORIGIN: &str = "Insufficient information. Origin request header needed.";
/// Also the message for a missing bucket.
const NO_RULES: &str = "CORSResponse: CORS is not enabled for this bucket.";
const NO_MATCH: &str = "CORSResponse: This CORS request is not allowed. This is usually because the evalution of \
                        Origin, request method / Access-Control-Request-Method or Access-Control-Request-Headers are \
                        not whitelisted by the resource's CORS spec.";

/// Answers a preflight (AWS: OPTIONS object).
///
/// # Errors
/// `BadRequest` without an origin, or without a method; `AccessForbidden` if no rule allows the request. In the mode
/// `extended`, a method that no rule can name is `BadRequest` too, and a bucket without rules allows none, with or without
/// a method.
pub(crate) fn preflight(
    engine: &Engine,
    mode: Compatibility,
    target: &Target,
    head: &RequestHead,
) -> S3Result<Reply> {
    let origin = head.header_str(ORIGIN).filter(|origin| !origin.is_empty());
    let origin = origin.ok_or_else(|| S3Error::with_message(ErrorCode::BadRequest, NO_ORIGIN))?;
    let method = head.header_str(REQUEST_METHOD).filter(|method| !method.is_empty());
    let invalid_method = || {
        let named = method.unwrap_or("null");
        S3Error::with_message(
            ErrorCode::BadRequest,
            format!("Invalid Access-Control-Request-Method: {named}"),
        )
    };
    if method.is_none() && mode == Compatibility::Strict {
        return Err(invalid_method());
    }
    let forbidden = |message, resource| {
        S3Error::with_message(ErrorCode::AccessForbidden, message)
            .element("Method", method.unwrap_or("OPTIONS"))
            .element("ResourceType", resource)
    };
    let bucket = target.bucket().ok().and_then(|name| engine.store().bucket(&name));
    let settings = bucket.map(|bucket| bucket.settings());
    let stored = settings.as_ref().and_then(|settings| settings.cors.as_deref());
    let stored = stored.ok_or_else(|| forbidden(NO_RULES, "BUCKET"))?;
    let is_known = |method: &&str| mode == Compatibility::Strict || METHODS.contains(method);
    let method = method.filter(is_known).ok_or_else(invalid_method)?;
    let cross_origin = CrossOrigin { origin, method, headers: requested_headers(head) };
    let rules = Rules::decode(stored).ok_or_else(|| S3Error::internal("the CORS rules cannot be read"))?;
    let resource = target.resource().kind();
    let admission =
        rules.admit(cross_origin, mode.origin_matching()).ok_or_else(|| forbidden(NO_MATCH, resource))?;
    let mut reply = Reply::empty(StatusCode::OK);
    write(&mut reply.head, cross_origin, admission);
    reply.head.header("vary", VARY);
    Ok(reply)
}

/// Writes the headers that let a page of another origin read this response, if a rule of the bucket allows it. The
/// response may be a success or an error. For a request without `Origin` nothing is looked up or written.
pub(crate) fn write_actual(
    engine: &Engine,
    mode: Compatibility,
    target: Option<&Target>,
    request: &RequestHead,
    answer: &mut ResponseHead,
) {
    let Some(origin) = request.header_str(ORIGIN) else { return };
    let bucket = target.and_then(|target| target.bucket().ok()).and_then(|name| engine.store().bucket(&name));
    let Some(settings) = bucket.map(|bucket| bucket.settings()) else { return };
    let Some(rules) = settings.cors.as_deref().and_then(Rules::decode) else { return };
    // As on AWS, the headers of a preflight count here too.
    let method = request.header_str(REQUEST_METHOD).unwrap_or(request.method().as_str());
    let cross_origin = CrossOrigin { origin, method, headers: requested_headers(request) };
    if let Some(admission) = rules.admit(cross_origin, mode.origin_matching()) {
        write(answer, cross_origin, admission);
    }
    answer.header("vary", VARY);
}

/// Returns what a preflight asks for; `None` without an origin or a method.
pub(crate) fn cross_origin(head: &RequestHead) -> Option<CrossOrigin<'_>> {
    let (origin, method) = (head.header_str(ORIGIN)?, head.header_str(REQUEST_METHOD)?);
    Some(CrossOrigin { origin, method, headers: requested_headers(head) })
}

/// Returns the list of requested headers. A list that is not UTF-8 names no header that a rule could allow.
fn requested_headers(head: &RequestHead) -> &str {
    head.header(REQUEST_HEADERS).map_or("", |list| std::str::from_utf8(list).unwrap_or("\u{fffd}"))
}

fn write(head: &mut ResponseHead, cross_origin: CrossOrigin<'_>, admission: Admission<'_>) {
    let Admission { rule, any_origin } = admission;
    head.header("access-control-allow-origin", if any_origin { "*" } else { cross_origin.origin });
    head.header("access-control-allow-methods", rule.methods.join(", "));
    let names: Vec<String> = cross_origin.header_names().map(str::to_ascii_lowercase).collect();
    if !names.is_empty() {
        head.header("access-control-allow-headers", names.join(", "));
    }
    if !rule.expose_headers.is_empty() {
        head.header("access-control-expose-headers", rule.expose_headers.join(", "));
    }
    if let Some(seconds) = rule.max_age_seconds {
        head.header("access-control-max-age", seconds.to_string());
    }
    // Browsers reject credentials together with `*`.
    if !any_origin {
        head.header("access-control-allow-credentials", "true");
    }
}
