//! Parses write conditions: headers of PUT and DELETE to the engine's `WriteCondition`.
//!
//! The engine evaluates them inside the commit. Unsupported conditions are refused, never ignored: to ignore one would
//! overwrite or delete data. `cairn_http1` evaluates the conditions of reads.
//!
//! Source: "Conditional requests" and the API Reference of PutObject and DeleteObject (AWS); RFC 9110 section 13 for
//! `If-None-Match` with entity tags, which AWS does not have on writes.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::request::fields::Fields;
use cairn_engine::{EngineError, EtagMatch, ObjectInfo, Precondition, WriteCondition};
use cairn_http1::{Comparison, entity_tags, parse_http_date, parse_rfc3339_millis};

/// Most tags in one `If-Match` or `If-None-Match`. The limit of the head bounds their length.
const TAGS_MAX: usize = 64;

const PUT_DATES: &str = "If-Modified-Since and If-Unmodified-Since are not implemented for writes: use If-Match with \
                         the ETag, or If-None-Match: *.";
const DELETE_DATES: &str = "If-Modified-Since and If-Unmodified-Since are not implemented for DeleteObject: use \
                            x-amz-if-match-last-modified-time, or If-Match with the ETag.";

/// Parses the conditions of a PUT.
///
/// # Errors
/// `NotImplemented` for a condition that S3 does not have on PUT.
pub(crate) fn of_put(fields: Fields<'_>) -> S3Result<WriteCondition> {
    if has_dates(fields) {
        return Err(S3Error::not_implemented(PUT_DATES));
    }
    refuse_delete_conditions(fields)?;
    of_tags(fields)
}

/// Parses the conditions of a DELETE.
///
/// # Errors
/// `InvalidArgument` for an invalid size or time, `NotImplemented` for a condition that S3 does not have on DELETE.
pub(crate) fn of_delete(fields: Fields<'_>) -> S3Result<WriteCondition> {
    if has_dates(fields) {
        return Err(S3Error::not_implemented(DELETE_DATES));
    }
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
    Ok(WriteCondition { if_size, if_last_modified_seconds, ..of_tags(fields)? })
}

/// Returns whether the response will reveal something about the stored object: its entity tag, size or time. `If-None-Match: *`
/// does not count: it reveals only whether an object exists, as on AWS.
pub(crate) fn reveals_stored_object(fields: Fields<'_>) -> bool {
    fields.get("if-match").is_some()
        || fields.get("if-none-match").is_some_and(|value| value != b"*")
        || DELETE_CONDITIONS.into_iter().any(|name| fields.amz(name).is_some())
}

/// The conditions on one object of a DeleteObjects request, as its document has them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EntryConditions<'a> {
    /// One entity tag, or `*`.
    pub(crate) etag: Option<&'a str>,
    /// Bytes.
    pub(crate) size: Option<&'a str>,
    /// An HTTP date, an ISO 8601 date, or seconds since the Unix epoch.
    pub(crate) last_modified: Option<&'a str>,
}

/// Parses the conditions on one object of a DeleteObjects request.
///
/// # Errors
/// `InvalidArgument` for an invalid size or time.
pub(crate) fn of_entry(entry: EntryConditions<'_>) -> S3Result<WriteCondition> {
    let if_match = entry.etag.map(|text| match text {
        "*" => EtagMatch::Any,
        _ => {
            let inner = text.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(text);
            EtagMatch::OneOf(vec![inner.to_owned()])
        }
    });
    let invalid = |name, text, message: &'static str| S3Error::invalid_argument(name, text, message);
    let if_size = entry
        .size
        .map(|text| parse_size(text).ok_or_else(|| invalid("Size", text, "Size is not a number of bytes.")));
    let if_last_modified_seconds = entry.last_modified.map(|text| {
        let seconds = parse_time(text).or_else(|| Some(parse_rfc3339_millis(text)? / 1000));
        seconds.ok_or_else(|| invalid("LastModifiedTime", text, "LastModifiedTime is not a date."))
    });
    Ok(WriteCondition {
        if_match,
        if_size: if_size.transpose()?,
        if_last_modified_seconds: if_last_modified_seconds.transpose()?,
        ..WriteCondition::default()
    })
}

/// Refuses conditions on a step of a multipart upload. Only the completion creates an object, so only it has
/// conditions.
///
/// # Errors
/// `NotImplemented` for any condition on an object.
pub(crate) fn refuse_on_upload_step(fields: Fields<'_>, operation: &str) -> S3Result<()> {
    refuse_all(fields, operation, "CompleteMultipartUpload has If-Match and If-None-Match")
}

/// Refuses conditions on a request whose objects are named in its document.
///
/// # Errors
/// `NotImplemented` for any condition.
pub(crate) fn refuse_on_batch(fields: Fields<'_>, operation: &str) -> S3Result<()> {
    refuse_all(fields, operation, "each Object of the document has ETag, Size and LastModifiedTime")
}

