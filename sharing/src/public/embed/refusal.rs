//! Refused requests for embeds: a status, and one line of text that says what to do.

use super::headers;
use super::reply::Reply;
use crate::denied::DeniedReason;
use crate::types::origin::WebOrigin;
use cairn_http1::{ResponseHead, StatusCode};
use cairn_net::ResponseBody;
use std::borrow::Cow;

/// Seconds after which a client may try again when the server is busy.
const RETRY_SECONDS: &str = "1";

/// Why a request is refused. No text contains the token, or anything else of the link.
pub(super) struct Refusal {
    status: StatusCode,
    /// The code, for the log.
    pub(super) code: &'static str,
    /// For the metric of denied accesses; `None` for failures and for what says nothing about the visitor.
    pub(super) reason: Option<DeniedReason>,
    text: Cow<'static, str>,
    header: Option<(&'static str, String)>,
    /// The origin whose scripts may read the text.
    readable_by: Option<String>,
}

impl Refusal {
    fn new(
        status: StatusCode,
        code: &'static str,
        reason: Option<DeniedReason>,
        text: &'static str,
    ) -> Box<Self> {
        Box::new(Self { status, code, reason, text: Cow::Borrowed(text), header: None, readable_by: None })
    }

    fn with_header(mut self: Box<Self>, name: &'static str, value: impl Into<String>) -> Box<Self> {
        self.header = Some((name, value.into()));
        self
    }

    pub(super) fn method_not_allowed(allowed: &'static str) -> Box<Self> {
        let text = "Embeds can only be read: use GET or HEAD.";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", None, text)
            .with_header("allow", allowed)
    }

    pub(super) fn not_found() -> Box<Self> {
        let text = "There is no embed with this URL. Check that the URL is complete.";
        Self::new(StatusCode::NOT_FOUND, "EMBED_NOT_FOUND", Some(DeniedReason::NotFound), text)
    }

    /// The embed is revoked or has expired.
    pub(super) fn gone(reason: DeniedReason) -> Box<Self> {
        let text = match reason {
            DeniedReason::Expired => "This embed has expired. Ask whoever created it for a new one.",
            _ => "This embed was revoked. Ask whoever created it for a new one.",
        };
        Self::new(StatusCode::GONE, "EMBED_GONE", Some(reason), text)
    }

    pub(super) fn disabled() -> Box<Self> {
        let text = "Embeds are turned off on this server (sharing.embeds_enabled).";
        Self::new(StatusCode::FORBIDDEN, "SHARING_DISABLED", Some(DeniedReason::Disabled), text)
    }

    pub(super) fn forbidden(reason: DeniedReason, code: &'static str, text: String) -> Box<Self> {
        let mut refusal = Self::new(StatusCode::FORBIDDEN, code, Some(reason), "");
        refusal.text = Cow::Owned(text);
        refusal
    }

    pub(super) fn object_not_found() -> Box<Self> {
        let text = "The object of this embed does not exist any more.";
        Self::new(StatusCode::NOT_FOUND, "OBJECT_NOT_FOUND", Some(DeniedReason::ObjectMissing), text)
    }

    pub(super) fn content_type() -> Box<Self> {
        let text = "The object of this embed is not an image, video or audio any more, so it is not shown. Upload it with its \
                    content type, or change the disposition of the embed to attachment.";
        let reason = Some(DeniedReason::ContentType);
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "EMBED_CONTENT_TYPE_REFUSED", reason, text)
    }

    pub(super) fn precondition_failed() -> Box<Self> {
        let text = "A precondition of the request does not hold.";
        Self::new(StatusCode::PRECONDITION_FAILED, "PRECONDITION_FAILED", None, text)
    }

    /// The range is outside of the object.
    pub(super) fn range(content_range: String) -> Box<Self> {
        let text = "The requested range is outside of the object.";
        Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "INVALID_RANGE", None, text)
            .with_header("content-range", content_range)
    }

    pub(super) fn internal() -> Box<Self> {
        let text =
            "The object could not be read. The server's log has the reason under the id of this request.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", None, text)
    }

    pub(super) fn unavailable() -> Box<Self> {
        let text = "The server is busy or shutting down. Try again.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "NOT_READY", None, text)
            .with_header("retry-after", RETRY_SECONDS)
    }

    /// Lets the scripts of pages of an allowed origin read it.
    pub(super) fn readable_by(mut self: Box<Self>, reader: Option<&WebOrigin>) -> Box<Self> {
        self.readable_by = reader.map(ToString::to_string);
        self
    }

    /// Returns the response. It is never stored by a cache, because the next request may be answered differently.
    pub(super) fn into_reply(self, is_head: bool) -> Reply {
        let mut head = ResponseHead::new(self.status);
        head.header("content-type", "text/plain; charset=utf-8").header("cache-control", "no-store");
        headers::write_protection(&mut head);
        if let Some(origin) = &self.readable_by {
            headers::write_cors(&mut head, origin);
        }
        if let Some((name, value)) = &self.header {
            head.header(name, value);
        }
        let text = format!("{}\n", self.text).into_bytes();
        let body = if is_head { ResponseBody::Omitted { length: None } } else { ResponseBody::Full(text) };
        Reply { head, body }
    }
}
