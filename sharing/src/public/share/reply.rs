//! Responses to visitors of shares: JSON, pages and errors.

use super::path::SharePage;
use super::refusals;
use crate::public::negotiation::Language;
use crate::public::page::security_policy;
use crate::public::refusal::Refusal;
use crate::public::reply::Reply;
use cairn_http1::{ResponseHead, StatusCode};
use cairn_net::{Response, ResponseBody};
use serde::Serialize;

/// Headers of every response: no caching, no content sniffing, no indexing, no referrer.
const COMMON: [(&str, &str); 5] = [
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-robots-tag", "noindex, nofollow, noarchive"),
    ("cross-origin-resource-policy", "same-origin"),
];
/// Request headers that the choice between page and JSON, and a page, depend on.
const VARY: &str = "Accept, Accept-Language, Cookie, X-Service-Unlock";

fn reply(status: StatusCode, content_type: &str, body: Vec<u8>) -> Reply {
    let mut head = ResponseHead::new(status);
    head.header("content-type", content_type);
    Reply { head, body: ResponseBody::Full(body) }
}

/// Returns a reply with JSON.
pub(super) fn json(body: &impl Serialize) -> Result<Reply, Refusal> {
    let body = serde_json::to_vec(body).map_err(|error| {
        tracing::error!(target: "service::sharing", %error, "a response could not be serialized as JSON");
        refusals::internal()
    })?;
    Ok(json_text(StatusCode::OK, body))
}

fn json_text(status: StatusCode, body: Vec<u8>) -> Reply {
    let mut reply = reply(status, "application/json", body);
    reply.head.header("vary", VARY);
    reply
}

/// Returns a reply with a page.
pub(super) fn page(status: StatusCode, language: Language, html: String) -> Reply {
    let mut reply = reply(status, "text/html; charset=utf-8", html.into_bytes());
    reply
        .head
        .header("content-language", language.tag())
        .header("content-security-policy", security_policy())
        .header("cross-origin-opener-policy", "same-origin")
        .header("vary", VARY);
    reply
}

/// Returns a reply that leads to another URL, which is requested with GET.
pub(super) fn see_other(location: &str) -> Reply {
    let mut head = ResponseHead::new(StatusCode::SEE_OTHER);
    head.header("location", location);
    Reply { head, body: ResponseBody::Empty }
}

/// Returns a refusal as JSON (specification, "Errors").
pub(super) fn error(refusal: &Refusal, request_id: &str) -> Reply {
    let error = cairn_api::Error::new(refusal.code, refusal.text.clone().into_owned(), request_id);
    json_text(refusal.status, error.to_json())
}

/// Returns the response.
pub(super) fn response(
    reply: Reply,
    page: Option<SharePage>,
    request_id: &str,
    error_code: Option<&'static str>,
) -> Response {
    let Reply { mut head, body } = reply;
    for (name, value) in COMMON {
        head.header(name, value);
    }
    head.header("x-request-id", request_id);
    let (route, operation) = page.map_or(("/s/{token}", ""), |page| (page.route(), page.operation()));
    Response::new(head, body, request_id).of(route, operation).with_error(error_code)
}
