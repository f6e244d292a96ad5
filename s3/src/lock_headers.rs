//! Object lock in the headers of requests: the lock that a new version is to get, and the wish to bypass governance.
//!
//! Source: "Locking objects with Object Lock" and the API Reference of PutObject (AWS). What cannot be read is refused, and
//! so is a header on an operation that has no use for it: a lock that was asked for and is not there loses data.

use crate::auth;
use crate::call::Call;
use crate::checksum;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::fields::Fields;
use cairn_engine::{BucketSettings, ChecksumAlgorithm, ObjectLock, Retention, RetentionMode};
use cairn_http1::parse_rfc3339_millis;
use cairn_model::Timestamp;

const MODE: &str = "x-amz-object-lock-mode";
const RETAIN_UNTIL: &str = "x-amz-object-lock-retain-until-date";
const LEGAL_HOLD: &str = "x-amz-object-lock-legal-hold";
const BYPASS: &str = "x-amz-bypass-governance-retention";
const BUCKET_LOCK: &str = "x-amz-bucket-object-lock-enabled";

/// The operations that make a version, which may be locked from its beginning.
const MAKE_VERSIONS: &[&str] = &["PutObject", "CopyObject", "CreateMultipartUpload"];
/// The headers of this file, with the operations (by their names in the table) that have a use for each.
const PLACES: &[(&str, &[&str])] = &[
    (MODE, MAKE_VERSIONS),
    (RETAIN_UNTIL, MAKE_VERSIONS),
    (LEGAL_HOLD, MAKE_VERSIONS),
    (BYPASS, &["DeleteObject", "PutObjectRetention"]),
    (BUCKET_LOCK, &["CreateBucket"]),
];

/// The last millisecond of the year 9999, the last that a date in ISO 8601 can name: fractions that are rounded up and
/// offsets reach beyond it.
const UNTIL_MAX: u64 = 253_402_300_799_999;

/// Refuses lock headers that the operation would ignore.
///
/// # Errors
/// `InvalidRequest`.
pub(crate) fn check_places(fields: Fields<'_>, operation: &str) -> S3Result<()> {
    for (name, operations) in PLACES {
        let asked = fields.amz(name).is_some_and(|value| !value.eq_ignore_ascii_case("false"));
        if asked && !operations.contains(&operation) {
            let message = format!("{operation} has no use for the header {name}: leave it away.");
            return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
        }
    }
    Ok(())
}

/// The lock that the headers ask for; the engine adds the bucket's default retention where they have none.
///
/// # Errors
/// `InvalidRequest` when the bucket has no object lock; `InvalidArgument` for a mode without a date or the reverse, a mode
/// or a hold that does not exist, and a date that cannot be read or is past.
pub(crate) fn from_request(
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
            mode: mode_of(mode)
                .ok_or_else(|| S3Error::invalid_argument(MODE, mode, "Unknown wormMode directive."))?,
            until: future(RETAIN_UNTIL, until, now)?,
        }),
        (Some(_), None) => return Err(incomplete(RETAIN_UNTIL)),
        (None, Some(_)) => return Err(incomplete(MODE)),
    };
    let legal_hold = match hold {
        None => None,
        Some(text) => Some(hold_of(text).ok_or_else(|| {
            let message = "Legal Hold must be either of 'ON' or 'OFF'";
            S3Error::invalid_argument(LEGAL_HOLD, text, message)
        })?),
    };
    Ok(ObjectLock { retention, legal_hold })
}

fn incomplete(missing: &'static str) -> S3Error {
    let message = "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied";
    S3Error::invalid_argument(missing, "", message)
}

/// Refuses a PutObject that asks for a lock and declares no digest of its body.
///
/// # Errors
/// `InvalidRequest`.
pub(crate) fn check_declared_digest(fields: Fields<'_>) -> S3Result<()> {
    let locks = [MODE, RETAIN_UNTIL, LEGAL_HOLD].iter().any(|name| fields.amz(name).is_some());
    let checksum =
        |name: &str| ChecksumAlgorithm::ALL.into_iter().any(|known| checksum::header(known) == name);
    let digest = |name: &str| name == "content-md5" || checksum(name);
    if !locks || fields.headers().iter().any(|(name, _)| digest(name)) {
        return Ok(());
    }
    let message = "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock \
                   parameters";
    Err(S3Error::with_message(ErrorCode::InvalidRequest, message))
}

/// Refuses what only buckets with object lock have.
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

