//! Answers of the management plane, successes and refusals alike: not to be cached, with the request id.

use cairn_http1::{ResponseHead, unsatisfied_content_range};
use cairn_identity::directory::Outcome;
use cairn_net::{BodySource, Response, ResponseBody, ResponseMeta};
use http::StatusCode;
use serde::Serialize;

use crate::error::AdminError;

/// What a handler answers, and what of it goes into the audit trail.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: ReplyBody,
    pub(crate) record: Record,
}

/// The body of an answer.
pub(crate) enum ReplyBody {
    None,
    Full(Vec<u8>),
    /// The answer to HEAD of what a GET would stream: so many bytes.
    Omitted(u64),
    /// Exactly `length` bytes from a source; an error cuts the connection.
    Stream {
        length: u64,
        source: Box<dyn BodySource>,
    },
    /// As many bytes as the source gives; an error cuts the connection.
    Chunked {
        source: Box<dyn BodySource>,
    },
}

/// What the audit trail says about a change that was carried out.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Nothing was changed: nothing is recorded.
    pub(crate) is_without_change: bool,
    /// On what, where the path does not say it.
    pub(crate) resource: Option<String>,
    /// For people. Never a secret.
    pub(crate) detail: String,
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
        Ok(Self::bytes(status, JSON, body))
    }

    /// An answer of another type.
    pub(crate) fn bytes(status: StatusCode, content_type: &str, body: Vec<u8>) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        Self { status, headers, body: ReplyBody::Full(body), record: Record::default() }
    }

    /// 204: it was done, and there is nothing to say.
    pub(crate) fn no_content() -> Self {
        let (status, body) = (StatusCode::NO_CONTENT, ReplyBody::None);
        Self { status, headers: Vec::new(), body, record: Record::default() }
    }

    /// With another header.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The record's resource, for a route whose path does not name it.
    pub(crate) fn about(mut self, resource: impl Into<String>) -> Self {
        self.record.resource = Some(resource.into());
        self
    }

    /// What else the record says.
    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.record.detail = detail.into();
        self
    }

    /// What became of a change of the directory.
    pub(crate) fn of(self, outcome: Outcome) -> Self {
        match outcome {
            Outcome::Changed => self,
            Outcome::Unchanged => self.without_change(),
        }
    }

    /// The request asked for no change, or there was nothing to change.
    pub(crate) fn without_change(mut self) -> Self {
        self.record.is_without_change = true;
        self
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
    let (reply, error_code) = match result {
        Ok(reply) => (reply, None),
        Err(error) => (refusal(&error, id), Some(error.code())),
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
    let meta =
        ResponseMeta { status: reply.status, route, operation: "", request_id: id.to_owned(), error_code };
    let body = match (reply.body, body_wanted) {
        (ReplyBody::None, _) => ResponseBody::Empty,
        (ReplyBody::Full(body), BodyWanted::Yes) => ResponseBody::Full(body),
        (ReplyBody::Full(body), BodyWanted::LengthOnly) => {
            ResponseBody::Omitted { length: u64::try_from(body.len()).ok() }
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

fn refusal(error: &AdminError, id: &str) -> Reply {
    let detail = ErrorDetail { code: error.code(), message: &error.message(), request_id: id };
    // Three strings cannot fail to be written.
    let body = serde_json::to_vec(&ErrorBody { error: detail }).unwrap_or_default();
    let mut reply = Reply::bytes(error.status(), JSON, body);
    let mut header = |name, value: &str| reply.headers.push((name, value.to_owned()));
    match error {
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
