//! Resources: what a request is about, and the patterns that policies name them by.
//!
//! ```text
//! bucket:<bucket>              the bucket itself
//! bucket:<bucket>/<key>        the object of exactly this key
//! bucket:<bucket>/<prefix>*    the objects whose keys begin so; with an empty prefix, all objects
//! ```
//! Neither the bucket's form nor the objects' implies the other.

use cairn_model::{BucketName, InvalidObjectKey, OBJECT_KEY_BYTES_MAX, ObjectKey};
use std::fmt;

const SCHEME: &str = "bucket:";
const WILDCARD: char = '*';

/// What a request is about. The key is the canonical decoded one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource<'a> {
    /// A bucket.
    Bucket(&'a str),
    /// An object: its bucket and key.
    Object(&'a str, &'a str),
}

/// What a statement names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResourcePattern {
    /// The bucket itself.
    Bucket(BucketName),
    /// The object of this key.
    Object(BucketName, ObjectKey),
    /// All objects whose keys begin with this text, which may be empty.
    Objects(BucketName, Box<str>),
}

/// Why a text names no resource: a sentence for who wrote the policy, to follow the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidResource(pub(super) String);

impl fmt::Display for InvalidResource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for InvalidResource {}

impl ResourcePattern {
    /// Reads a resource of a statement.
    ///
    /// # Errors
    /// [`InvalidResource`], which says what would be right.
    pub fn parse(text: &str) -> Result<Self, InvalidResource> {
        let refused = |why: &str| Err(InvalidResource(why.to_owned()));
        let Some(named) = text.strip_prefix(SCHEME) else {
            return refused("is not of the form bucket:<bucket> or bucket:<bucket>/<key>");
        };
        let (bucket, key) = match named.split_once('/') {
            Some((bucket, key)) => (bucket, Some(key)),
            None => (named, None),
        };
        if bucket.contains(WILDCARD) {
            return refused("has a * in the bucket's name: a wildcard may only end the key");
        }
        let bucket = BucketName::parse(bucket)
            .map_err(|broken| InvalidResource(format!("names no valid bucket: {}", broken.rule)))?;
        let Some(key) = key else { return Ok(Self::Bucket(bucket)) };
        let prefix = key.strip_suffix(WILDCARD);
        if prefix.unwrap_or(key).contains(WILDCARD) {
            return refused("has a * that is not at its end: a wildcard may only end the key");
        }
        let too_long = || InvalidResource(format!("has a key of more than {OBJECT_KEY_BYTES_MAX} bytes"));
        match prefix {
            Some(prefix) if prefix.len() > OBJECT_KEY_BYTES_MAX => Err(too_long()),
            Some(prefix) => Ok(Self::Objects(bucket, prefix.into())),
            None => match ObjectKey::parse(key) {
                Ok(key) => Ok(Self::Object(bucket, key)),
                Err(InvalidObjectKey::Empty) => {
                    refused("names no key: all objects of a bucket are bucket:<bucket>/*")
                }
                Err(InvalidObjectKey::TooLong(_)) => Err(too_long()),
            },
        }
    }

    /// The bucket that it names, or whose objects it names.
    #[must_use]
    pub const fn bucket(&self) -> &BucketName {
        match self {
            Self::Bucket(bucket) | Self::Object(bucket, _) | Self::Objects(bucket, _) => bucket,
        }
    }
}

impl fmt::Display for ResourcePattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bucket(bucket) => write!(out, "{SCHEME}{bucket}"),
            Self::Object(bucket, key) => write!(out, "{SCHEME}{bucket}/{key}"),
            Self::Objects(bucket, prefix) => write!(out, "{SCHEME}{bucket}/{prefix}{WILDCARD}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ResourcePattern;

    #[test]
    fn the_forms_of_resources_read_and_print_alike() {
        for text in [
            "bucket:photos",
            "bucket:photos/*",
            "bucket:photos/a",
            "bucket:photos/a/../b//c",
            "bucket:photos/2026/*",
            "bucket:photos/%2F*",
            "bucket:photos//",
            "bucket:photos/ä b+c?",
        ] {
            assert_eq!(ResourcePattern::parse(text).expect(text).to_string(), text);
        }
    }

    #[test]
    fn whatever_is_no_resource_is_refused_with_what_is_wrong() {
        let long = format!("bucket:photos/{}", "k".repeat(1025));
        for (text, why) in [
            ("", "is not of the form"),
            ("*", "is not of the form"),
            ("photos/*", "is not of the form"),
            ("arn:aws:s3:::photos/*", "is not of the form"),
            ("Bucket:photos", "is not of the form"),
            (" bucket:photos", "is not of the form"),
            ("bucket:", "names no valid bucket"),
            ("bucket:/", "names no valid bucket"),
            ("bucket:Photos", "names no valid bucket"),
            ("bucket:photos ", "names no valid bucket"),
            ("bucket:*", "* in the bucket's name"),
            ("bucket:pho*", "* in the bucket's name"),
            ("bucket:*/*", "* in the bucket's name"),
            ("bucket:photos/", "names no key"),
            ("bucket:photos/a*b", "not at its end"),
            ("bucket:photos/**", "not at its end"),
            ("bucket:photos/*/a*", "not at its end"),
            (&long, "more than 1024 bytes"),
            (&format!("{long}*"), "more than 1024 bytes"),
        ] {
            let refused = ResourcePattern::parse(text).expect_err(text).to_string();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
