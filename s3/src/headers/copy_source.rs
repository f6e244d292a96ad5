//! The copy source of CopyObject and UploadPartCopy: its conditions and its range.
//!
//! Source: API Reference, CopyObject and UploadPartCopy.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::version::INVALID_ID;
use crate::limits::REQUEST_PAYLOAD_BYTES_MAX;
use crate::request::fields::Fields;
use crate::request::target::Target;
use cairn_engine::{EngineError, ObjectInfo};
use cairn_http1::{Conditions, Validators, Verdict, encode_path};
use cairn_model::{BucketName, ObjectKey, Timestamp, VersionName};
use std::ops::Range;

/// The header that names the source.
pub(crate) const COPY_SOURCE: &str = "x-amz-copy-source";
/// The header that names the bytes of the source.
pub(crate) const COPY_RANGE: &str = "x-amz-copy-source-range";

/// The object, or version of one, to copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CopySource {
    pub(crate) bucket: BucketName,
    pub(crate) key: ObjectKey,
    /// `None`: the current version.
    pub(crate) version: Option<VersionName>,
}

impl CopySource {
    /// Parses `bucket/key` or `/bucket/key`, percent-decoded once, and an optional `?versionId=`. A plus is a space, as in
    /// HTML forms and on AWS; `%2B` is a plus.
    ///
    /// # Errors
    /// `InvalidArgument` for a text without a key or with an invalid version; those of [`Target`] for an invalid bucket
    /// or key.
    pub(crate) fn from_request(fields: Fields<'_>) -> S3Result<Self> {
        let text = fields.amz(COPY_SOURCE).unwrap_or_default();
        let invalid = |message: &'static str| S3Error::invalid_argument(COPY_SOURCE, text, message);
        let (path, version) = match text.split_once('?') {
            None => (text, None),
            Some((path, query)) => {
                let version = query.strip_prefix("versionId=").and_then(VersionName::parse);
                (path, Some(version.ok_or_else(|| invalid(INVALID_ID))?))
            }
        };
        let path = path.replace('+', "%20");
        let decoded = cairn_http1::decode(&path)
            .map_err(|_| invalid("Copy Source must be percent-encoded UTF-8: sourcebucket/sourcekey"))?;
        let path = decoded.strip_prefix('/').unwrap_or(&decoded);
        let (bucket, key) =
            path.split_once('/').filter(|(bucket, key)| !bucket.is_empty() && !key.is_empty()).ok_or_else(
                || invalid("Copy Source must mention the source bucket and key: sourcebucket/sourcekey"),
            )?;
        let target = Target::new(bucket, key);
        Ok(Self { bucket: target.bucket()?, key: target.key()?, version })
    }

    /// Returns whether the source is `key` in `bucket`, in any version.
    pub(crate) fn is(&self, bucket: &BucketName, key: &ObjectKey) -> bool {
        self.bucket == *bucket && self.key == *key
    }

    /// Makes an error one about the source: it names the source and not the destination, as on AWS.
    pub(crate) fn named(&self, error: S3Error) -> S3Error {
        let (bucket, key) = (self.bucket.as_str(), self.key.as_str());
        error
            .about_source()
            .element("BucketName", bucket)
            .element("Key", key)
            .element("Resource", format!("/{bucket}/{}", encode_path(key.as_bytes())))
    }

    /// Returns the error for a source that could not be opened.
    pub(crate) fn read_error(&self, error: EngineError) -> S3Error {
        self.named(match error {
            EngineError::DeleteMarker { .. } if self.version.is_some() => S3Error::with_message(
                ErrorCode::InvalidRequest,
                "The source of a copy request may not specifically refer to a delete marker by version id.",
            ),
            EngineError::NoSuchVersion if self.version.is_some_and(|version| !version.is_expected()) => {
                S3Error::invalid_argument_name(COPY_SOURCE, INVALID_ID)
            }
            other => other.into(),
        })
    }
}

