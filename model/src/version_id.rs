//! Ids of versions and multipart uploads.
//!
//! They are sequence numbers of a store and give a total order. A version that was imported from another store keeps the id
//! that it had there; its number says only when it was written.

use std::cmp::Ordering;
use std::fmt;

/// Hexadecimal digits of an id's text.
const DIGITS: usize = 16;
/// The name of the version that was written while versioning was not enabled or was suspended.
const NULL: &str = "null";

/// Bytes of the longest id of an imported version.
const IMPORTED_BYTES_MAX: usize = 64;
/// The bit of the numbers of imported versions.
const IMPORTED: u64 = 1 << 63;
/// Bits of an imported version's number that distinguish versions of one key and millisecond.
const TIE_BITS: u32 = 20;

/// The number of one version of an object. A later version of the same key has a greater number; versions that were imported
/// are earlier than all others.
///
/// The number of a version that was written here is unique in the store, and its text, 16 lower-case hexadecimal digits, is
/// the id that clients see. The number of an imported version is unique within its key, and clients see an [`ImportedId`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VersionId(pub u64);

/// The id that an imported version had in the store that it comes from: 1 to 64 characters of `A-Z a-z 0-9 . _ -`, and not
/// `null`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImportedId {
    bytes: [u8; IMPORTED_BYTES_MAX],
    length: u8,
}

/// The id of a multipart upload, unique in a store. Its text is `u` and 16 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct UploadId(pub u64);

/// A version as clients specify it (AWS: "How S3 Versioning works").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VersionName {
    /// `null`: the version that was written while versioning was not enabled or was suspended.
    Null,
    /// A version that was written here, by its id.
    Id(VersionId),
    /// A version that was imported, by the id that it had before.
    Imported(ImportedId),
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

    /// Returns the least number of an imported version of this time, in milliseconds since the Unix epoch. `None` for a time
    /// after the year 2248.
    #[must_use]
    pub const fn imported_at(milliseconds: u64) -> Option<Self> {
        if milliseconds >= IMPORTED >> TIE_BITS {
            None
        } else {
            Some(Self(IMPORTED | milliseconds << TIE_BITS))
        }
    }

    /// Returns the next number of an imported version of the same time. `None` if there are no more.
    #[must_use]
    pub const fn next_of_same_time(self) -> Option<Self> {
        assert!(self.is_imported(), "only imported versions have the time in their number");
        let next = self.0 + 1;
        if next & ((1 << TIE_BITS) - 1) == 0 { None } else { Some(Self(next)) }
    }

    /// Returns whether this is the number of an imported version.
    #[must_use]
    pub const fn is_imported(self) -> bool {
        self.0 & IMPORTED != 0
    }
}

impl Ord for VersionId {
    fn cmp(&self, other: &Self) -> Ordering {
        // As signed numbers, those with the highest bit set are less than all others.
        self.0.cast_signed().cmp(&other.0.cast_signed())
    }
}

impl PartialOrd for VersionId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ImportedId {
    /// Parses an id. Returns `None` when it is malformed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if text.is_empty() || text == NULL || !text.bytes().all(is_allowed) {
            return None;
        }
        let mut bytes = [0; IMPORTED_BYTES_MAX];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self { bytes, length: u8::try_from(text.len()).ok()? })
    }

    /// Returns the id as a text.
    ///
    /// # Panics
    /// Never: an id is ASCII.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).expect("an id is ASCII")
    }

    /// Returns whether the id has the form of a UUID, as those of MinIO have.
    #[must_use]
    pub fn is_uuid(&self) -> bool {
        let text = self.as_str();
        let is_expected = |(at, byte): (usize, u8)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        };
        text.len() == 36 && text.bytes().enumerate().all(is_expected)
    }

    /// Returns the number of the version of this store that has the same text as its id.
    #[must_use]
    pub fn as_version(&self) -> Option<VersionId> {
        VersionId::parse(self.as_str())
    }
}

impl UploadId {
    /// Begins the text. Some clients (minio-js) take a text of digits for a number, and lose the zeros in front.
    const PREFIX: &str = "u";

    /// Parses the text of an id, also without the prefix, as clients have it whose upload began before there was one. Returns
    /// `None` when it is malformed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        parse(text.strip_prefix(Self::PREFIX).unwrap_or(text)).map(Self)
    }
}

