//! From the path of a request to the bucket and key it names: path-style addressing only.
//!
//! `/` is the service, `/bucket` and `/bucket/` are the bucket, anything longer is an object. The bucket ends at
//! the first `/` as sent, so `%2F` belongs to a key; the rest is decoded once and otherwise kept: `//`, `.` and
//! `..` are ordinary text in a key. Names are checked later, once it is known who asks.

use crate::errors::{ErrorCode, S3Error, S3Result};
use cairn_model::{BucketName, InvalidObjectKey, ObjectKey};
use std::fmt;

/// What kind of resource a path names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Resource {
    /// The list of buckets.
    Service,
    /// A bucket.
    Bucket,
    /// An object.
    Object,
}

impl Resource {
    /// The form of its paths.
    pub(crate) const fn pattern(self) -> &'static str {
        match self {
            Self::Service => "/",
            Self::Bucket => "/{bucket}",
            Self::Object => "/{bucket}/{key}",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Service => "the service",
            Self::Bucket => "a bucket",
            Self::Object => "a key",
        })
    }
}

/// The decoded path; empty texts are absent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Target {
    bucket: String,
    key: String,
}

impl Target {
    /// Splits and decodes a raw path.
    ///
    /// # Errors
    /// `InvalidURI` for a broken escape, for what is not UTF-8 and for a path that does not begin with `/`.
    pub(crate) fn parse(raw_path: &str) -> S3Result<Self> {
        let path = raw_path.strip_prefix('/').ok_or(ErrorCode::InvalidURI)?;
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        let decode = |text| cairn_http1::decode(text).map_err(|_| ErrorCode::InvalidURI);
        Ok(Self { bucket: decode(bucket)?.into_owned(), key: decode(key)?.into_owned() })
    }

    /// A bucket and a key that were decoded already.
    pub(crate) fn new(bucket: &str, key: &str) -> Self {
        Self { bucket: bucket.to_owned(), key: key.to_owned() }
    }

    /// What the path names.
    pub(crate) fn resource(&self) -> Resource {
        match (self.bucket.is_empty(), self.key.is_empty()) {
            (true, true) => Resource::Service,
            (false, true) => Resource::Bucket,
            (_, false) => Resource::Object,
        }
    }

    /// The bucket as sent; empty for the service.
    pub(crate) fn bucket_text(&self) -> &str {
        &self.bucket
    }

    /// The key as sent, decoded; empty for the service and for buckets.
    pub(crate) fn key_text(&self) -> &str {
        &self.key
    }

    /// The bucket's name, checked.
    ///
    /// # Errors
    /// `InvalidBucketName`, with the rule that was broken.
    pub(crate) fn bucket(&self) -> S3Result<BucketName> {
        BucketName::parse(&self.bucket).map_err(|broken| {
            S3Error::with_message(
                ErrorCode::InvalidBucketName,
                format!("The specified bucket is not valid: {}.", broken.rule),
            )
        })
    }

    /// The object's key, checked.
    ///
    /// # Errors
    /// `KeyTooLongError`, with the sizes that AWS sends.
    pub(crate) fn key(&self) -> S3Result<ObjectKey> {
        ObjectKey::parse(&self.key).map_err(|invalid| match invalid {
            InvalidObjectKey::Empty => S3Error::new(ErrorCode::InvalidURI),
            InvalidObjectKey::TooLong(size) => S3Error::new(ErrorCode::KeyTooLongError)
                .element("Size", size.to_string())
                .element("MaxSizeAllowed", cairn_model::OBJECT_KEY_BYTES_MAX.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Resource, Target};

    fn parsed(path: &str) -> (String, String) {
        let target = Target::parse(path).expect(path);
        (target.bucket_text().to_owned(), target.key_text().to_owned())
    }

    #[test]
    fn a_slash_after_the_bucket_is_the_bucket_and_an_escaped_one_is_part_of_the_key() {
        for (path, resource) in [
            ("/", Resource::Service),
            ("/photos", Resource::Bucket),
            ("/photos/", Resource::Bucket),
            ("/photos/a", Resource::Object),
            ("/photos//", Resource::Object),
            ("/photos/%2F", Resource::Object),
        ] {
            assert_eq!(Target::parse(path).expect(path).resource(), resource, "{path}");
        }
        assert_eq!(parsed("/photos/a%2Fb/../c//d%20e+f/"), ("photos".into(), "a/b/../c//d e+f/".into()));
        assert_eq!(parsed("/photos/%252F"), ("photos".into(), "%2F".into()));
    }

    #[test]
    fn broken_paths_are_invalid_uris_and_broken_names_say_why() {
        for path in ["", "photos", "/photos/%", "/photos/%fe", "/%zz"] {
            assert_eq!(Target::parse(path).expect_err(path).code(), "InvalidURI");
        }
        let name = Target::parse("/A").expect("parses").bucket().expect_err("too short");
        assert_eq!((name.status(), name.code()), (400, "InvalidBucketName"));
        let long = Target::parse(&format!("/photos/{}", "k".repeat(1025))).expect("parses");
        assert_eq!(long.key().expect_err("too long").code(), "KeyTooLongError");
        assert_eq!(Target::parse("//key").expect("parses").bucket().expect_err("none").status(), 400);
    }
}