/// Checks the conditions on the source.
///
/// # Errors
/// `PreconditionFailed` if one does not hold.
pub(crate) fn check_conditions(fields: Fields<'_>, source: &ObjectInfo, now: Timestamp) -> S3Result<()> {
    let bytes = |name| fields.amz(name).map(str::as_bytes);
    let conditions = Conditions {
        if_match: bytes("x-amz-copy-source-if-match"),
        if_none_match: bytes("x-amz-copy-source-if-none-match"),
        if_modified_since: bytes("x-amz-copy-source-if-modified-since"),
        if_unmodified_since: bytes("x-amz-copy-source-if-unmodified-since"),
    };
    let etag = source.etag.to_string();
    let validators = Validators { etag: &etag, last_modified_seconds: source.last_modified.seconds() };
    let failed = match conditions.evaluate(&validators, now.seconds()) {
        Verdict::Proceed => return Ok(()),
        Verdict::PreconditionFailed(name) => name,
        // A GET would be answered with 304.
        Verdict::NotModified if conditions.if_none_match.is_some() => "If-None-Match",
        Verdict::NotModified => "If-Modified-Since",
    };
    Err(S3Error::new(ErrorCode::PreconditionFailed).element("Condition", format!("{COPY_SOURCE}-{failed}")))
}

/// Checks the number of bytes to copy.
///
/// # Errors
/// `InvalidRequest` for more than 5 GiB.
pub(crate) fn check_size(size: u64) -> S3Result<()> {
    if size > REQUEST_PAYLOAD_BYTES_MAX {
        return Err(S3Error::with_message(
            ErrorCode::InvalidRequest,
            format!(
                "The specified copy source is larger than the maximum allowable size for a copy source: {REQUEST_PAYLOAD_BYTES_MAX}"
            ),
        ));
    }
    Ok(())
}

/// Returns the bytes of a source of `size` bytes that UploadPartCopy copies: those that `x-amz-copy-source-range` names, by
/// default all.
///
/// # Errors
/// `InvalidArgument` for a range of another form than `bytes=first-last`, and for one that ends after the object.
pub(crate) fn range_to_copy(fields: Fields<'_>, size: u64) -> S3Result<Range<u64>> {
    let Some(text) = fields.amz(COPY_RANGE) else { return Ok(0..size) };
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().ok()).flatten()
    };
    let bounds = text.strip_prefix("bytes=").and_then(|range| range.split_once('-'));
    let bounds = bounds.and_then(|(first, last)| Some((number(first)?, number(last)?)));
    let Some((first, last)) = bounds.filter(|(first, last)| first <= last) else {
        let message = "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are \
                       the zero-based offsets of the first and last bytes to copy";
        return Err(S3Error::invalid_argument(COPY_RANGE, text, message));
    };
    if first >= size {
        let message = "The specified copy range is invalid for the source object size";
        return Err(S3Error::invalid_request(message));
    }
    if last >= size {
        let message = format!("Range specified is not valid for source object of size: {size}");
        return Err(S3Error::invalid_argument(COPY_RANGE, text, message));
    }
    Ok(first..last + 1)
}

#[cfg(test)]
mod tests {
    use super::{CopySource, check_conditions, check_size, range_to_copy};
    use crate::errors::S3Result;
    use crate::request::fields::Fields;
    use crate::request::query::Query;
    use cairn_engine::{Attributes, ObjectInfo, ObjectLock};
    use cairn_model::{Etag, Timestamp, VersionId, VersionName};

    fn source(text: &str) -> S3Result<CopySource> {
        let headers: &[(&str, &[u8])] = &[("x-amz-copy-source", text.as_bytes())];
        CopySource::from_request(Fields::new(headers, &Query::default()))
    }

    #[test]
    fn source_is_decoded_once_with_or_without_leading_slash() {
        let id = VersionName::Id(VersionId(10));
        for (text, key, version) in [
            ("photos/a", "a", None),
            ("/photos/a", "a", None),
            ("%2Fphotos%2Fa", "a", None),
            ("photos/a%2520b", "a%20b", None),
            ("photos/a%2Bb/%C3%A4/%3F", "a+b/\u{e4}/?", None),
            ("photos/dir/my+file.txt", "dir/my file.txt", None),
            ("photos//a/../b/", "/a/../b/", None),
            ("photos/a?versionId=000000000000000a", "a", Some(id)),
            ("photos/a%3FversionId=x?versionId=null", "a?versionId=x", Some(VersionName::Null)),
        ] {
            let source = source(text).expect(text);
            assert_eq!((source.bucket.as_str(), source.key.as_str()), ("photos", key), "{text}");
            assert_eq!(source.version, version, "{text}");
        }
    }

