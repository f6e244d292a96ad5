//! Conditions on writes, from the headers of PUT and DELETE to the engine's `WriteCondition`.
//!
//! The engine decides them inside the commit; nothing here looks at the object. A condition that is not understood
//! is refused, never ignored: ignoring one overwrites or deletes data. Conditions on reads are `cairn_http1`'s.
//!
//! Source: "Conditional requests" and the API Reference of PutObject and DeleteObject (AWS).

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::fields::Fields;
use cairn_engine::{EngineError, EtagMatch, ObjectInfo, WriteCondition};
use cairn_http1::parse_http_date;

/// Most tags in one `If-Match`; the head's limit bounds their length.
const TAGS_MAX: usize = 64;

const PUT_DATES: &str = "If-Modified-Since and If-Unmodified-Since are not implemented for writes: use If-Match with \
                         the ETag, or If-None-Match: *.";
const PUT_NONE_MATCH: &str = "If-None-Match with a tag, or together with If-Match, is not implemented for writes: use \
                              If-None-Match: *, or If-Match with the ETag.";
const DELETE_NONE_MATCH: &str =
    "If-None-Match is not implemented for DeleteObject: use If-Match with the ETag.";
const DELETE_DATES: &str = "If-Modified-Since and If-Unmodified-Since are not implemented for DeleteObject: use \
                            x-amz-if-match-last-modified-time, or If-Match with the ETag.";

/// The conditions of a PUT.
///
/// # Errors
/// `NotImplemented` for a condition that S3 does not have on PUT.
pub(crate) fn of_put(fields: Fields<'_>) -> S3Result<WriteCondition> {
    if has_dates(fields) {
        return Err(S3Error::not_implemented(PUT_DATES));
    }
    refuse_delete_conditions(fields)?;
    let if_match = fields.get("if-match").map(etag_match).transpose()?;
    let must_be_absent = match fields.get("if-none-match") {
        None => false,
        Some(b"*") if if_match.is_none() => true,
        Some(_) => return Err(S3Error::not_implemented(PUT_NONE_MATCH)),
    };
    Ok(WriteCondition { must_be_absent, if_match, ..WriteCondition::default() })
}

/// The conditions of a DELETE.
///
/// # Errors
/// `InvalidArgument` for a size or a time that cannot be read, `NotImplemented` for a condition that S3 does not
/// have on DELETE.
pub(crate) fn of_delete(fields: Fields<'_>) -> S3Result<WriteCondition> {
    if has_dates(fields) {
        return Err(S3Error::not_implemented(DELETE_DATES));
    }
    if fields.get("if-none-match").is_some() {
        return Err(S3Error::not_implemented(DELETE_NONE_MATCH));
    }
    let if_match = fields.get("if-match").map(etag_match).transpose()?;
    let if_size = match fields.amz(IF_MATCH_SIZE) {
        None => None,
        Some(text) => Some(parse_size(text).ok_or_else(|| {
            S3Error::invalid_argument(IF_MATCH_SIZE, text, "x-amz-if-match-size is not a number of bytes.")
        })?),
    };
    let if_last_modified_seconds = match fields.amz(IF_MATCH_TIME) {
        None => None,
        Some(text) => Some(parse_time(text).ok_or_else(|| {
            let message = "x-amz-if-match-last-modified-time is not an HTTP date.";
            S3Error::invalid_argument(IF_MATCH_TIME, text, message)
        })?),
    };
    Ok(WriteCondition { must_be_absent: false, if_match, if_size, if_last_modified_seconds })
}

/// Whether the answer will tell something of the object that is there: its entity tag, size or time. That nothing is there is
/// told to who asks for it with `If-None-Match: *`, as on AWS.
pub(crate) fn asks_what_is_there(fields: Fields<'_>) -> bool {
    fields.get("if-match").is_some() || DELETE_CONDITIONS.into_iter().any(|name| fields.amz(name).is_some())
}

