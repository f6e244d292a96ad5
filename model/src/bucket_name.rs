//! Bucket names, validated by the rules of AWS.
//!
//! Source: AWS, "General purpose bucket naming rules".

use std::fmt;
use std::net::Ipv4Addr;

/// A valid bucket name: 3 to 63 bytes of lower-case letters, digits, dots and hyphens, with AWS's further rules.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BucketName(Box<str>);

/// The error of an invalid bucket name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidBucketName {
    /// The violated rule, as a sentence for the client.
    pub rule: &'static str,
}

/// Longest bucket name, in bytes.
pub const BUCKET_NAME_BYTES_MAX: usize = 63;
/// Prefixes that AWS reserves.
const RESERVED_PREFIXES: [&str; 3] = ["xn--", "sthree-", "amzn-s3-demo-"];
/// Suffixes that AWS reserves.
const RESERVED_SUFFIXES: [&str; 5] = ["-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"];

impl BucketName {
    /// Parses a bucket name.
    ///
    /// # Errors
    /// The first rule that the name violates.
    pub fn parse(name: &str) -> Result<Self, InvalidBucketName> {
        let broken = |rule| Err(InvalidBucketName { rule });
        let bytes = name.as_bytes();
        if !(3..=BUCKET_NAME_BYTES_MAX).contains(&bytes.len()) {
            return broken("a bucket name has 3 to 63 characters");
        }
        let plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        if !bytes.iter().all(|b| plain(b) || *b == b'.' || *b == b'-') {
            return broken("a bucket name contains only lower-case letters, digits, dots and hyphens");
        }
        if !bytes.first().is_some_and(plain) || !bytes.last().is_some_and(plain) {
            return broken("a bucket name begins and ends with a letter or a digit");
        }
        if name.contains("..") {
            return broken("a bucket name contains no two dots in a row");
        }
        if name.parse::<Ipv4Addr>().is_ok() {
            return broken("a bucket name is not formatted as an IP address");
        }
        if RESERVED_PREFIXES.iter().any(|p| name.starts_with(p)) {
            return broken("the name begins with a prefix that AWS reserves");
        }
        if RESERVED_SUFFIXES.iter().any(|s| name.ends_with(s)) {
            return broken("the name ends with a suffix that AWS reserves");
        }
        Ok(Self(name.into()))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BucketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for BucketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::BucketName;

    #[test]
    fn valid_names_are_accepted() {
        for name in ["abc", "a-b", "a.b.c", "123", "my-bucket.example", &"a".repeat(63)] {
            assert!(BucketName::parse(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn invalid_names_are_refused() {
        for name in [
            "",
            "ab",
            "-ab",
            "ab-",
            ".ab",
            "ab.",
            "A-bucket",
            "a_b",
            "a..b",
            "192.168.0.1",
            "xn--abc",
            "abc-s3alias",
            "a b",
            "a/b",
            "\u{e4}bc",
            &"a".repeat(64),
        ] {
            assert!(BucketName::parse(name).is_err(), "{name}");
        }
    }
}
