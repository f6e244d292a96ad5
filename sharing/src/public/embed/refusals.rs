//! The refusals of embeds: a status, and one line of text that says what to do.

use super::headers;
use crate::denied::DeniedReason;
use crate::public::refusal::{BUSY_SECONDS, Refusal};
use crate::public::reply::Reply;
use crate::types::origin::WebOrigin;
use cairn_http1::{ResponseHead, StatusCode, unsatisfied_content_range};
use cairn_net::ResponseBody;

pub(super) fn method_not_allowed(allowed: &'static str) -> Refusal {
    let text = "Embeds can only be read: use GET or HEAD.";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", text).with_header("allow", allowed)
}

pub(super) fn not_found() -> Refusal {
    let text = "There is no embed with this URL. Check that the URL is complete.";
    Refusal::new(StatusCode::NOT_FOUND, "EMBED_NOT_FOUND", text).because(DeniedReason::NotFound)
}

/// The embed is revoked or has expired.
pub(super) fn gone(reason: DeniedReason) -> Refusal {
    let text = match reason {
        DeniedReason::Expired => "This embed has expired. Ask whoever created it for a new one.",
        _ => "This embed was revoked. Ask whoever created it for a new one.",
    };
    Refusal::new(StatusCode::GONE, "EMBED_GONE", text).because(reason)
}

pub(super) fn disabled() -> Refusal {
    let text = "Embeds are turned off on this server (sharing.embeds_enabled).";
    Refusal::new(StatusCode::FORBIDDEN, "SHARING_DISABLED", text).because(DeniedReason::Disabled)
}

pub(super) fn forbidden(reason: DeniedReason, text: String) -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, "FORBIDDEN", text).because(reason)
}

pub(super) fn object_missing() -> Refusal {
    let text = "The object of this embed does not exist any more.";
    Refusal::new(StatusCode::NOT_FOUND, "OBJECT_NOT_FOUND", text).because(DeniedReason::ObjectMissing)
}

pub(super) fn content_type() -> Refusal {
    let text = "The object of this embed is not an image, video or audio any more, so it is not shown. Upload it with its \
                content type, or change the disposition of the embed to attachment.";
    Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "EMBED_CONTENT_TYPE_REFUSED", text)
        .because(DeniedReason::ContentType)
}

pub(super) fn precondition_failed() -> Refusal {
    let text = "A precondition of the request does not hold.";
    Refusal::new(StatusCode::PRECONDITION_FAILED, "PRECONDITION_FAILED", text)
}

/// The range is outside of the object, which has this size.
pub(super) fn range(size: u64) -> Refusal {
    let text = "The requested range is outside of the object.";
    Refusal::new(StatusCode::RANGE_NOT_SATISFIABLE, "INVALID_RANGE", text)
        .with_header("content-range", unsatisfied_content_range(size))
}

pub(super) fn internal() -> Refusal {
    let text = "The object could not be read. The server's log has the reason under the id of this request.";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", text)
}

pub(super) fn unavailable() -> Refusal {
    let text = "The server is busy or shutting down. Try again.";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "NOT_READY", text).retry_after(BUSY_SECONDS)
}

/// Lets the scripts of pages of an allowed origin read a refusal.
pub(super) fn readable_by(reader: Option<&WebOrigin>) -> impl FnOnce(Refusal) -> Refusal {
    move |mut refusal| {
        refusal.readable_by = reader.map(ToString::to_string);
        refusal
    }
}

/// Returns the response. It is never stored by a cache, because the next request may be answered differently.
pub(super) fn reply(refusal: &Refusal, is_head: bool) -> Reply {
    let mut head = ResponseHead::new(refusal.status);
    head.header("content-type", "text/plain; charset=utf-8").header("cache-control", "no-store");
    headers::write_protection(&mut head);
    if let Some(origin) = &refusal.readable_by {
        headers::write_cors(&mut head, origin);
    }
    refusal.write_headers(&mut head);
    let text = format!("{}\n", refusal.text).into_bytes();
    let body = if is_head { ResponseBody::Omitted { length: None } } else { ResponseBody::Full(text) };
    Reply { head, body }
}