/// Refuses the conditions of a step of a multipart upload: only the completion makes an object, and only it has conditions.
///
/// # Errors
/// `NotImplemented` for any condition on an object.
pub(crate) fn refuse_on_step(fields: Fields<'_>, operation: &str) -> S3Result<()> {
    const PLAIN: [&str; 4] = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];
    let plain = PLAIN.into_iter().find(|name| fields.get(name).is_some());
    let Some(name) = plain.or_else(|| DELETE_CONDITIONS.into_iter().find(|name| fields.amz(name).is_some()))
    else {
        return Ok(());
    };
    Err(S3Error::not_implemented(format!(
        "{name} is not implemented for {operation}: leave it away; CompleteMultipartUpload has If-Match and \
         If-None-Match: *."
    )))
}

/// Refuses a PUT whose condition does not hold now, so that its body need not be sent. The commit decides again.
///
/// # Errors
/// `PreconditionFailed`, `NoSuchKey`, or why the object could not be looked up.
pub(crate) fn check_early(
    condition: &WriteCondition,
    current: Result<ObjectInfo, EngineError>,
) -> S3Result<()> {
    match (current, &condition.if_match) {
        (Ok(_), _) if condition.must_be_absent => Err(ErrorCode::PreconditionFailed.into()),
        (Ok(current), Some(EtagMatch::OneOf(tags))) => {
            let etag = current.etag.to_string();
            if tags.contains(&etag) { Ok(()) } else { Err(ErrorCode::PreconditionFailed.into()) }
        }
        (Ok(_), _) | (Err(EngineError::NoSuchKey | EngineError::DeleteMarker { .. }), None) => Ok(()),
        (Err(error), _) => Err(error.into()),
    }
}

/// The error of a write: a conflict is the condition's if there is one.
pub(crate) fn write_error(error: EngineError, conditional: bool) -> S3Error {
    match error {
        EngineError::Conflict if conditional => ErrorCode::ConditionalRequestConflict.into(),
        other => other.into(),
    }
}

const IF_MATCH_SIZE: &str = "x-amz-if-match-size";
const IF_MATCH_TIME: &str = "x-amz-if-match-last-modified-time";
/// The conditions that DeleteObject alone has.
const DELETE_CONDITIONS: [&str; 2] = [IF_MATCH_SIZE, IF_MATCH_TIME];

fn has_dates(fields: Fields<'_>) -> bool {
    fields.get("if-modified-since").is_some() || fields.get("if-unmodified-since").is_some()
}

fn refuse_delete_conditions(fields: Fields<'_>) -> S3Result<()> {
    for name in DELETE_CONDITIONS {
        if fields.amz(name).is_some() {
            return Err(S3Error::not_implemented(format!(
                "{name} is implemented for DeleteObject alone: use If-Match with the ETag."
            )));
        }
    }
    Ok(())
}

/// Digits only: a sign is no part of a size.
fn parse_size(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// An HTTP date, or whole seconds since the Unix epoch as some SDKs write timestamps.
fn parse_time(text: &str) -> Option<u64> {
    parse_http_date(text.as_bytes())
        .and_then(|seconds| u64::try_from(seconds).ok())
        .or_else(|| parse_size(text))
}

/// The tags of an `If-Match`. Weak ones match nothing (RFC 9110 section 13.1.1) and are left out.
fn etag_match(value: &[u8]) -> S3Result<EtagMatch> {
    let unreadable = || S3Error::with_message(ErrorCode::InvalidRequest, "If-Match cannot be read.");
    let text = std::str::from_utf8(value).map_err(|_| unreadable())?;
    if text == "*" {
        return Ok(EtagMatch::Any);
    }
    let mut tags = Vec::new();
    for tag in text.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
        if tags.len() == TAGS_MAX {
            return Err(unreadable());
        }
        if !tag.starts_with("W/") {
            let inner = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
            tags.push(inner.unwrap_or(tag).to_owned());
        }
    }
    Ok(EtagMatch::OneOf(tags))
}

#[cfg(test)]
mod tests {
    use super::{of_delete, of_put, refuse_on_step};
    use crate::errors::S3Result;
    use crate::fields::Fields;
    use crate::query::Query;
    use cairn_engine::{EtagMatch, WriteCondition};

    fn put(headers: &[(&str, &[u8])]) -> S3Result<WriteCondition> {
        of_put(Fields::new(headers, &Query::default()))
    }

