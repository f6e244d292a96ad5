//! PutObjectRetention: sets the retention of a version; an empty document removes it. The engine decides whether the
//! current retention allows this. Source: API Reference, PutObjectRetention.

use crate::body::read_document;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Result};
use crate::headers::object_lock;
use crate::headers::version;
use crate::reply::Reply;
use crate::xml::reader::Element;
use cairn_engine::{Retention, RetentionMode};
use cairn_http1::{StatusCode, iso8601_millis, parse_rfc3339_millis};
use cairn_model::Timestamp;
use cairn_net::RequestBody;

pub(crate) async fn put_object_retention(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let settings = bucket.settings();
    object_lock::require_object_lock(&settings)?;
    let version = version::requested(call.query)?;
    let bypass = call.bypasses_governance(&settings)?;
    let retention = parse_document(&read_document(call, body, "Retention").await?, call.now)?;
    let set = call.engine.set_retention(&bucket, &key, version, retention, bypass).await;
    set.map_err(|error| version::read_error(error, version, call.head.method()))?;
    call.recording.describe(|| match retention {
        Some(Retention { mode, until }) => {
            format!("retention {} until {}", mode.name(), iso8601_millis(until.0))
        }
        None => "without retention".to_owned(),
    });
    Ok(Reply::empty(StatusCode::OK))
}

/// Reads the document. Mode and date must both be present or both be absent; without them the retention is removed.
///
/// # Errors
/// `MalformedXML`; `InvalidArgument` for a date in the past; `NotImplemented` for another element.
pub(crate) fn parse_document(document: &Element, now: Timestamp) -> S3Result<Option<Retention>> {
    object_lock::refuse_other_children(document, &["Mode", "RetainUntilDate"])?;
    match (document.only_text("Mode")?, document.only_text("RetainUntilDate")?) {
        (None, None) => Ok(None),
        (Some(mode), Some(until)) => {
            let mode = RetentionMode::parse(mode).ok_or(ErrorCode::MalformedXML)?;
            parse_rfc3339_millis(until).ok_or(ErrorCode::MalformedXML)?;
            let until = object_lock::parse_future_date("RetainUntilDate", until, now)?;
            Ok(Some(Retention { mode, until }))
        }
        (Some(_), None) | (None, Some(_)) => Err(ErrorCode::MalformedXML.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_document;
    use crate::xml::reader::parse;
    use cairn_engine::{Retention, RetentionMode};
    use cairn_model::Timestamp;

    fn read(inner: &str) -> Result<Option<Retention>, &'static str> {
        let body = format!("<Retention xmlns=\"urn:x\">{inner}</Retention>");
        parse_document(&parse(body.as_bytes()).expect(inner), Timestamp(1000)).map_err(|error| error.code())
    }

    #[test]
    fn retention_date_must_be_in_the_future() {
        for (date, until) in [
            ("1970-01-01T00:00:01.001Z", 1001),
            ("1970-01-01T00:00:02.000000Z", 2000),
            ("1970-01-01T01:00:02+01:00", 2000),
        ] {
            let found = read(&format!("<Mode>COMPLIANCE</Mode><RetainUntilDate>{date}</RetainUntilDate>"));
            let expected = Retention { mode: RetentionMode::Compliance, until: Timestamp(until) };
            assert_eq!(found, Ok(Some(expected)), "{date}");
        }
        let past = "<Mode>GOVERNANCE</Mode><RetainUntilDate>1970-01-01T00:00:01Z</RetainUntilDate>";
        assert_eq!(read(past), Err("InvalidArgument"));
    }

    #[test]
    fn retention_needs_mode_and_date_or_neither() {
        assert_eq!(read(""), Ok(None));
        // It removed the retention.
        assert_eq!(read("<EventHold>ON</EventHold>"), Err("NotImplemented"));
        let long = format!("<Retention><{0}/></Retention>", "a".repeat(10_000));
        let refused = parse_document(&parse(long.as_bytes()).expect("well-formed"), Timestamp(1000));
        assert!(refused.expect_err("unknown").message().len() < 200, "the name is cut");
        let date = "<RetainUntilDate>2030-01-01T00:00:00Z</RetainUntilDate>";
        for bad in [
            "<Mode>GOVERNANCE</Mode>",
            date,
            &format!("<Mode>abc</Mode>{date}"),
            &format!("<Mode/>{date}"),
            &format!("<Mode>GOVERNANCE</Mode>{date}{date}"),
            "<Mode>GOVERNANCE</Mode><RetainUntilDate>2030-01-01</RetainUntilDate>",
            "<Mode>GOVERNANCE</Mode><RetainUntilDate/>",
        ] {
            assert_eq!(read(bad), Err("MalformedXML"), "{bad}");
        }
    }
}