fn refuse_all(fields: Fields<'_>, operation: &str, instead: &str) -> S3Result<()> {
    const PLAIN: [&str; 4] = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];
    let plain = PLAIN.into_iter().find(|name| fields.get(name).is_some());
    let Some(name) = plain.or_else(|| DELETE_CONDITIONS.into_iter().find(|name| fields.amz(name).is_some()))
    else {
        return Ok(());
    };
    Err(S3Error::not_implemented(format!("{name} is not implemented for {operation}: omit it; {instead}.")))
}

/// Refuses a PUT whose condition does not hold now, so that its body need not be sent. The commit checks it again.
///
/// # Errors
/// `PreconditionFailed`, `NoSuchKey`, and errors of the lookup.
pub(crate) fn check_early(
    condition: &WriteCondition,
    current: Result<ObjectInfo, EngineError>,
) -> S3Result<()> {
    let current = match current {
        Ok(info) => Some(info),
        Err(EngineError::NoSuchKey | EngineError::DeleteMarker { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    condition.check(current.as_ref()).map_err(|error| write_error(error, condition))
}

/// Maps an error of a write. A conflict of a conditional write has its own code, and names the condition.
pub(crate) fn write_error(error: EngineError, condition: &WriteCondition) -> S3Error {
    let given = [
        (condition.if_match.is_some(), Precondition::IfMatch),
        (condition.if_none_match.is_some(), Precondition::IfNoneMatch),
        (condition.if_size.is_some(), Precondition::IfMatchSize),
        (condition.if_last_modified_seconds.is_some(), Precondition::IfMatchLastModifiedTime),
    ];
    let first = given.iter().find(|(is_given, _)| *is_given);
    match (error, first) {
        // Also beside `If-Match`, which may hold.
        (EngineError::PreconditionFailed(failed @ Precondition::IfNoneMatch), _)
            if condition.must_be_absent && condition.if_none_match.is_none() =>
        {
            S3Error::with_message(ErrorCode::PreconditionFailed, ONLY_IF_ABSENT)
                .element("Condition", failed.name())
        }
        (EngineError::Conflict, Some((_, condition))) => {
            S3Error::new(ErrorCode::ConditionalRequestConflict).element("Condition", condition.name())
        }
        (other, _) => other.into(),
    }
}

/// The message of a write that would replace an object, although the client may only write absent ones.
const ONLY_IF_ABSENT: &str = "The key has a current object, and the policies of the account allow objects to be created, not \
                              replaced (only_if_absent): choose another key.";
const IF_MATCH_SIZE: &str = "x-amz-if-match-size";
const IF_MATCH_TIME: &str = "x-amz-if-match-last-modified-time";
/// The conditions that only DeleteObject has.
const DELETE_CONDITIONS: [&str; 2] = [IF_MATCH_SIZE, IF_MATCH_TIME];

fn has_dates(fields: Fields<'_>) -> bool {
    fields.get("if-modified-since").is_some() || fields.get("if-unmodified-since").is_some()
}

fn refuse_delete_conditions(fields: Fields<'_>) -> S3Result<()> {
    for name in DELETE_CONDITIONS {
        if fields.amz(name).is_some() {
            return Err(S3Error::not_implemented(format!(
                "{name} is implemented for DeleteObject only: use If-Match with the ETag."
            )));
        }
    }
    Ok(())
}

/// Parses digits without a sign.
fn parse_size(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Parses an HTTP date, or seconds since the Unix epoch, which some SDKs send.
fn parse_time(text: &str) -> Option<u64> {
    parse_http_date(text.as_bytes())
        .and_then(|seconds| u64::try_from(seconds).ok())
        .or_else(|| parse_size(text))
}

/// Parses the conditions on the entity tag, which all writes have. `If-Match` compares strongly, so that weak tags match
/// nothing; `If-None-Match` compares weakly (RFC 9110 sections 13.1.1 and 13.1.2). If both are sent, both must hold.
fn of_tags(fields: Fields<'_>) -> S3Result<WriteCondition> {
    let parse =
        |name, comparison| fields.get(name).map(|value| etag_match(name, value, comparison)).transpose();
    let if_match = parse("if-match", Comparison::Strong)?;
    let if_none_match = parse("if-none-match", Comparison::Weak)?;
    if if_none_match == Some(EtagMatch::OneOf(Vec::new())) {
        // It would always hold. A client that sends an empty tag means something else.
        return Err(S3Error::invalid_request("If-None-Match names no entity tag."));
    }
    Ok(WriteCondition { if_match, if_none_match, ..WriteCondition::default() })
}

fn etag_match(name: &str, value: &[u8], comparison: Comparison) -> S3Result<EtagMatch> {
    if value == b"*" {
        return Ok(EtagMatch::Any);
    }
    let unreadable = || S3Error::invalid_request(format!("{name} cannot be read."));
    let tags = entity_tags(value, comparison).map(|tag| std::str::from_utf8(tag).map(str::to_owned));
    let tags = tags.take(TAGS_MAX + 1).collect::<Result<Vec<_>, _>>().map_err(|_| unreadable())?;
    if tags.len() > TAGS_MAX { Err(unreadable()) } else { Ok(EtagMatch::OneOf(tags)) }
}

#[cfg(test)]
mod tests {
    use super::{EntryConditions, of_delete, of_entry, of_put, refuse_on_upload_step, reveals_stored_object};
    use crate::errors::S3Result;
    use crate::request::fields::Fields;
    use crate::request::query::Query;
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
    fn put_accepts_if_match_and_if_none_match() {
        assert_eq!(put(&[("if-none-match", b"*")]).expect("ok"), WriteCondition::if_absent());
        assert_eq!(put(&[]).expect("ok"), WriteCondition::default());
        let both = put(&[("if-none-match", b"abc, W/\"w\", \"a,b\""), ("if-match", b"*")]).expect("ok");
        let tags_of = ["abc", "w", "a,b"].map(str::to_owned).to_vec();
        assert_eq!(both.if_none_match, Some(EtagMatch::OneOf(tags_of)));
        assert_eq!(both.if_match, Some(EtagMatch::Any));
        for bad in [&b""[..], b" , ", b"\xff", "\"a\",".repeat(65).as_bytes()] {
            assert_eq!(put(&[("if-none-match", bad)]).expect_err("refused").status(), 400);
        }
        assert_eq!(tags(put(&[("if-match", b"\"abc\"")]).expect("ok")), ["abc"]);
        assert_eq!(tags(put(&[("if-match", b"abc, \"d-2\", W/\"w\"")]).expect("ok")), ["abc", "d-2"]);
        assert!(matches!(put(&[("if-match", b"*")]).expect("ok").if_match, Some(EtagMatch::Any)));
        assert!(tags(put(&[("if-match", b"W/\"w\"")]).expect("ok")).is_empty());
    }

    #[test]
    fn unsupported_conditions_on_put_are_501() {
        for headers in [
            &[("if-modified-since", &b"Sat, 21 Nov 2026 05:00:00 GMT"[..])][..],
            &[("if-unmodified-since", b"x")],
            &[("x-amz-if-match-size", b"1")],
        ] {
            assert_eq!(put(headers).expect_err("refused").status(), 501, "{headers:?}");
        }
    }

    #[test]
    fn delete_parses_tag_size_and_time() {
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
        assert_eq!(delete(&[("if-none-match", b"*")]).expect("ok"), WriteCondition::if_absent());
    }

    #[test]
    fn entries_of_a_batch_have_tag_size_and_time() {
        let entry = |etag, size, last_modified| of_entry(EntryConditions { etag, size, last_modified });
        assert_eq!(entry(None, None, None).expect("ok"), WriteCondition::default());
        assert_eq!(entry(Some("*"), None, None).expect("ok").if_match, Some(EtagMatch::Any));
        for tag in ["\"abc-2\"", "abc-2"] {
            assert_eq!(tags(entry(Some(tag), None, None).expect("ok")), ["abc-2"]);
        }
        for time in ["Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.123Z", "784111777"] {
            let condition = entry(None, Some("42"), Some(time)).expect(time);
            assert_eq!(
                (condition.if_size, condition.if_last_modified_seconds),
                (Some(42), Some(784_111_777))
            );
        }
        for (size, time) in
            [(Some("-1"), None), (Some(""), None), (None, Some("yesterday")), (None, Some(""))]
        {
            assert_eq!(entry(None, size, time).expect_err("refused").code(), "InvalidArgument");
        }
    }

    /// They were ignored: a client that began an upload with `If-None-Match: *` overwrote the object.
    #[test]
    fn conditions_on_upload_steps_are_501() {
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
                refuse_on_upload_step(Fields::new(headers, &Query::default()), "UploadPart").expect_err(name);
            assert_eq!(refused.status(), 501);
            assert!(refused.message().starts_with(name) && refused.message().contains("UploadPart"));
        }
        let query = Query::parse(Some("X-Amz-If-Match-Size=7")).expect("parses");
        assert!(refuse_on_upload_step(Fields::new(&[], &query), "AbortMultipartUpload").is_err());
        assert!(
            refuse_on_upload_step(Fields::new(&[("content-type", b"x")], &Query::default()), "x").is_ok()
        );
    }

    /// A client that may only write could find out the entity tag by trying.
    #[test]
    fn conditions_on_a_tag_reveal_the_object() {
        let reveals = |name, value: &'static [u8]| {
            reveals_stored_object(Fields::new(&[(name, value)], &Query::default()))
        };
        assert!(reveals("if-match", b"*") && reveals("if-none-match", b"\"abc\""));
        assert!(!reveals("if-none-match", b"*"));
    }

    #[test]
    fn hoisted_conditions_of_delete_count() {
        let query = Query::parse(Some("X-Amz-If-Match-Size=7")).expect("parses");
        assert_eq!(of_delete(Fields::new(&[], &query)).expect("ok").if_size, Some(7));
    }
}
