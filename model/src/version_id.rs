//! Ids of versions and multipart uploads. They are sequence numbers of a store and give a total order.

use std::fmt;

/// Hexadecimal digits of an id's text.
const DIGITS: usize = 16;

/// The id of one version of an object, unique in a store. A later version of the same key has a greater id. Its text is
/// 16 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct VersionId(pub u64);

/// The id of a multipart upload, unique in a store. Its text is 16 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct UploadId(pub u64);

/// A version as clients specify it (AWS: "How S3 Versioning works").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VersionName {
    /// `null`: the version that was written while versioning was not enabled or was suspended.
    Null,
    /// Any other version, by its id.
    Id(VersionId),
}

fn parse(text: &str) -> Option<u64> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let fits = text.len() == DIGITS && text.bytes().all(is_digit);
    fits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

impl VersionId {
    /// Parses the text of an id. Returns `None` when it is malformed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        parse(text).map(Self)
    }
}

impl UploadId {
    /// Parses the text of an id. Returns `None` when it is malformed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        parse(text).map(Self)
    }
}

impl VersionName {
    /// Parses `null` or the text of an id. Returns `None` when it is malformed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "null" { Some(Self::Null) } else { VersionId::parse(text).map(Self::Id) }
    }
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$x}", self.0)
    }
}

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$x}", self.0)
    }
}

impl fmt::Display for VersionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Id(id) => id.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{UploadId, VersionId, VersionName};

    #[test]
    fn formatted_ids_parse_to_themselves() {
        for number in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            assert_eq!(VersionId::parse(&VersionId(number).to_string()), Some(VersionId(number)));
            assert_eq!(UploadId::parse(&UploadId(number).to_string()), Some(UploadId(number)));
            let name = VersionName::Id(VersionId(number));
            assert_eq!(VersionName::parse(&name.to_string()), Some(name));
        }
        assert_eq!(VersionId(10).to_string(), "000000000000000a");
        assert_eq!(VersionName::parse(&VersionName::Null.to_string()), Some(VersionName::Null));
    }

    #[test]
    fn malformed_ids_are_refused() {
        let texts = [
            "",
            "0",
            "00000000000000000",
            "000000000000000A",
            "+00000000000000a",
            "NULL",
            "000000000000000g",
        ];
        for text in texts {
            assert_eq!(VersionName::parse(text), None, "{text}");
            assert_eq!(UploadId::parse(text), None, "{text}");
        }
    }
}
