//! Object lock headers: the lock of a new version, and the bypass of governance retention.
//!
//! Source: "Locking objects with Object Lock" and the API Reference of PutObject (AWS). Invalid values are refused.
//! `misplaced_headers.rs` refuses these headers on operations that have no use for them.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::request::fields::Fields;
use crate::xml::reader::{Element, shortened};
use cairn_engine::{BucketSettings, ObjectLock, Retention, RetentionMode};
use cairn_http1::parse_rfc3339_millis;
use cairn_model::Timestamp;

pub(crate) const MODE: &str = "x-amz-object-lock-mode";
pub(crate) const RETAIN_UNTIL: &str = "x-amz-object-lock-retain-until-date";
pub(crate) const LEGAL_HOLD: &str = "x-amz-object-lock-legal-hold";
pub(crate) const BYPASS: &str = "x-amz-bypass-governance-retention";
pub(crate) const BUCKET_LOCK: &str = "x-amz-bucket-object-lock-enabled";

/// Returns the lock that the headers of a new version ask for. The engine adds the bucket's default retention if they
/// have none.
///
/// # Errors
/// `InvalidRequest` if the bucket has no object lock; `InvalidArgument` for a mode without a date or a date without a
/// mode, for an unknown mode or hold, and for a date that is invalid or in the past.
pub(crate) fn of_new_version(
    fields: Fields<'_>,
    settings: &BucketSettings,
    now: Timestamp,
) -> S3Result<ObjectLock> {
    let (mode, until, hold) = (fields.amz(MODE), fields.amz(RETAIN_UNTIL), fields.amz(LEGAL_HOLD));
    if mode.is_none() && until.is_none() && hold.is_none() {
        return Ok(ObjectLock::default());
    }
    require_object_lock(settings)?;
    let retention = match (mode, until) {
        (None, None) => None,
        (Some(mode), Some(until)) => Some(Retention {
            mode: RetentionMode::parse(mode)
                .ok_or_else(|| S3Error::invalid_argument(MODE, mode, "Unknown wormMode directive."))?,
            until: parse_future_date(RETAIN_UNTIL, until, now)?,
        }),
        (Some(_), None) => return Err(incomplete(RETAIN_UNTIL)),
        (None, Some(_)) => return Err(incomplete(MODE)),
    };
    let legal_hold = match hold {
        None => None,
        Some(text) => Some(parse_hold(text).ok_or_else(|| {
            let message = "Legal Hold must be either of 'ON' or 'OFF'";
            S3Error::invalid_argument(LEGAL_HOLD, text, message)
        })?),
    };
    Ok(ObjectLock { retention, legal_hold })
}

fn incomplete(missing: &'static str) -> S3Error {
    let message = "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied";
    S3Error::invalid_argument_name(missing, message)
}

/// Refuses requests that only buckets with object lock allow.
///
/// # Errors
/// `InvalidRequest`.
pub(crate) fn require_object_lock(settings: &BucketSettings) -> S3Result<()> {
    if settings.object_lock {
        return Ok(());
    }
    let message = "Bucket is missing Object Lock Configuration";
    Err(S3Error::with_message(ErrorCode::InvalidRequest, message))
}

/// Returns whether the request asks to bypass governance retention, before anything is checked.
pub(crate) fn requests_bypass(fields: Fields<'_>) -> bool {
    fields.amz(BYPASS).is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

/// Returns whether the request asks to bypass governance retention.
///
/// # Errors
/// `InvalidArgument` when the bucket has no object lock, or the header is neither `true` nor `false`.
pub(crate) fn asks_for_bypass(fields: Fields<'_>, settings: &BucketSettings) -> S3Result<bool> {
    let Some(text) = fields.amz(BYPASS) else { return Ok(false) };
    if !settings.object_lock {
        let message = "x-amz-bypass-governance-retention is only applicable to Object Lock enabled buckets.";
        return Err(S3Error::invalid_argument_name(BYPASS, message));
    }
    flag(BYPASS, text)
}

/// Returns whether CreateBucket is to make a bucket with object lock.
///
/// # Errors
/// `InvalidArgument` for a value other than `true` and `false`.
pub(crate) fn bucket_lock(fields: Fields<'_>) -> S3Result<bool> {
    fields.amz(BUCKET_LOCK).map_or(Ok(false), |text| flag(BUCKET_LOCK, text))
}

fn flag(name: &'static str, text: &str) -> S3Result<bool> {
    if text.eq_ignore_ascii_case("true") {
        Ok(true)
    } else if text.eq_ignore_ascii_case("false") {
        Ok(false)
    } else {
        Err(S3Error::invalid_argument(name, text, format!("{name} is either true or false.")))
    }
}

/// Parses a legal hold of a header or of XML.
pub(crate) fn parse_hold(name: &str) -> Option<bool> {
    [true, false].into_iter().find(|hold| hold_name(*hold) == name)
}

/// Returns a legal hold's name.
pub(crate) const fn hold_name(legal_hold: bool) -> &'static str {
    if legal_hold { "ON" } else { "OFF" }
}

