//! Responses to visitors of shares: JSON, pages and errors.

use super::path::SharePage;
use super::refusal::Refusal;
use crate::public::negotiation::Language;
use crate::public::page::security_policy;
use cairn_http1::{ResponseHead, StatusCode, unsatisfied_content_range};
use cairn_model::u64_of;
use cairn_net::{Request, Response, ResponseBody, ResponseMeta};
use serde::Serialize;

/// What a visitor is answered.
pub(crate) struct ShareReply {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: ResponseBody,
}

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

impl ShareReply {
    /// Returns a reply with a body.
    pub(crate) fn new(status: StatusCode, content_type: &str, body: Vec<u8>) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        Self { status, headers, body: ResponseBody::Full(body) }
    }

    /// Returns a JSON reply.
    pub(crate) fn json(body: &impl Serialize) -> Result<Self, Refusal> {
        let body = serde_json::to_vec(body).map_err(|error| {
            tracing::error!(target: "service::sharing", %error, "a response could not be serialized as JSON");
            Refusal::Internal
        })?;
        Ok(Self::new(StatusCode::OK, "application/json", body).header("vary", VARY))
    }

    /// Returns a page.
    pub(crate) fn page(status: StatusCode, language: Language, html: String) -> Self {
        Self::new(status, "text/html; charset=utf-8", html.into_bytes())
            .header("content-language", language.tag())
            .header("content-security-policy", security_policy())
            .header("cross-origin-opener-policy", "same-origin")
            .header("vary", VARY)
    }

    /// Returns a reply that leads to another URL, which is requested with GET.
    pub(crate) fn see_other(location: String) -> Self {
        Self { status: StatusCode::SEE_OTHER, headers: Vec::new(), body: ResponseBody::Empty }
            .header("location", location)
    }

    /// Returns a refusal as JSON.
    pub(crate) fn error(refusal: &Refusal, request_id: &str) -> Self {
        let message = &refusal.message();
        let body = error_body(refusal.code(), message, request_id);
        Self::new(refusal.status(), "application/json", body).header("vary", VARY)
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds the headers that belong to a refusal.
    pub(crate) fn with_headers_of(self, refusal: &Refusal) -> Self {
        let reply = match refusal {
            Refusal::MethodNotAllowed(allow) => self.header("allow", *allow),
            Refusal::RangeNotSatisfiable(size) => {
                self.header("content-range", unsatisfied_content_range(*size))
            }
            _ => self,
        };
        match refusal.retry_after() {
            Some(seconds) => reply.header("retry-after", seconds.to_string()),
            None => reply,
        }
    }

    /// Returns the response. A response to HEAD has the length of the body, and no body.
    pub(crate) fn into_response(
        self,
        page: Option<SharePage>,
        request_id: &str,
        is_head: bool,
        error_code: Option<&'static str>,
    ) -> Response {
        let mut head = ResponseHead::new(self.status);
        for (name, value) in &self.headers {
            head.header(name, value);
        }
        for (name, value) in COMMON {
            head.header(name, value);
        }
        head.header("x-request-id", request_id);
        let body = match self.body {
            ResponseBody::Full(body) if is_head => ResponseBody::Omitted { length: Some(u64_of(body.len())) },
            body => body,
        };
        let meta = ResponseMeta {
            status: self.status,
            route: page.map_or("/s/{token}", SharePage::route),
            operation: page.map_or("", SharePage::operation),
            request_id: request_id.to_owned(),
            principal: None,
            error_code,
        };
        Response { head, body, meta, close: false }
    }
}

/// `{error: {code, message, request_id}}` (specification, "Errors").
pub(crate) fn error_body(code: &str, message: &str, request_id: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Body<'a> {
        error: Detail<'a>,
    }
    #[derive(Serialize)]
    struct Detail<'a> {
        code: &'a str,
        message: &'a str,
        request_id: &'a str,
    }
    let error = Detail { code, message, request_id };
    serde_json::to_vec(&Body { error }).expect("strings can be serialized")
}

/// Returns the id of a request: the one that the client sent, if it sent one valid id.
pub(crate) fn request_id(request: &Request) -> &str {
    let mut sent = request.head.header_values("x-request-id");
    let only = sent.next().filter(|_| sent.next().is_none());
    only.and_then(cairn_observe::client_request_id).unwrap_or(&request.id)
}
