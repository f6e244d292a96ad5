//! Parses the path of a request into bucket and key.
//!
//! In virtual-hosted style, the host names the bucket and the path the key. In path style, `/` is the service, `/bucket` and
//! `/bucket/` are the bucket, anything longer is an object. The bucket ends at the first `/` as sent, so `%2F` belongs to a
//! key. The rest is decoded once and not normalized: `//`, `.` and `..` are ordinary text in a key. Names are validated later,
//! after the client is authenticated.

use crate::errors::{ErrorCode, S3Error, S3Result};
use cairn_model::{BucketName, InvalidObjectKey, ObjectKey};
use cairn_sharing::{HIDDEN_TOKEN, recordable_names};
use std::borrow::Cow;
use std::fmt;

/// The kind of resource that a path names.
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
    /// The pattern of its paths.
    pub(crate) const fn pattern(self) -> &'static str {
        match self {
            Self::Service => "/",
            Self::Bucket => "/{bucket}",
            Self::Object => "/{bucket}/{key}",
        }
    }
}

impl Resource {
    /// Its kind, as errors of AWS have it.
    pub(crate) const fn kind(self) -> &'static str {
        match self {
            Self::Service => "SERVICE",
            Self::Bucket => "BUCKET",
            Self::Object => "OBJECT",
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

/// The decoded path. An empty text means that the part is absent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Target {
    bucket: String,
    key: String,
    /// Whether the host names the bucket.
    is_virtual_hosted: bool,
    /// Whether the key contains the token of a link, so that nothing may record it.
    has_token: bool,
}

impl Target {
    /// Splits and decodes a raw path.
    ///
    /// # Errors
    /// `InvalidURI` for a broken escape, for bytes that are not UTF-8 and for a path that does not begin with `/`.
    /// `InvalidBucketName` for `//`, which names an empty bucket.
    pub(crate) fn parse(raw_path: &str) -> S3Result<Self> {
        let path = raw_path.strip_prefix('/').ok_or(ErrorCode::InvalidURI)?;
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        // Without this, `//` would be the service.
        if path == "/" {
            return Err(ErrorCode::InvalidBucketName.into());
        }
        Ok(Self { bucket: decode(bucket)?, key: decode(key)?, ..Self::default() })
    }

    /// Decodes a raw path below `bucket`, which the host names. Hosts ignore case, and names of buckets are in lower case.
    ///
    /// # Errors
    /// `InvalidURI`, as for [`Self::parse`].
    pub(crate) fn parse_virtual_hosted(bucket: &str, raw_path: &str) -> S3Result<Self> {
        let key = raw_path.strip_prefix('/').ok_or(ErrorCode::InvalidURI)?;
        let bucket = bucket.to_ascii_lowercase();
        Ok(Self { bucket, key: decode(key)?, is_virtual_hosted: true, has_token: false })
    }

    /// Creates a target from a decoded bucket and key.
    pub(crate) fn new(bucket: &str, key: &str) -> Self {
        Self { bucket: bucket.to_owned(), key: key.to_owned(), ..Self::default() }
    }

    /// Returns the object of this key in the same bucket.
    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), has_token: false, ..self.clone() }
    }

    /// Notes whether the key contains the token of a link.
    pub(crate) fn with_token(self, has_token: bool) -> Self {
        Self { has_token, ..self }
    }

    /// Returns whether the key contains the token of a link.
    pub(crate) fn has_token(&self) -> bool {
        self.has_token
    }

    /// Bucket and key as audit trail, log and lists of refused requests may name them.
    pub(crate) fn recordable(&self) -> (&str, &str) {
        let key = if self.has_token { HIDDEN_TOKEN } else { self.key_text() };
        recordable_names(&self.bucket, key)
    }

    /// Returns whether the host names the bucket, and not the path.
    pub(crate) fn is_virtual_hosted(&self) -> bool {
        self.is_virtual_hosted
    }

    /// The resource as error documents name it: the raw path, in path style.
    pub(crate) fn resource_path<'p>(&self, raw_path: &'p str) -> Cow<'p, str> {
        if self.is_virtual_hosted {
            Cow::Owned(format!("/{}{raw_path}", self.bucket))
        } else {
            Cow::Borrowed(raw_path)
        }
    }

    /// The kind of resource that the path names.
    pub(crate) fn resource(&self) -> Resource {
        match (self.bucket.is_empty(), self.key.is_empty()) {
            (true, true) => Resource::Service,
            (false, true) => Resource::Bucket,
            (_, false) => Resource::Object,
        }
    }

    /// The decoded bucket name, not validated; empty for the service.
    pub(crate) fn bucket_text(&self) -> &str {
        &self.bucket
    }

    /// The decoded key, not validated; empty for the service and for buckets.
    pub(crate) fn key_text(&self) -> &str {
        &self.key
    }

    /// Validates the bucket's name.
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

    /// Validates the object's key.
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

fn decode(text: &str) -> S3Result<String> {
    Ok(cairn_http1::decode(text).map_err(|_| ErrorCode::InvalidURI)?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Resource, Target};

    fn parsed(path: &str) -> (String, String) {
        let target = Target::parse(path).expect(path);
        (target.bucket_text().to_owned(), target.key_text().to_owned())
    }

    #[test]
    fn escaped_slash_belongs_to_the_key() {
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
        assert_eq!(Target::parse("//").expect_err("no name").code(), "InvalidBucketName");
    }

    #[test]
    fn host_names_the_bucket_and_the_path_is_the_key() {
        for (path, key, resource) in [
            ("/", "", Resource::Bucket),
            ("/a/b", "a/b", Resource::Object),
            ("//a", "/a", Resource::Object),
            ("/%2Fa%20b", "/a b", Resource::Object),
            ("/photos/", "photos/", Resource::Object),
        ] {
            let target = Target::parse_virtual_hosted("Photos.2026", path).expect(path);
            assert_eq!((target.bucket_text(), target.key_text()), ("photos.2026", key));
            assert_eq!(target.resource(), resource, "{path}");
            assert_eq!(target.resource_path(path), format!("/photos.2026{path}"));
        }
        assert_eq!(Target::parse("/b/%41").expect("parses").resource_path("/b/%41"), "/b/%41");
        for path in ["", "a", "/%", "/%fe"] {
            assert_eq!(Target::parse_virtual_hosted("b", path).expect_err(path).code(), "InvalidURI");
        }
        let named = Target::parse_virtual_hosted("a_b", "/k").expect("parses");
        assert_eq!(named.bucket().expect_err("invalid").code(), "InvalidBucketName");
    }

    #[test]
    fn invalid_paths_and_names_are_refused() {
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
