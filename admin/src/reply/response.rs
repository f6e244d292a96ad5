//! The wire response of a reply or an error: not to be cached, with the request id.

use cairn_http1::{ResponseHead, unsatisfied_content_range};
use cairn_net::Response;

use super::handler_reply::{JSON, Reply};
use crate::error::AdminError;

/// Seconds after which a client may retry after a 429.
const RETRY_AFTER_SECONDS: &str = "5";

/// Makes the response of a reply or an error.
pub(crate) fn respond(result: Result<Reply, AdminError>, route: &'static str, id: &str) -> Response {
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
    Response::new(head, reply.body, id).of(route, "").with_error(error_code)
}

/// Returns the JSON body of an error.
pub(crate) fn error_body(error: &AdminError, id: &str) -> Vec<u8> {
    cairn_api::Error::new(error.code(), error.message(), id).to_json()
}

fn error_reply(error: &AdminError, id: &str) -> Reply {
    let mut reply = Reply::bytes(error.status(), JSON, error_body(error, id));
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
