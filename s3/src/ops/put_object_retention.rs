//! PutObjectRetention: sets the retention of a version; an empty document takes it away. The engine decides whether the
//! retention that is there allows it. Source: API Reference, PutObjectRetention.

use crate::body::read_document;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Result};
use crate::lock_headers::{self, mode_of};
use crate::reply::Reply;
use crate::version;
use crate::xml::reader::Element;
use cairn_engine::Retention;
use cairn_http1::{StatusCode, parse_rfc3339_millis};
use cairn_model::Timestamp;
use cairn_net::RequestBody;

pub(crate) async fn put_object_retention(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let settings = bucket.settings();
    lock_headers::require_object_lock(&settings)?;
    let version = version::asked(call.query)?;
    let bypass = lock_headers::bypasses_governance(call, &settings)?;
    let retention = asked(&read_document(call, body, "Retention").await?, call.now)?;
    let set = call.engine.set_retention(&bucket, &key, version, retention, bypass).await;
    set.map_err(|error| version::read_error(error, version, call.head.method()))?;
    Ok(Reply::empty(StatusCode::OK))
}

/// Reads the document. Mode and date belong together; without both there is to be no retention.
///
/// # Errors
/// `MalformedXML`; `InvalidArgument` for a date that is past.
pub(crate) fn asked(document: &Element, now: Timestamp) -> S3Result<Option<Retention>> {
    match (document.only_text("Mode")?, document.only_text("RetainUntilDate")?) {
        (None, None) => Ok(None),
        (Some(mode), Some(until)) => {
            let mode = mode_of(mode).ok_or(ErrorCode::MalformedXML)?;
            parse_rfc3339_millis(until).ok_or(ErrorCode::MalformedXML)?;
            let until = lock_headers::future("RetainUntilDate", until, now)?;
            Ok(Some(Retention { mode, until }))
        }
        (Some(_), None) | (None, Some(_)) => Err(ErrorCode::MalformedXML.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::asked;
    use crate::xml::reader::parse;
    use cairn_engine::{Retention, RetentionMode};
    use cairn_model::Timestamp;

    fn read(inner: &str) -> Result<Option<Retention>, &'static str> {
        let body = format!("<Retention xmlns=\"urn:x\">{inner}</Retention>");
        asked(&parse(body.as_bytes()).expect(inner), Timestamp(1000)).map_err(|error| error.code())
    }

    #[test]
    fn a_retention_has_a_mode_and_a_date_that_lies_ahead() {
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
    fn an_empty_document_takes_it_away_and_half_a_one_is_malformed() {
        assert_eq!(read(""), Ok(None));
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
