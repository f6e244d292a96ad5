//! PutObjectLegalHold: sets or lifts the legal hold of a version, independent of its retention. Source: API Reference,
//! PutObjectLegalHold.

use crate::body::read_document;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Result};
use crate::headers::object_lock::{self, parse_hold};
use crate::headers::version;
use crate::reply::Reply;
use crate::xml::reader::Element;
use cairn_http1::StatusCode;
use cairn_net::RequestBody;

pub(crate) async fn put_object_legal_hold(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    object_lock::require_object_lock(&bucket.settings())?;
    let version = version::requested(call.query)?;
    let legal_hold = parse_document(&read_document(call, body, "LegalHold").await?)?;
    let set = call.engine.set_legal_hold(&bucket, &key, version, legal_hold).await;
    set.map_err(|error| version::read_error(error, version, call.head.method()))?;
    call.recording.describe(|| format!("legal hold {}", if legal_hold { "set" } else { "lifted" }));
    Ok(Reply::empty(StatusCode::OK))
}

/// Reads the document.
///
/// # Errors
/// `MalformedXML`; `NotImplemented` for another element.
pub(crate) fn parse_document(document: &Element) -> S3Result<bool> {
    object_lock::refuse_other_children(document, &["Status"])?;
    document.only_text("Status")?.and_then(parse_hold).ok_or_else(|| ErrorCode::MalformedXML.into())
}

#[cfg(test)]
mod tests {
    use super::parse_document;
    use crate::xml::reader::parse;

    #[test]
    fn hold_is_on_or_off() {
        for (inner, expected) in [
            ("<Status>ON</Status>", Some(true)),
            ("<Status>OFF</Status>", Some(false)),
            ("", None),
            ("<Status>on</Status>", None),
            ("<Status>abc</Status>", None),
            ("<Status>ON</Status><Until>2030</Until>", None),
            ("<Status>ON</Status><Status>OFF</Status>", None),
        ] {
            let body = format!("<LegalHold>{inner}</LegalHold>");
            assert_eq!(parse_document(&parse(body.as_bytes()).expect(inner)).ok(), expected, "{inner}");
        }
    }
}
