//! Answers of the management plane, successes and refusals alike: JSON, not to be cached, with the request id.

use cairn_http1::ResponseHead;
use cairn_net::{Response, ResponseBody, ResponseMeta};
use http::StatusCode;
use serde::Serialize;

use crate::error::AdminError;

/// What a handler answers.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
    pub(crate) content_type: &'static str,
}

/// When to try again after a 429.
const RETRY_AFTER_SECONDS: &str = "5";
const JSON: &str = "application/json";

impl Reply {
    /// A JSON answer.
    pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Result<Self, AdminError> {
        let body = serde_json::to_vec(body).map_err(|error| {
            tracing::error!(target: "service", %error, "an answer could not be written as JSON");
            AdminError::Internal
        })?;
        Ok(Self { status, body, content_type: JSON })
    }
}

/// `{error: {code, message, request_id}}` (specification, "Errors").
#[derive(Serialize)]
struct ErrorBody<'a> {
    error: ErrorDetail<'a>,
}

#[derive(Serialize)]
struct ErrorDetail<'a> {
    code: &'a str,
    message: &'a str,
    request_id: &'a str,
}

/// Whether the body goes out; answers to HEAD only tell its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyWanted {
    Yes,
    LengthOnly,
}

/// The response of a handled or refused request.
pub(crate) fn respond(
    result: Result<Reply, AdminError>,
    route: &'static str,
    id: &str,
    body_wanted: BodyWanted,
) -> Response {
    match result {
        Ok(reply) => {
            let mut head = ResponseHead::new(reply.status);
            head.header("content-type", reply.content_type);
            finish(head, reply.body, None, route, id, body_wanted)
        }
        Err(error) => {
            let mut head = ResponseHead::new(error.status());
            head.header("content-type", JSON);
            add_error_headers(&mut head, &error);
            let detail = ErrorDetail { code: error.code(), message: &error.message(), request_id: id };
            // Three strings cannot fail to be written.
            let body = serde_json::to_vec(&ErrorBody { error: detail }).unwrap_or_default();
            finish(head, body, Some(error.code()), route, id, body_wanted)
        }
    }
}

fn add_error_headers(head: &mut ResponseHead, error: &AdminError) {
    match error {
        AdminError::Unauthenticated => {
            head.header("www-authenticate", "Bearer realm=\"management\"");
            head.header("www-authenticate", "Basic realm=\"management\", charset=\"UTF-8\"");
        }
        AdminError::TooManyRequests(_) => {
            head.header("retry-after", RETRY_AFTER_SECONDS);
        }
        AdminError::MethodNotAllowed(allow) => {
            head.header("allow", allow);
        }
        _ => {}
    }
}

fn finish(
    mut head: ResponseHead,
    body: Vec<u8>,
    error_code: Option<&'static str>,
    route: &'static str,
    id: &str,
    body_wanted: BodyWanted,
) -> Response {
    head.header("cache-control", "no-store");
    head.header("x-content-type-options", "nosniff");
    head.header("x-request-id", id);
    let meta = ResponseMeta { status: head.status, route, request_id: id.to_owned(), error_code };
    let body = match body_wanted {
        BodyWanted::Yes => ResponseBody::Full(body),
        BodyWanted::LengthOnly => ResponseBody::Omitted { length: u64::try_from(body.len()).ok() },
    };
    Response { head, body, meta, close: false }
}
