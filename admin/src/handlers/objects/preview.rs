//! `GET /api/v1/buckets/{bucket}/object-preview/{key}[?version_id=]`: a preview of an object for the console.
//!
//! Texts of all types are returned as plain text, and only their beginning: HTML, SVG and scripts are shown but never
//! run. Images of types that contain only pixels are returned as a whole. So is PDF, which browsers draw apart from the page.
//! All other types are refused with 415.

use std::ops::Range;

use cairn_engine::{Attributes, ObjectInfo};
use cairn_transfer::{stored_content_type, stored_header};
use http::StatusCode;

use super::content::SANDBOX;
use super::object_ref::ObjectRef;
use super::source::stream;
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{PREVIEW_IMAGE_BYTES_MAX, PREVIEW_PDF_BYTES_MAX, PREVIEW_TEXT_BYTES_MAX};
use crate::reply::{ChangeRecord, Reply};

/// Media types of images that cannot contain scripts.
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
/// Media types of texts, besides `text/*` and the suffixes `+json`, `+xml` and `+yaml`.
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
/// The media type of documents whose preview is drawn by the browser's own viewer.
const PDF: &str = "application/pdf";
/// The security policy for PDF. Chromium's viewer does not work in a sandbox; it is isolated in its own process. No script of
/// the console's origin runs in it.
const PDF_POLICY: &str = "script-src 'none'; object-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; \
                          form-action 'none'; frame-ancestors 'self'";
/// The media type of all text previews.
const PLAIN: &str = "text/plain; charset=utf-8";

/// The shown part of an object, and its media type in the response.
#[derive(PartialEq, Eq, Debug)]
struct Preview {
    content_type: &'static str,
    range: Range<u64>,
}

pub(crate) async fn preview(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let source = ObjectRef::of(&call)?;
    let opened = call.engine()?.open_object(&source.bucket, &source.key, source.version, |info| {
        let preview = plan_preview(info);
        (preview.as_ref().map_or(0..0, |preview| preview.range.clone()), (preview, info.etag))
    });
    let (object, (preview, etag)) = opened.map_err(|error| source.read_error(&call, error))?;
    let Preview { content_type, range } = preview?;
    let body = stream(&call, &source, object, range.end - range.start).await?;
    let headers = vec![("content-type", content_type.to_owned())];
    let reply = Reply { status: StatusCode::OK, headers, body, record: ChangeRecord::default() };
    let policy = if content_type == PDF { PDF_POLICY } else { SANDBOX.1 };
    Ok(reply.header(SANDBOX.0, policy).header("etag", etag.quoted()))
}

/// Decides what is shown of an object.
fn plan_preview(info: &ObjectInfo) -> Result<Preview, AdminError> {
    const NO_PREVIEW: AdminError = AdminError::UnsupportedMediaType("objects of this type have no preview");
    if !is_plain_encoding(&info.attributes) {
        return Err(AdminError::UnsupportedMediaType("objects with a content encoding have no preview"));
    }
    let media_type = stored_content_type(&info.attributes).to_ascii_lowercase();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if let Some(image) = IMAGES.into_iter().find(|image| *image == essence) {
        if info.size > PREVIEW_IMAGE_BYTES_MAX {
            return Err(AdminError::UnsupportedMediaType("images of more than 16 MiB have no preview"));
        }
        return Ok(Preview { content_type: image, range: 0..info.size });
    }
    if essence == PDF {
        if info.size > PREVIEW_PDF_BYTES_MAX {
            return Err(AdminError::UnsupportedMediaType("PDF of more than 64 MiB has no preview"));
        }
        return Ok(Preview { content_type: PDF, range: 0..info.size });
    }
    if is_text(essence) {
        return Ok(Preview { content_type: PLAIN, range: 0..info.size.min(PREVIEW_TEXT_BYTES_MAX) });
    }
    Err(NO_PREVIEW)
}

fn is_text(essence: &str) -> bool {
    essence.starts_with("text/")
        || TEXTS.contains(&essence)
        || ["+json", "+xml", "+yaml"].iter().any(|syntax| essence.ends_with(syntax))
}

/// Returns whether the content is not encoded. The beginning of compressed text is not text.
fn is_plain_encoding(attributes: &Attributes) -> bool {
    stored_header(attributes, "content-encoding").is_none_or(|value| value.eq_ignore_ascii_case(b"identity"))
}

#[cfg(test)]
mod tests {
    use super::{PDF, PLAIN, Preview, plan_preview};
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
            imported: None,
            attributes: Attributes { headers: headers.collect(), ..Attributes::default() },
            encrypted: false,
            lock: ObjectLock::default(),
            parts: Vec::new(),
        }
    }

    fn of_type(content_type: &str, size: u64) -> Option<Preview> {
        plan_preview(&object(&[("content-type", content_type)], size)).ok()
    }

    #[test]
    fn active_content_is_shown_as_plain_text() {
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
            assert_eq!(of_type(text, 7), Some(Preview { content_type: PLAIN, range: 0..7 }), "{text}");
        }
        assert_eq!(of_type("text/plain", 5 << 20).map(|preview| preview.range), Some(0..1 << 20));
    }

    #[test]
    fn images_are_shown_whole_and_other_types_are_refused() {
        let size_max = 16 << 20;
        assert_eq!(
            of_type(" Image/PNG ", size_max),
            Some(Preview { content_type: "image/png", range: 0..size_max })
        );
        assert_eq!(of_type("image/png", size_max + 1), None);
        for other in [
            "image/tiff",
            "application/postscript",
            "video/mp4",
            "binary/octet-stream",
            "",
            "image/png,text/html",
        ] {
            assert_eq!(of_type(other, 1), None, "{other}");
        }
        assert!(plan_preview(&object(&[], 1)).is_err());
        assert_eq!(of_type("application/pdf", 7), Some(Preview { content_type: PDF, range: 0..7 }));
        assert_eq!(of_type("application/pdf", (64 << 20) + 1), None);
        let compressed = [("content-type", "text/plain"), ("content-encoding", "gzip")];
        assert!(plan_preview(&object(&compressed, 1)).is_err());
    }
}