    #[test]
    fn invalid_sources_are_refused() {
        for (text, code) in [
            ("", "InvalidArgument"),
            ("/", "InvalidArgument"),
            ("photos", "InvalidArgument"),
            ("photos/", "InvalidArgument"),
            ("//a", "InvalidArgument"),
            ("photos/%", "InvalidArgument"),
            ("photos/%ff", "InvalidArgument"),
            ("photos/a?versionId=", "InvalidArgument"),
            ("photos/a?versionId=%2F", "InvalidArgument"),
            ("photos/a?x=y", "InvalidArgument"),
            ("A/a", "InvalidBucketName"),
        ] {
            assert_eq!(source(text).expect_err(text).code(), code, "{text}");
        }
        assert_eq!(
            source(&format!("photos/{}", "k".repeat(1025))).expect_err("long").code(),
            "KeyTooLongError"
        );
    }

    #[test]
    fn failed_source_condition_is_412() {
        const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
        const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
        let tag = "ab".repeat(16);
        let object = |size| ObjectInfo {
            size,
            etag: Etag::single([0xab; 16]),
            last_modified: Timestamp(784_111_777_500),
            version: VersionId(1),
            is_null: true,
            imported: None,
            attributes: Attributes::default(),
            encrypted: false,
            lock: ObjectLock::default(),
            parts: Vec::new(),
        };
        let (matches, none, modified, unmodified) = (
            "x-amz-copy-source-if-match",
            "x-amz-copy-source-if-none-match",
            "x-amz-copy-source-if-modified-since",
            "x-amz-copy-source-if-unmodified-since",
        );
        for (headers, holds) in [
            (&[][..], true),
            (&[(matches, &*tag)][..], true),
            (&[(matches, "\"x\"")], false),
            (&[(none, "\"x\"")], true),
            (&[(none, &tag)], false),
            (&[(modified, EARLIER)], true),
            (&[(modified, DATE)], false),
            (&[(unmodified, DATE)], true),
            (&[(unmodified, EARLIER)], false),
            // The pairs that AWS names: the tag decides.
            (&[(matches, &*tag), (unmodified, EARLIER)], true),
            (&[(none, &*tag), (modified, EARLIER)], false),
            (&[(modified, LATER), (none, "x")], true),
        ] {
            let headers: Vec<(&str, &[u8])> =
                headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
            let query = Query::default();
            let checked =
                check_conditions(Fields::new(&headers, &query), &object(5), Timestamp(784_111_800_000));
            assert_eq!(
                checked.err().map(|error| error.code()),
                (!holds).then_some("PreconditionFailed"),
                "{headers:?}"
            );
        }
        assert!(check_size(5 << 30).is_ok());
        let large = check_size((5 << 30) + 1).expect_err("too large");
        assert_eq!((large.status(), large.code()), (400, "InvalidRequest"));
    }

    #[test]
    fn range_names_its_first_and_last_byte() {
        let range = |text: &str| {
            let headers: &[(&str, &[u8])] = &[("x-amz-copy-source-range", text.as_bytes())];
            range_to_copy(Fields::new(headers, &Query::default()), 10)
        };
        assert_eq!(range("bytes=0-0").expect("ok"), 0..1);
        assert_eq!(range("bytes=3-9").expect("ok"), 3..10);
        assert_eq!(range_to_copy(Fields::new(&[], &Query::default()), 10).expect("ok"), 0..10);
        assert_eq!(range("bytes=10-10").expect_err("beyond").code(), "InvalidRequest");
        for bad in [
            "",
            "bytes=",
            "0-1",
            "bytes=-1",
            "bytes=1-",
            "bytes=2-1",
            "bytes=0-10",
            "bytes=0-1,3-4",
            "bytes= 0-1",
            "bytes=+0-1",
            "bytes=0-18446744073709551615",
            "bytes=0-99999999999999999999",
        ] {
            assert_eq!(range(bad).expect_err(bad).code(), "InvalidArgument", "{bad}");
        }
    }
}