/// Refuses an element of a document that is not implemented, such as an event hold. A lock that is asked for is never ignored.
///
/// # Errors
/// `NotImplemented`.
pub(crate) fn refuse_other_children(element: &Element, known: &[&str]) -> S3Result<()> {
    let Some(other) = element.child_beyond(known) else { return Ok(()) };
    let (name, known) = (shortened(other.name()), known.join(", "));
    Err(S3Error::not_implemented(format!("{name} is not implemented: {} has {known}.", element.name())))
}

/// Parses an ISO 8601 date, with or without fraction and offset, that must be later than `now`.
///
/// # Errors
/// `InvalidArgument`, which names `argument`.
pub(crate) fn parse_future_date(argument: &'static str, text: &str, now: Timestamp) -> S3Result<Timestamp> {
    // Rounded-up fractions and offsets can exceed the latest time.
    let Some(millis) = parse_rfc3339_millis(text).filter(|millis| *millis <= Retention::UNTIL_MAX.0) else {
        let message = "The retain until date must be provided in ISO 8601 format";
        return Err(S3Error::invalid_argument(argument, text, message));
    };
    if millis <= now.0 {
        return Err(S3Error::invalid_argument(
            argument,
            text,
            "The retain until date must be in the future!",
        ));
    }
    Ok(Timestamp(millis))
}

#[cfg(test)]
mod tests {
    use super::{BYPASS, LEGAL_HOLD, MODE, RETAIN_UNTIL, asks_for_bypass, of_new_version};
    use crate::errors::S3Result;
    use crate::request::fields::Fields;
    use crate::request::query::Query;
    use cairn_engine::{BucketSettings, ObjectLock, Retention, RetentionMode};
    use cairn_model::Timestamp;

    /// 2026-11-21T05:00:00Z
    const NOW: Timestamp = Timestamp(1_795_237_200_000);

    fn locking() -> BucketSettings {
        BucketSettings { object_lock: true, ..BucketSettings::default() }
    }

    fn read(headers: &[(&str, &str)], settings: &BucketSettings) -> S3Result<ObjectLock> {
        let headers: Vec<(&str, &[u8])> =
            headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        of_new_version(Fields::new(&headers, &Query::default()), settings, NOW)
    }

    #[test]
    fn retention_and_hold_are_independent() {
        assert_eq!(read(&[], &BucketSettings::default()).expect("ok"), ObjectLock::default());
        let later = Timestamp(NOW.0 + 1000);
        for (until, mode) in [
            ("2026-11-21T05:00:01Z", "GOVERNANCE"),
            ("2026-11-21T05:00:01.000000Z", "GOVERNANCE"),
            ("2026-11-21T06:00:01+01:00", "COMPLIANCE"),
        ] {
            let lock = read(&[(MODE, mode), (RETAIN_UNTIL, until)], &locking()).expect(until);
            let mode =
                if mode == "GOVERNANCE" { RetentionMode::Governance } else { RetentionMode::Compliance };
            assert_eq!(
                lock,
                ObjectLock { retention: Some(Retention { mode, until: later }), legal_hold: None }
            );
        }
        assert_eq!(read(&[(LEGAL_HOLD, "ON")], &locking()).expect("ok").legal_hold, Some(true));
        assert_eq!(read(&[(LEGAL_HOLD, "OFF")], &locking()).expect("ok").legal_hold, Some(false));
    }

    #[test]
    fn invalid_lock_headers_are_refused() {
        let later = (RETAIN_UNTIL, "2027-01-01T00:00:00Z");
        for headers in [
            &[(MODE, "GOVERNANCE")][..],
            &[later],
            &[(MODE, "governance"), later],
            &[(MODE, ""), later],
            &[(MODE, "GOVERNANCE"), (RETAIN_UNTIL, "2026-11-21T05:00:00Z")],
            &[(MODE, "GOVERNANCE"), (RETAIN_UNTIL, "2027-01-01")],
            &[(MODE, "GOVERNANCE"), (RETAIN_UNTIL, "9999-12-31T23:59:59.9999Z")],
            &[(LEGAL_HOLD, "on")],
            &[(LEGAL_HOLD, "")],
        ] {
            let refused = read(headers, &locking()).expect_err("refused");
            assert_eq!((refused.status(), refused.code()), (400, "InvalidArgument"), "{headers:?}");
            let without = read(headers, &BucketSettings::default()).expect_err("refused");
            assert_eq!((without.status(), without.code()), (400, "InvalidRequest"), "{headers:?}");
        }
    }

    #[test]
    fn bypass_needs_a_bucket_with_object_lock() {
        let query = Query::default();
        for (value, expected) in [("true", Some(true)), ("False", Some(false)), ("yes", None), ("", None)] {
            let headers: &[(&str, &[u8])] = &[(BYPASS, value.as_bytes())];
            let fields = Fields::new(headers, &query);
            assert_eq!(asks_for_bypass(fields, &locking()).ok(), expected, "{value}");
            let refused = asks_for_bypass(fields, &BucketSettings::default()).expect_err(value);
            assert_eq!((refused.status(), refused.code()), (400, "InvalidArgument"), "{value}");
        }
        assert!(!asks_for_bypass(Fields::new(&[], &query), &BucketSettings::default()).expect("ok"));
    }
}