/// Whether the request bypasses governance retention: it asks for it, and who sent it may.
///
/// # Errors
/// `InvalidArgument` when the bucket has no object lock, or the header neither `true` nor `false`; `AccessDenied` for who may
/// not manage the bucket, whether or not there is anything to bypass.
pub(crate) fn bypasses_governance(call: &Call<'_>, settings: &BucketSettings) -> S3Result<bool> {
    if !asks_for_bypass(call.fields, settings)? {
        return Ok(false);
    }
    auth::authorize_bypass(&call.authentication.principal, call.target.bucket_text())?;
    Ok(true)
}

fn asks_for_bypass(fields: Fields<'_>, settings: &BucketSettings) -> S3Result<bool> {
    let Some(text) = fields.amz(BYPASS) else { return Ok(false) };
    if !settings.object_lock {
        let message = "x-amz-bypass-governance-retention is only applicable to Object Lock enabled buckets.";
        return Err(S3Error::invalid_argument(BYPASS, text, message));
    }
    flag(BYPASS, text)
}

/// Whether CreateBucket is to make a bucket with object lock.
///
/// # Errors
/// `InvalidArgument` for a value that is neither `true` nor `false`.
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

/// A retention mode by its name, in headers and XML.
pub(crate) fn mode_of(name: &str) -> Option<RetentionMode> {
    [RetentionMode::Governance, RetentionMode::Compliance].into_iter().find(|mode| mode_name(*mode) == name)
}

/// A mode's name.
pub(crate) const fn mode_name(mode: RetentionMode) -> &'static str {
    match mode {
        RetentionMode::Governance => "GOVERNANCE",
        RetentionMode::Compliance => "COMPLIANCE",
    }
}

/// A legal hold by its name, in headers and XML.
pub(crate) fn hold_of(name: &str) -> Option<bool> {
    [true, false].into_iter().find(|hold| hold_name(*hold) == name)
}

/// A legal hold's name.
pub(crate) const fn hold_name(legal_hold: bool) -> &'static str {
    if legal_hold { "ON" } else { "OFF" }
}

/// Reads a date of ISO 8601, with or without fraction and offset, that lies ahead of `now`.
///
/// # Errors
/// `InvalidArgument` that names the `argument`.
pub(crate) fn future(argument: &'static str, text: &str, now: Timestamp) -> S3Result<Timestamp> {
    let Some(millis) = parse_rfc3339_millis(text).filter(|millis| *millis <= UNTIL_MAX) else {
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
    use super::{
        BYPASS, LEGAL_HOLD, MODE, PLACES, RETAIN_UNTIL, asks_for_bypass, bucket_lock, check_declared_digest,
        check_places, from_request,
    };
    use crate::errors::S3Result;
    use crate::fields::Fields;
    use crate::operations::OPERATIONS;
    use crate::query::Query;
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
        from_request(Fields::new(&headers, &Query::default()), settings, NOW)
    }

    #[test]
    fn headers_say_retention_and_hold_apart_from_each_other() {
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
    fn half_a_retention_a_past_date_and_unknown_words_are_refused() {
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

    /// Any header that began as those of checksums do counted as one.
    #[test]
    fn a_put_with_a_lock_declares_a_digest_in_a_header() {
        let query = Query::parse(Some("x-amz-checksum-crc32=AAAAAA%3D%3D")).expect("parses");
        let hold: (&str, &[u8]) = (LEGAL_HOLD, b"ON");
        for (headers, allowed) in [
            (&[hold][..], false),
            (&[hold, ("content-md5", b"x")], true),
            (&[hold, ("x-amz-checksum-sha256", b"x")], true),
            (&[hold, ("x-amz-checksum-crc64nvme", b"x")], true),
            (&[hold, ("x-amz-checksum-mode", b"ENABLED")], false),
            (&[hold, ("x-amz-checksum-type", b"FULL_OBJECT"), ("x-amz-checksum-algorithm", b"CRC32")], false),
            (&[], true),
        ] {
            assert_eq!(check_declared_digest(Fields::new(headers, &query)).is_ok(), allowed, "{headers:?}");
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

    #[test]
    fn a_lock_header_is_refused_where_it_would_be_ignored() {
        let query = Query::default();
        for (name, operations) in PLACES {
            let headers: &[(&str, &[u8])] = &[(name, b"true")];
            let fields = Fields::new(headers, &query);
            assert_eq!(check_places(fields, "GetObject").expect_err(name).code(), "InvalidRequest");
            for operation in *operations {
                assert!(OPERATIONS.iter().any(|row| row.name == *operation), "{operation}");
                assert!(check_places(fields, operation).is_ok(), "{name} {operation}");
            }
        }
        let headers: &[(&str, &[u8])] = &[("x-amz-bucket-object-lock-enabled", b"false")];
        assert!(check_places(Fields::new(headers, &query), "PutObject").is_ok());
        assert!(!bucket_lock(Fields::new(headers, &query)).expect("ok"));
    }
}
