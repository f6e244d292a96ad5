//! What the engine says about objects: plain values of its public surface.

use cairn_model::{Etag, Timestamp, VersionId};

/// Checksum algorithms that clients may declare (AWS: "Checking object integrity").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumAlgorithm {
    /// CRC-32 (ISO HDLC).
    Crc32,
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// CRC-64/NVME.
    Crc64Nvme,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
}

impl ChecksumAlgorithm {
    /// All algorithms, in order of their numbers on disk.
    pub const ALL: [Self; 5] = [Self::Crc32, Self::Crc32c, Self::Crc64Nvme, Self::Sha1, Self::Sha256];

    /// Number on disk.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Crc32 => 0,
            Self::Crc32c => 1,
            Self::Crc64Nvme => 2,
            Self::Sha1 => 3,
            Self::Sha256 => 4,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.number() == number)
    }

    pub(crate) const fn bit(self) -> u8 {
        1 << self.number()
    }
}

/// Stored headers and declared checksums of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Lower-case names with their values as sent: `content-type` and its like, and `x-amz-meta-*`.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Digests that the client declared and that were found right.
    pub checksums: Vec<(ChecksumAlgorithm, Vec<u8>)>,
}

/// An object's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Bytes of the payload.
    pub size: u64,
    /// Entity tag.
    pub etag: Etag,
    /// When this version was written.
    pub last_modified: Timestamp,
    /// Identity of this version.
    pub version: VersionId,
    /// Stored headers and checksums.
    pub attributes: Attributes,
    /// Whether the payload is encrypted at rest.
    pub encrypted: bool,
}

/// Entity tags that an `If-Match` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtagMatch {
    /// `*`: any current object.
    Any,
    /// One of these tags, without quotes.
    OneOf(Vec<String>),
}

/// Conditions on the current object, decided inside the commit (RFC 9110 section 13; AWS: "Conditional requests").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteCondition {
    /// `If-None-Match: *`: there must be no current object.
    pub must_be_absent: bool,
    /// `If-Match`.
    pub if_match: Option<EtagMatch>,
    /// `x-amz-if-match-size`, bytes.
    pub if_size: Option<u64>,
    /// `x-amz-if-match-last-modified-time`, whole seconds since the Unix epoch.
    pub if_last_modified_seconds: Option<u64>,
}

/// What a put did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutOutcome {
    /// Identity of the new version.
    pub version: VersionId,
    /// Its date.
    pub last_modified: Timestamp,
    /// Whether an object was there before.
    pub replaced: bool,
}

/// What a delete did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteOutcome {
    /// Whether an object was there.
    pub existed: bool,
}

/// What is asked of a list.
#[derive(Clone, Debug)]
pub struct ListObjects<'a> {
    /// Keys must begin with this.
    pub prefix: &'a [u8],
    /// Keys that go on with this after the prefix are folded into a common prefix; never empty.
    pub delimiter: Option<&'a [u8]>,
    /// Where to go on, exclusive.
    pub after: Option<ListPosition>,
    /// Most objects and common prefixes together.
    pub max: usize,
}

/// Where a list goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListPosition {
    /// Behind this key.
    AfterKey(Vec<u8>),
    /// Behind all keys that begin with this.
    AfterPrefix(Vec<u8>),
}

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    /// Objects in order of their keys.
    pub objects: Vec<ListedObject>,
    /// Common prefixes in order.
    pub common_prefixes: Vec<Vec<u8>>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<ListPosition>,
}

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// The key.
    pub key: String,
    /// Bytes of the payload.
    pub size: u64,
    /// Entity tag.
    pub etag: Etag,
    /// When it was written.
    pub last_modified: Timestamp,
    /// Identity of the current version.
    pub version: VersionId,
    /// Algorithms of the declared checksums.
    pub checksum_algorithms: Vec<ChecksumAlgorithm>,
}
