//! Resources of requests, and the patterns that policies use for them.
//!
//! ```text
//! bucket:<bucket>              the bucket itself
//! bucket:<bucket>/<key>        the object with exactly this key
//! bucket:<bucket>/<prefix>*    the objects whose keys begin with this prefix, or all objects if it is empty
//! bucket:<prefix>*             the buckets whose names begin with this prefix, or all buckets if it is empty, and all
//!                              objects in them
//! ```
//! A pattern with a whole bucket name does not match the objects in the bucket, and a pattern for objects does not match
//! their bucket.

use cairn_model::{BUCKET_NAME_BYTES_MAX, BucketName, InvalidObjectKey, OBJECT_KEY_BYTES_MAX, ObjectKey};
use std::fmt;

const SCHEME: &str = "bucket:";
pub(super) const WILDCARD: char = '*';

/// The resource of a request. The key is the decoded one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource<'a> {
    /// A bucket.
    Bucket(&'a str),
    /// An object: its bucket and key.
    Object(&'a str, &'a str),
}

/// A resource pattern of a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResourcePattern {
    /// The bucket itself.
    Bucket(BucketName),
    /// The object with this key.
    Object(BucketName, ObjectKey),
    /// All objects whose keys begin with this prefix, which may be empty.
    Objects(BucketName, Box<str>),
    /// All buckets whose names begin with this prefix, which may be empty, and all objects in them.
    Buckets(Box<str>),
}

/// The error of an invalid resource pattern, worded so that it follows the quoted pattern in a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidResource(pub(super) String);

impl fmt::Display for InvalidResource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for InvalidResource {}

impl ResourcePattern {
    /// Parses a resource pattern of a statement.
    ///
    /// # Errors
    /// [`InvalidResource`], with the valid form.
    pub fn parse(text: &str) -> Result<Self, InvalidResource> {
        let invalid = |why: &str| Err(InvalidResource(why.to_owned()));
        let Some(path) = text.strip_prefix(SCHEME) else {
            return invalid("must have the form bucket:<bucket> or bucket:<bucket>/<key>");
        };
        let (bucket, key) = match path.split_once('/') {
            Some((bucket, key)) => (bucket, Some(key)),
            None => (path, None),
        };
        if bucket.contains(WILDCARD) {
            let Some(prefix) = bucket.strip_suffix(WILDCARD).filter(|_| key.is_none()) else {
                return invalid(
                    "has a * before its end: bucket:<prefix>* is for buckets with all their objects, and \
                     bucket:<bucket>/<prefix>* for objects of one bucket",
                );
            };
            let is_of_names = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-');
            if prefix.len() > BUCKET_NAME_BYTES_MAX || !prefix.bytes().all(is_of_names) {
                return invalid("does not have the beginning of a bucket name before the *");
            }
            return Ok(Self::Buckets(prefix.into()));
        }
        let bucket = BucketName::parse(bucket)
            .map_err(|broken| InvalidResource(format!("has an invalid bucket name: {}", broken.rule)))?;
        let Some(key) = key else { return Ok(Self::Bucket(bucket)) };
        let prefix = key.strip_suffix(WILDCARD);
        if prefix.unwrap_or(key).contains(WILDCARD) {
            return invalid("has a * before its end: a wildcard is only allowed at the end of the key");
        }
        let too_long = || InvalidResource(format!("has a key of more than {OBJECT_KEY_BYTES_MAX} bytes"));
        match prefix {
            Some(prefix) if prefix.len() > OBJECT_KEY_BYTES_MAX => Err(too_long()),
            Some(prefix) => Ok(Self::Objects(bucket, prefix.into())),
            None => match ObjectKey::parse(key) {
                Ok(key) => Ok(Self::Object(bucket, key)),
                Err(InvalidObjectKey::Empty) => {
                    invalid("has an empty key: use bucket:<bucket>/* for all objects of a bucket")
                }
                Err(InvalidObjectKey::TooLong(_)) => Err(too_long()),
            },
        }
    }

    /// Returns whether the pattern matches the resource of a request.
    #[must_use]
    pub fn matches(&self, resource: Resource<'_>) -> bool {
        match (self, resource) {
            (Self::Bucket(bucket), Resource::Bucket(requested)) => bucket.as_str() == requested,
            (Self::Object(bucket, key), Resource::Object(requested, requested_key)) => {
                bucket.as_str() == requested && key.as_str() == requested_key
            }
            (Self::Objects(bucket, prefix), Resource::Object(requested, key)) => {
                bucket.as_str() == requested && key.starts_with(&**prefix)
            }
            (Self::Buckets(prefix), Resource::Bucket(requested) | Resource::Object(requested, _)) => {
                requested.starts_with(&**prefix)
            }
            (Self::Bucket(_), Resource::Object(..))
            | (Self::Object(..) | Self::Objects(..), Resource::Bucket(_)) => false,
        }
    }
}

impl fmt::Display for ResourcePattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bucket(bucket) => write!(out, "{SCHEME}{bucket}"),
            Self::Object(bucket, key) => write!(out, "{SCHEME}{bucket}/{key}"),
            Self::Objects(bucket, prefix) => write!(out, "{SCHEME}{bucket}/{prefix}{WILDCARD}"),
            Self::Buckets(prefix) => write!(out, "{SCHEME}{prefix}{WILDCARD}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ResourcePattern;

    #[test]
    fn resource_patterns_round_trip_through_text() {
        for text in [
            "bucket:photos",
            "bucket:photos/*",
            "bucket:photos/a",
            "bucket:photos/a/../b//c",
            "bucket:photos/2026/*",
            "bucket:photos/%2F*",
            "bucket:photos//",
            "bucket:photos/ä b+c?",
            "bucket:*",
            "bucket:p*",
            "bucket:photos-*",
        ] {
            assert_eq!(ResourcePattern::parse(text).expect(text).to_string(), text);
        }
    }

    #[test]
    fn invalid_resource_patterns_are_refused_with_the_reason() {
        let long = format!("bucket:photos/{}", "k".repeat(1025));
        let too_long_name = format!("bucket:{}*", "n".repeat(64));
        for (text, why) in [
            ("", "must have the form"),
            ("*", "must have the form"),
            ("photos/*", "must have the form"),
            ("arn:aws:s3:::photos/*", "must have the form"),
            ("Bucket:photos", "must have the form"),
            (" bucket:photos", "must have the form"),
            ("bucket:", "has an invalid bucket name"),
            ("bucket:/", "has an invalid bucket name"),
            ("bucket:Photos", "has an invalid bucket name"),
            ("bucket:photos ", "has an invalid bucket name"),
            ("bucket:*/*", "before its end"),
            ("bucket:pho*/a", "before its end"),
            ("bucket:pho**", "the beginning of a bucket name"),
            ("bucket:p*s*", "the beginning of a bucket name"),
            ("bucket:Pho*", "the beginning of a bucket name"),
            (&too_long_name, "the beginning of a bucket name"),
            ("bucket:photos/", "has an empty key"),
            ("bucket:photos/a*b", "before its end"),
            ("bucket:photos/**", "before its end"),
            ("bucket:photos/*/a*", "before its end"),
            (&long, "more than 1024 bytes"),
            (&format!("{long}*"), "more than 1024 bytes"),
        ] {
            let refused = ResourcePattern::parse(text).expect_err(text).to_string();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