impl VersionName {
    /// Parses `null` or the text of an id. Returns `None` when it is malformed.
    ///
    /// An id of this store's form is returned as such, although an imported version may have it, too.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match VersionId::parse(text) {
            Some(id) => Some(Self::Id(id)),
            None if text == NULL => Some(Self::Null),
            None => ImportedId::parse(text).map(Self::Imported),
        }
    }

    /// Returns whether a version of this store could have this name without an import, or with one from MinIO. A client that
    /// sends another has most likely made a mistake, unless an imported version has this id.
    #[must_use]
    pub fn is_expected(&self) -> bool {
        match self {
            Self::Null | Self::Id(_) => true,
            Self::Imported(id) => id.is_uuid(),
        }
    }

    /// Returns the id that an imported version of this name has. `None` for `null`.
    #[must_use]
    pub fn imported_id(&self) -> Option<ImportedId> {
        match self {
            Self::Null => None,
            Self::Id(id) => ImportedId::parse(&id.to_string()),
            Self::Imported(id) => Some(*id),
        }
    }
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$x}", self.0)
    }
}

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:0DIGITS$x}", Self::PREFIX, self.0)
    }
}

impl fmt::Debug for ImportedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for VersionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str(NULL),
            Self::Id(id) => id.fmt(f),
            Self::Imported(id) => f.write_str(id.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ImportedId, UploadId, VersionId, VersionName};

    #[test]
    fn formatted_ids_parse_to_themselves() {
        for number in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            assert_eq!(VersionId::parse(&VersionId(number).to_string()), Some(VersionId(number)));
            assert_eq!(UploadId::parse(&UploadId(number).to_string()), Some(UploadId(number)));
            let name = VersionName::Id(VersionId(number));
            assert_eq!(VersionName::parse(&name.to_string()), Some(name));
        }
        assert_eq!(VersionId(10).to_string(), "000000000000000a");
        assert_eq!(UploadId(10).to_string(), "u000000000000000a");
        assert_eq!(UploadId::parse("000000000000000a"), Some(UploadId(10)));
        assert_eq!(VersionName::parse(&VersionName::Null.to_string()), Some(VersionName::Null));
    }

    #[test]
    fn malformed_ids_are_refused() {
        for text in ["", "a/b", "é", "a b", "\n", &"x".repeat(65)] {
            assert_eq!(VersionName::parse(text), None, "{text}");
        }
        for text in [
            "0",
            "00000000000000000",
            "000000000000000A",
            "+00000000000000a",
            "NULL",
            "000000000000000g",
            "uu00000000000000a",
        ] {
            assert_eq!((VersionId::parse(text), UploadId::parse(text)), (None, None), "{text}");
            assert!(!VersionName::parse(text).is_some_and(|name| name.is_expected()), "{text}");
        }
    }

    #[test]
    fn imported_versions_keep_their_ids() {
        let uuid = "7C1b0a52-9d3e-4f6a-8b21-0123456789ab";
        for text in [uuid, "a", "NULL", "3HL4kqtJvjVBH40Nrjfkd.-_", &"x".repeat(64)] {
            let name = VersionName::parse(text).expect(text);
            assert_eq!(name.to_string(), text);
            assert_eq!(name, VersionName::Imported(ImportedId::parse(text).expect(text)));
            assert_eq!(name.is_expected(), text == uuid, "{text}");
        }
        let id = VersionName::parse("000000000000000a").expect("parses").imported_id().expect("not null");
        assert_eq!((id.as_str(), id.as_version()), ("000000000000000a", Some(VersionId(10))));
        assert_eq!(VersionName::Null.imported_id(), None);
        assert_eq!(ImportedId::parse("null"), None);
    }

    #[test]
    fn imported_versions_are_earlier_than_all_others_and_in_the_order_of_their_times() {
        let at = |time| VersionId::imported_at(time).expect("before 2248");
        let same = at(5).next_of_same_time().expect("there are more");
        let in_order = [
            at(0),
            at(5),
            same,
            at(6),
            at((1 << 43) - 1),
            VersionId(0),
            VersionId(1),
            VersionId(u64::MAX >> 1),
        ];
        assert!(in_order.is_sorted(), "{in_order:?}");
        assert!(
            in_order[..5].iter().all(|id| id.is_imported())
                && !in_order[5..].iter().any(|id| id.is_imported())
        );
        assert_eq!(VersionId::imported_at(1 << 43), None);
        assert_eq!(VersionId(at(6).0 - 1).next_of_same_time(), None);
    }
}
