//! `GET /api/v1/buckets/{bucket}/object-preview/{key}[?version_id=]`: what the console shows of an object.
//!
//! Of text the beginning, as plain text whatever kind of text it is: HTML, SVG and scripts are shown and never run. Images of
//! the kinds that are pixels and nothing else are given whole. Everything else is 415.

use std::ops::Range;

use cairn_engine::{Attributes, ObjectInfo};
use http::StatusCode;

use super::content::SANDBOX;
use super::headers::{content_type, stored};
use super::named::NamedObject;
use super::source;
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{PREVIEW_IMAGE_BYTES_MAX, PREVIEW_TEXT_BYTES_MAX};
use crate::reply::{Record, Reply};

/// Images without scripts, by their registered names.
const IMAGES: [&str; 8] = [
    "image/avif",
    "image/bmp",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/vnd.microsoft.icon",
    "image/webp",
    "image/x-icon",
];
/// Text that is not below `text/` and not named after its syntax (`+json`, `+xml`, `+yaml`).
const TEXTS: [&str; 12] = [
    "application/ecmascript",
    "application/javascript",
    "application/json",
    "application/jsonl",
    "application/sql",
    "application/toml",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
];
/// How all text is shown.
const PLAIN: &str = "text/plain; charset=utf-8";

/// What is shown of an object, and as what.
#[derive(PartialEq, Eq, Debug)]
struct Shown {
    content_type: &'static str,
    range: Range<u64>,
}

pub(crate) async fn preview(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let named = NamedObject::of(&call)?;
    let opened = call.engine()?.open_object(&named.bucket, &named.key, named.version, |info| {
        let shown = shown(info);
        (shown.as_ref().map_or(0..0, |shown| shown.range.clone()), (shown, info.etag))
    });
    let (object, (shown, etag)) = opened.map_err(|error| named.read_error(&call, error))?;
    let Shown { content_type, range } = shown?;
    let body = source::stream(&call, &named, object, range.end - range.start).await?;
    let headers = vec![("content-type", content_type.to_owned())];
    let reply = Reply { status: StatusCode::OK, headers, body, record: Record::default() };
    Ok(reply.header(SANDBOX.0, SANDBOX.1).header("etag", etag.quoted()))
}

fn shown(info: &ObjectInfo) -> Result<Shown, AdminError> {
    const NO_PREVIEW: AdminError = AdminError::UnsupportedMediaType("objects of this type have no preview");
    if !is_plain_encoding(&info.attributes) {
        return Err(AdminError::UnsupportedMediaType("objects with a content encoding have no preview"));
    }
    let own = content_type(&info.attributes).to_ascii_lowercase();
    let essence = own.split(';').next().unwrap_or_default().trim();
    if let Some(image) = IMAGES.into_iter().find(|image| *image == essence) {
        if info.size > PREVIEW_IMAGE_BYTES_MAX {
            return Err(AdminError::UnsupportedMediaType("images of more than 16 MiB have no preview"));
        }
        return Ok(Shown { content_type: image, range: 0..info.size });
    }
    if is_text(essence) {
        return Ok(Shown { content_type: PLAIN, range: 0..info.size.min(PREVIEW_TEXT_BYTES_MAX) });
    }
    Err(NO_PREVIEW)
}

fn is_text(essence: &str) -> bool {
    essence.starts_with("text/")
        || TEXTS.contains(&essence)
        || ["+json", "+xml", "+yaml"].iter().any(|syntax| essence.ends_with(syntax))
}

/// The beginning of compressed text is no text.
fn is_plain_encoding(attributes: &Attributes) -> bool {
    stored(attributes, "content-encoding").is_none_or(|value| value.eq_ignore_ascii_case(b"identity"))
}

#[cfg(test)]
mod tests {
    use super::{PLAIN, Shown, shown};
    use cairn_engine::{Attributes, ObjectInfo, ObjectLock};
    use cairn_model::{Etag, Timestamp, VersionId};

    fn object(headers: &[(&str, &str)], size: u64) -> ObjectInfo {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
        ObjectInfo {
            size,
            etag: Etag::single([0; 16]),
            last_modified: Timestamp(0),
            version: VersionId(1),
            is_null: true,
            attributes: Attributes { headers: headers.collect(), ..Attributes::default() },
            encrypted: false,
            lock: ObjectLock::default(),
            parts: Vec::new(),
        }
    }

    fn of_type(content_type: &str, size: u64) -> Option<Shown> {
        shown(&object(&[("content-type", content_type)], size)).ok()
    }

    #[test]
    fn what_a_browser_would_run_is_shown_as_plain_text() {
        for text in [
            "text/html",
            "TEXT/HTML; charset=utf-16",
            "image/svg+xml",
            "application/xhtml+xml",
            "text/javascript",
            "application/javascript",
            "text/xml",
            "application/json",
        ] {
            assert_eq!(of_type(text, 7), Some(Shown { content_type: PLAIN, range: 0..7 }), "{text}");
        }
        assert_eq!(of_type("text/plain", 5 << 20).map(|shown| shown.range), Some(0..1 << 20));
    }

    #[test]
    fn images_are_whole_and_everything_else_is_not_shown() {
        let most = 16 << 20;
        assert_eq!(of_type(" Image/PNG ", most), Some(Shown { content_type: "image/png", range: 0..most }));
        assert_eq!(of_type("image/png", most + 1), None);
        for other in
            ["image/tiff", "application/pdf", "video/mp4", "binary/octet-stream", "", "image/png,text/html"]
        {
            assert_eq!(of_type(other, 1), None, "{other}");
        }
        assert!(shown(&object(&[], 1)).is_err());
        let packed = [("content-type", "text/plain"), ("content-encoding", "gzip")];
        assert!(shown(&object(&packed, 1)).is_err());
    }
}
