//! The wire response of a reply or an error: not to be cached, with the request id.

use cairn_api::{Error, ErrorDetail};
use cairn_http1::{ResponseHead, unsatisfied_content_range};
use cairn_model::u64_of;
use cairn_net::{Response, ResponseBody, ResponseMeta};

use super::handler_reply::{JSON, Reply, ReplyBody};
use crate::error::AdminError;

/// Seconds after which a client may retry after a 429.
const RETRY_AFTER_SECONDS: &str = "5";

/// Whether the body is sent. Responses to HEAD only have its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyWanted {
    Yes,
    LengthOnly,
}

/// Makes the response of a reply or an error.
pub(crate) fn respond(
    result: Result<Reply, AdminError>,
    route: &'static str,
    id: &str,
    body_wanted: BodyWanted,
) -> Response {
    let (reply, error_code) = match result {
        Ok(reply) => (reply, None),
        Err(error) => (error_reply(&error, id), Some(error.code())),
    };
    let mut head = ResponseHead::new(reply.status);
    for (name, value) in &reply.headers {
        head.header(name, value);
    }
    for (name, value) in [("cache-control", "no-store"), ("x-content-type-options", "nosniff")] {
        if head.get(name).is_none() {
            head.header(name, value);
        }
    }
    head.header("x-request-id", id);
    let meta = ResponseMeta {
        status: reply.status,
        route,
        operation: "",
        request_id: id.to_owned(),
        principal: None,
        error_code,
    };
    let body = match (reply.body, body_wanted) {
        (ReplyBody::None, _) => ResponseBody::Empty,
        (ReplyBody::Full(body), BodyWanted::Yes) => ResponseBody::Full(body),
        (ReplyBody::Full(body), BodyWanted::LengthOnly) => {
            ResponseBody::Omitted { length: Some(u64_of(body.len())) }
        }
        (ReplyBody::Stream { length, source }, BodyWanted::Yes) => ResponseBody::Stream { length, source },
        (ReplyBody::Chunked { source }, BodyWanted::Yes) => ResponseBody::Chunked { source },
        (ReplyBody::Chunked { .. }, BodyWanted::LengthOnly) => ResponseBody::Omitted { length: None },
        (ReplyBody::Omitted(length) | ReplyBody::Stream { length, .. }, _) => {
            ResponseBody::Omitted { length: Some(length) }
        }
    };
    Response { head, body, meta, close: false }
}

fn error_reply(error: &AdminError, id: &str) -> Reply {
    let detail =
        ErrorDetail { code: error.code().into(), message: error.message(), request_id: id.to_owned() };
    let body = serde_json::to_vec(&Error { error: detail }).expect("strings can be serialized");
    let mut reply = Reply::bytes(error.status(), JSON, body);
    let mut header = |name, value: &str| reply.headers.push((name, value.to_owned()));
    match error {
        AdminError::NotScraper(_) => header("www-authenticate", "Bearer realm=\"metrics\""),
        AdminError::NoSession(_) => header("www-authenticate", "Session realm=\"console\""),
        AdminError::Unauthenticated => {
            header("www-authenticate", "Bearer realm=\"management\"");
            header("www-authenticate", "Basic realm=\"management\", charset=\"UTF-8\"");
        }
        AdminError::TooManyRequests(_) => header("retry-after", RETRY_AFTER_SECONDS),
        AdminError::RangeNotSatisfiable(size) => header("content-range", &unsatisfied_content_range(*size)),
        AdminError::MethodNotAllowed(allow) => header("allow", allow),
        _ => {}
    }
    reply
}
