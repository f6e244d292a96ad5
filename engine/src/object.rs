//! What the engine says about objects: plain values of its public surface.

use crate::lock::ObjectLock;
use cairn_model::{Etag, Timestamp, VersionId, VersionName};
use std::ops::Range;

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

/// What a checksum is of (AWS: "Checking object integrity", checksum types).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumKind {
    /// The object's bytes.
    #[default]
    FullObject,
    /// The checksums of its parts, one behind the other.
    Composite,
}

/// Stored headers and declared checksums of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Lower-case names with their values as sent: `content-type` and its like, and `x-amz-meta-*`.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Digests that the client declared and that were found right.
    pub checksums: Vec<(ChecksumAlgorithm, Vec<u8>)>,
    /// What the digests are of.
    pub checksum_kind: ChecksumKind,
}

/// Parts of an object whose numbers follow each other and which have one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRun {
    /// Number of the first.
    pub first: u16,
    /// How many they are, at least one.
    pub count: u16,
    /// Bytes of each.
    pub size: u64,
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
    /// Whether it is the key's `null` version.
    pub is_null: bool,
    /// Stored headers and checksums.
    pub attributes: Attributes,
    /// Whether the payload is encrypted at rest.
    pub encrypted: bool,
    /// What locks the version.
    pub lock: ObjectLock,
    /// The parts that it was uploaded in, in order; empty when it was put in one piece.
    pub parts: Vec<PartRun>,
}

impl ObjectInfo {
    /// The version as clients name it.
    #[must_use]
    pub const fn version_name(&self) -> VersionName {
        version_name(self.version, self.is_null)
    }

    /// The bytes of part `number`; `None` when the object has no such part. One that was put in one piece has part 1.
    #[must_use]
    pub fn part_range(&self, number: u16) -> Option<Range<u64>> {
        if self.parts.is_empty() {
            return (number == 1).then_some(0..self.size);
        }
        let mut start = 0;
        for run in &self.parts {
            if let Some(within) = number.checked_sub(run.first).filter(|within| *within < run.count) {
                let start = start + u64::from(within) * run.size;
                return Some(start..start + run.size);
            }
            start += u64::from(run.count) * run.size;
        }
        None
    }
}

/// How clients name a version.
pub(crate) const fn version_name(version: VersionId, is_null: bool) -> VersionName {
    if is_null { VersionName::Null } else { VersionName::Id(version) }
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
    /// Whether it is the key's `null` version: the bucket has no versioning, or has it suspended.
    pub is_null: bool,
    /// Its date.
    pub last_modified: Timestamp,
    /// Whether a current object was there before.
    pub replaced: bool,
}

/// What a completion made, now or when it was asked for before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompleteOutcome {
    /// The new version.
    pub put: PutOutcome,
    /// Its entity tag.
    pub etag: Etag,
}

/// How an object is to be deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// This version for good; `None`: the object, by a delete marker where the bucket has versioning.
    pub version: Option<VersionName>,
    /// Conditions on what is deleted: the current object, or the named version.
    pub condition: WriteCondition,
    /// Whether governance retention is to be bypassed, by someone who may.
    pub bypass_governance: bool,
}

/// What a delete did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteOutcome {
    /// Whether a current object, or the named version, was there.
    pub existed: bool,
    /// The delete marker that was made, or the version that was named.
    pub version: Option<VersionName>,
    /// Whether that is a delete marker.
    pub is_delete_marker: bool,
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
    /// What those are of.
    pub checksum_kind: ChecksumKind,
}

/// What is asked of a list of versions.
#[derive(Clone, Debug)]
pub struct ListVersions<'a> {
    /// Keys must begin with this.
    pub prefix: &'a [u8],
    /// Keys that go on with this after the prefix are folded into a common prefix; never empty.
    pub delimiter: Option<&'a [u8]>,
    /// Where to go on, exclusive.
    pub after: Option<VersionPosition>,
    /// Most versions and common prefixes together.
    pub max: usize,
}

/// Where a list of versions goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionPosition {
    /// Behind all versions of this key.
    AfterKey(Vec<u8>),
    /// Behind all keys that begin with this.
    AfterPrefix(Vec<u8>),
    /// Behind this version of this key, and in front of older ones. A `null` that is gone leads to the key's beginning.
    AfterVersion(Vec<u8>, VersionName),
}

/// One page of a list of versions.
#[derive(Clone, Debug, Default)]
pub struct VersionsPage {
    /// In order of their keys, the newest of a key first.
    pub versions: Vec<ListedVersion>,
    /// Common prefixes in order.
    pub common_prefixes: Vec<Vec<u8>>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<VersionPosition>,
}

/// A version in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedVersion {
    /// Key, size, tag and date; a delete marker has no size, tag or checksums.
    pub object: ListedObject,
    /// The version as clients name it.
    pub name: VersionName,
    /// Whether it is the newest of its key.
    pub is_latest: bool,
    /// Whether it is a delete marker.
    pub is_delete_marker: bool,
}
