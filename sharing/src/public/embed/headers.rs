//! Headers of the responses of embeds.

use crate::types::embed::Embed;
use crate::types::link::Disposition;
use crate::types::media_type::MediaClass;
use crate::types::origin::WebOrigin;
use cairn_engine::ObjectInfo;
use cairn_http1::{ResponseHead, StatusCode, attachment, inline};
use cairn_transfer::{ReadPlan, ValidatorHeaders, stored_header};

/// A browser asks again after a minute, so a revocation reaches those who have the content by then. Other caches would answer
/// for an origin what was meant for another.
const CACHE_CONTROL: &str = "private, max-age=60, must-revalidate";
/// The request headers on which every response depends.
const VARY: &str = "Origin, Referer";
/// If the content is opened as a document of its own: no script, no form, an origin of its own, nothing from elsewhere. The
/// rest is what the browser's viewer of images, video and audio needs.
const CONTENT_SECURITY_POLICY: &str =
    "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'";
/// The response headers that scripts of an allowed page may read, besides the few that they always may.
const EXPOSED_HEADERS: &str = "Accept-Ranges, Content-Length, Content-Range, ETag";
/// The request headers that an allowed page may send.
const ALLOWED_HEADERS: &str = "range, if-none-match, if-range, if-modified-since";
/// Seconds for which a browser may keep the answer to a preflight. It grants nothing: every request is checked.
const PREFLIGHT_SECONDS: &str = "600";

/// Returns the head of a response with content, or of a 304. `reader` is the origin whose scripts may read it.
pub(super) fn content(
    plan: &ReadPlan,
    embed: &Embed,
    reader: Option<&WebOrigin>,
    info: &ObjectInfo,
    content_type: &str,
) -> ResponseHead {
    let mut head = ResponseHead::new(plan.status());
    head.header("cache-control", CACHE_CONTROL);
    let ValidatorHeaders { etag, last_modified } = ValidatorHeaders::of(info);
    head.header("etag", etag).header("last-modified", last_modified);
    write_protection(&mut head);
    if let Some(origin) = reader {
        write_cors(&mut head, origin.as_str());
    }
    if *plan == ReadPlan::NotModified {
        return head;
    }
    head.header("accept-ranges", "bytes");
    if let ReadPlan::Part(part) = plan {
        head.header("content-range", part.content_range());
    }
    let key = embed.link.object.key.as_str();
    let shown = MediaClass::shown_content_type(content_type);
    head.header("content-type", shown.as_deref().unwrap_or(content_type));
    let disposition = match embed.disposition {
        Disposition::Inline => inline(key),
        Disposition::Attachment => attachment(key),
    };
    head.header("content-disposition", disposition);
    for name in ["content-encoding", "content-language"] {
        if let Some(value) = stored_header(&info.attributes, name) {
            head.header(name, value);
        }
    }
    head
}

/// Returns the head of the answer to a preflight of an allowed page. A page whose browser sent no `Origin` gets no permission.
pub(super) fn preflight(reader: Option<&WebOrigin>, methods: &str) -> ResponseHead {
    let mut head = ResponseHead::new(StatusCode::NO_CONTENT);
    head.header("allow", methods).header("cache-control", "no-store");
    write_protection(&mut head);
    if let Some(origin) = reader {
        head.header("access-control-allow-origin", origin.as_str())
            .header("access-control-allow-methods", "GET, HEAD")
            .header("access-control-allow-headers", ALLOWED_HEADERS)
            .header("access-control-max-age", PREFLIGHT_SECONDS);
    }
    head
}

/// Lets scripts of an origin read the response. Credentials are never allowed: an embed has none.
pub(super) fn write_cors(head: &mut ResponseHead, origin: &str) {
    head.header("access-control-allow-origin", origin)
        .header("access-control-expose-headers", EXPOSED_HEADERS);
}

/// Writes what every response has. Without the permission for other origins, pages that isolate themselves could not show it.
pub(super) fn write_protection(head: &mut ResponseHead) {
    head.header("vary", VARY)
        .header("cross-origin-resource-policy", "cross-origin")
        .header("x-content-type-options", "nosniff")
        .header("content-security-policy", CONTENT_SECURITY_POLICY)
        .header("referrer-policy", "no-referrer")
        .header("x-robots-tag", "noindex, nofollow, noarchive");
}