    fn delete(headers: &[(&str, &[u8])]) -> S3Result<WriteCondition> {
        of_delete(Fields::new(headers, &Query::default()))
    }

    fn tags(condition: WriteCondition) -> Vec<String> {
        match condition.if_match {
            Some(EtagMatch::OneOf(tags)) => tags,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_put_may_ask_for_absence_or_for_a_tag() {
        assert!(put(&[("if-none-match", b"*")]).expect("ok").must_be_absent);
        assert!(!put(&[]).expect("ok").must_be_absent);
        assert_eq!(tags(put(&[("if-match", b"\"abc\"")]).expect("ok")), ["abc"]);
        assert_eq!(tags(put(&[("if-match", b"abc, \"d-2\", W/\"w\"")]).expect("ok")), ["abc", "d-2"]);
        assert!(matches!(put(&[("if-match", b"*")]).expect("ok").if_match, Some(EtagMatch::Any)));
        assert!(tags(put(&[("if-match", b"W/\"w\"")]).expect("ok")).is_empty());
    }

    #[test]
    fn conditions_that_s3_does_not_have_on_put_are_501() {
        for headers in [
            &[("if-none-match", &b"\"abc\""[..])][..],
            &[("if-none-match", b"*"), ("if-match", b"\"abc\"")],
            &[("if-modified-since", b"Sat, 21 Nov 2026 05:00:00 GMT")],
            &[("if-unmodified-since", b"x")],
            &[("x-amz-if-match-size", b"1")],
        ] {
            assert_eq!(put(headers).expect_err("refused").status(), 501, "{headers:?}");
        }
    }

    #[test]
    fn a_delete_honours_tag_size_and_time_and_refuses_what_it_cannot_read() {
        let condition = delete(&[
            ("if-match", b"\"abc\""),
            ("x-amz-if-match-size", b"0042"),
            ("x-amz-if-match-last-modified-time", b"Sun, 06 Nov 1994 08:49:37 GMT"),
        ])
        .expect("ok");
        assert_eq!((condition.if_size, condition.if_last_modified_seconds), (Some(42), Some(784_111_777)));
        for (name, value) in [
            ("x-amz-if-match-size", "-1"),
            ("x-amz-if-match-size", ""),
            ("x-amz-if-match-size", "x"),
            ("x-amz-if-match-size", "99999999999999999999"),
            ("x-amz-if-match-last-modified-time", "yesterday"),
            ("x-amz-if-match-last-modified-time", ""),
        ] {
            let refused = delete(&[(name, value.as_bytes())]).expect_err(value);
            assert_eq!((refused.status(), refused.code()), (400, "InvalidArgument"), "{name}: {value}");
        }
        assert_eq!(delete(&[("if-none-match", b"*")]).expect_err("refused").status(), 501);
    }

    /// They were ignored: whoever had begun an upload with `If-None-Match: *` overwrote what was there.
    #[test]
    fn conditions_on_the_steps_of_an_upload_are_501() {
        for name in [
            "if-match",
            "if-none-match",
            "if-modified-since",
            "if-unmodified-since",
            "x-amz-if-match-size",
            "x-amz-if-match-last-modified-time",
        ] {
            let headers: &[(&str, &[u8])] = &[(name, b"*")];
            let refused =
                refuse_on_step(Fields::new(headers, &Query::default()), "UploadPart").expect_err(name);
            assert_eq!(refused.status(), 501);
            assert!(refused.message().starts_with(name) && refused.message().contains("UploadPart"));
        }
        let query = Query::parse(Some("X-Amz-If-Match-Size=7")).expect("parses");
        assert!(refuse_on_step(Fields::new(&[], &query), "AbortMultipartUpload").is_err());
        assert!(refuse_on_step(Fields::new(&[("content-type", b"x")], &Query::default()), "x").is_ok());
    }

    #[test]
    fn hoisted_conditions_of_a_delete_count() {
        let query = Query::parse(Some("X-Amz-If-Match-Size=7")).expect("parses");
        assert_eq!(of_delete(Fields::new(&[], &query)).expect("ok").if_size, Some(7));
    }
}
