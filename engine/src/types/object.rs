//! Objects, versions and listings: plain values of the engine's public interface.

use crate::error::{EngineError, Precondition};
use crate::types::event::Origin;
use crate::types::object_lock::ObjectLock;
use crate::types::tags::Tags;
use cairn_model::{Etag, ImportedId, Timestamp, UploadId, VersionId, VersionName};
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
    /// SHA-512.
    Sha512,
    /// MD5.
    Md5,
    /// XXH64 with seed 0.
    XxHash64,
    /// XXH3 of 64 bits with seed 0.
    XxHash3,
    /// XXH3 of 128 bits with seed 0.
    XxHash128,
}

impl ChecksumAlgorithm {
    /// All algorithms, in the order of their numbers on disk.
    pub const ALL: [Self; 10] = [
        Self::Crc32,
        Self::Crc32c,
        Self::Crc64Nvme,
        Self::Sha1,
        Self::Sha256,
        Self::Sha512,
        Self::Md5,
        Self::XxHash64,
        Self::XxHash3,
        Self::XxHash128,
    ];

    /// Returns the number on disk.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Crc32 => 0,
            Self::Crc32c => 1,
            Self::Crc64Nvme => 2,
            Self::Sha1 => 3,
            Self::Sha256 => 4,
            Self::Sha512 => 5,
            Self::Md5 => 6,
            Self::XxHash64 => 7,
            Self::XxHash3 => 8,
            Self::XxHash128 => 9,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.number() == number)
    }

    pub(crate) const fn bit(self) -> u16 {
        1 << self.number()
    }
}

/// The kind of a checksum (AWS: "Checking object integrity", checksum types).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumKind {
    /// The object's bytes.
    #[default]
    FullObject,
    /// The concatenated checksums of its parts.
    Composite,
}

/// Stored headers, declared checksums and tags of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Lower-case names, with values as the client sent them: `content-type` and similar headers, and `x-amz-meta-*`.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Digests that the client declared and that matched the data.
    pub checksums: Vec<(ChecksumAlgorithm, Vec<u8>)>,
    /// The data that the digests cover.
    pub checksum_kind: ChecksumKind,
    /// The object's tags.
    pub tags: Tags,
}

/// Consecutively numbered parts of an object that have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRun {
    /// Number of the first part.
    pub first: u16,
    /// Number of parts, at least 1.
    pub count: u16,
    /// Bytes of each part.
    pub size: u64,
}

/// An object's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Bytes of the payload.
    pub size: u64,
    /// Entity tag.
    pub etag: Etag,
    /// The time when this version was written.
    pub last_modified: Timestamp,
    /// Identity of this version.
    pub version: VersionId,
    /// Whether it is the key's `null` version.
    pub is_null: bool,
    /// The id that an imported version had before. The null version has none.
    pub imported: Option<ImportedId>,
    /// Stored headers and checksums.
    pub attributes: Attributes,
    /// Whether the payload is encrypted at rest.
    pub encrypted: bool,
    /// Retention and legal hold of the version.
    pub lock: ObjectLock,
    /// The parts of a multipart upload, in order. Empty if the object was put in one piece.
    pub parts: Vec<PartRun>,
}

impl ObjectInfo {
    /// Returns the version as clients name it.
    #[must_use]
    pub const fn version_name(&self) -> VersionName {
        version_name(self.version, self.is_null, self.imported)
    }

    /// Returns the byte range of part `number`, or `None` if the object has no such part.
    ///
    /// An object that was put in one piece has only part 1.
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

/// Returns a version as clients name it.
pub(crate) const fn version_name(
    version: VersionId,
    is_null: bool,
    imported: Option<ImportedId>,
) -> VersionName {
    match imported {
        _ if is_null => VersionName::Null,
        Some(id) => VersionName::Imported(id),
        None => VersionName::Id(version),
    }
}

/// The entity tags of an `If-Match` or `If-None-Match` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtagMatch {
    /// `*`: any current object.
    Any,
    /// One of these tags, without quotes.
    OneOf(Vec<String>),
}

/// Conditions on the current object, evaluated inside the commit (RFC 9110 section 13; AWS: "Conditional requests").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteCondition {
    /// `If-None-Match`: the current object must not match. With [`EtagMatch::Any`] there must be no current object.
    pub if_none_match: Option<EtagMatch>,
    /// There must be no current object, whatever the client asks for: its rights allow no more.
    pub must_be_absent: bool,
    /// `If-Match`: there must be a current object, and it must match.
    pub if_match: Option<EtagMatch>,
    /// `x-amz-if-match-size`, bytes.
    pub if_size: Option<u64>,
    /// `x-amz-if-match-last-modified-time`, whole seconds since the Unix epoch.
    pub if_last_modified_seconds: Option<u64>,
    /// The current object must be this very version, whatever others have the same entity tag.
    pub if_version: Option<VersionId>,
    /// The current object must have these tags. A change of tags makes no new version, so `if_version` does not see it.
    pub if_tags: Option<Tags>,
    /// Of a completion: no version or delete marker may have been written since this upload began, else the completion is a
    /// [`EngineError::Conflict`].
    pub unchanged_since: Option<UploadId>,
}

impl EtagMatch {
    fn matches(&self, etag: Etag) -> bool {
        match self {
            Self::Any => true,
            Self::OneOf(tags) => tags.contains(&etag.to_string()),
        }
    }
}

impl WriteCondition {
    /// Returns the condition that there is no current object.
    #[must_use]
    pub fn if_absent() -> Self {
        Self { if_none_match: Some(EtagMatch::Any), ..Self::default() }
    }

    /// Returns the condition that the current object is this one, with the tags that it has here.
    #[must_use]
    pub fn if_unchanged(object: &ObjectInfo) -> Self {
        let (if_version, if_tags) = (Some(object.version), Some(object.attributes.tags.clone()));
        Self { if_version, if_tags, ..Self::default() }
    }

    /// Decides the condition on the current object.
    ///
    /// # Errors
    /// [`EngineError::PreconditionFailed`] with the first condition that does not hold. [`EngineError::NoSuchKey`] if a
    /// condition needs an object, and the key has none.
    pub fn check(&self, current: Option<&ObjectInfo>) -> Result<(), EngineError> {
        let Self {
            if_none_match,
            must_be_absent,
            if_match,
            if_size,
            if_last_modified_seconds,
            if_version,
            if_tags,
            unchanged_since: _,
        } = self;
        let Some(info) = current else {
            let needs_object = if_match.is_some()
                || if_size.is_some()
                || if_last_modified_seconds.is_some()
                || if_version.is_some()
                || if_tags.is_some();
            return if needs_object { Err(EngineError::NoSuchKey) } else { Ok(()) };
        };
        let modified = info.last_modified.seconds();
        let failed = if *must_be_absent {
            Precondition::IfNoneMatch
        } else if if_match.as_ref().is_some_and(|tags| !tags.matches(info.etag))
            || if_version.is_some_and(|version| version != info.version)
            || if_tags.as_ref().is_some_and(|tags| *tags != info.attributes.tags)
        {
            Precondition::IfMatch
        } else if if_none_match.as_ref().is_some_and(|tags| tags.matches(info.etag)) {
            Precondition::IfNoneMatch
        } else if if_size.is_some_and(|size| size != info.size) {
            Precondition::IfMatchSize
        } else if if_last_modified_seconds.is_some_and(|seconds| seconds != modified) {
            Precondition::IfMatchLastModifiedTime
        } else {
            return Ok(());
        };
        Err(EngineError::PreconditionFailed(failed))
    }
}

/// The outcome of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutOutcome {
    /// Identity of the new version.
    pub version: VersionId,
    /// Whether it is the key's `null` version, because the bucket's versioning is off or suspended.
    pub is_null: bool,
    /// The time when the version was written.
    pub last_modified: Timestamp,
    /// Whether it replaced a current object.
    pub replaced: bool,
}

/// The outcome of a completion, or of an earlier identical one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompleteOutcome {
    /// The new version.
    pub put: PutOutcome,
    /// Its entity tag.
    pub etag: Etag,
    /// Whether all of its parts are encrypted at rest.
    pub encrypted: bool,
}

/// Options of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// The version to delete permanently. `None` deletes the object, with a delete marker if the bucket has versioning.
    pub version: Option<VersionName>,
    /// Conditions on the current object or the named version.
    pub condition: WriteCondition,
    /// Whether to bypass governance retention. The caller has checked the permission.
    pub bypass_governance: bool,
    /// Whether the named version is only deleted while it is the newest of its key. Otherwise it counts as missing.
    pub only_newest: bool,
    /// Whether the named version is only deleted if an import has brought it. Otherwise it counts as missing: a client may have
    /// written another null version meanwhile.
    pub only_imported: bool,
    /// The origin of the request.
    pub origin: Origin,
}

/// The outcome of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteOutcome {
    /// Whether the current object or the named version existed.
    pub existed: bool,
    /// The delete marker that was created, or the version that was named.
    pub version: Option<VersionName>,
    /// Whether `version` is a delete marker.
    pub is_delete_marker: bool,
}

/// Parameters of a list of objects.
#[derive(Clone, Debug)]
pub struct ListObjects<'a> {
    /// Keys must begin with this.
    pub prefix: &'a [u8],
    /// Keys with this delimiter after the prefix are grouped into a common prefix. Never empty.
    pub delimiter: Option<&'a [u8]>,
    /// The position after which the page begins.
    pub after: Option<ListPosition>,
    /// Maximum of objects and common prefixes together.
    pub max: usize,
}

/// A position in a list of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListPosition {
    /// After this key.
    AfterKey(Vec<u8>),
    /// After all keys that begin with this prefix.
    AfterPrefix(Vec<u8>),
}

/// One page of objects.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    /// Objects, ordered by key.
    pub objects: Vec<ListedObject>,
    /// Common prefixes in order.
    pub common_prefixes: Vec<Vec<u8>>,
    /// The start of the next page. `None` for the last page.
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
    /// The time when it was written.
    pub last_modified: Timestamp,
    /// Identity of the current version.
    pub version: VersionId,
    /// Algorithms of the declared checksums.
    pub checksum_algorithms: Vec<ChecksumAlgorithm>,
    /// The data that the checksums cover.
    pub checksum_kind: ChecksumKind,
}

/// A key whose newest version is a delete marker over an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedObject {
    /// The key.
    pub key: String,
    /// Bytes of the object.
    pub size: u64,
    /// The newest version that is no delete marker.
    pub version: VersionName,
    /// The newest delete marker.
    pub marker: VersionName,
    /// The delete marker that deleted the object: the one directly above it.
    pub first_marker: VersionName,
    /// The time when that marker was written.
    pub deleted_at: Timestamp,
}

/// One page of deleted objects.
#[derive(Clone, Debug, Default)]
pub struct DeletedPage {
    /// Ordered by key.
    pub objects: Vec<DeletedObject>,
    /// Common prefixes in order.
    pub common_prefixes: Vec<Vec<u8>>,
    /// The start of the next page. `None` for the last page.
    pub next: Option<ListPosition>,
}

/// A key whose current object is another version than at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedObject {
    /// The key.
    pub key: String,
    /// The current object, if there is one.
    pub now: Option<VersionName>,
    /// The object at that moment and its bytes, if there was one.
    pub then: Option<(VersionName, u64)>,
}

/// One page of changed objects.
#[derive(Clone, Debug, Default)]
pub struct ChangedPage {
    /// Ordered by key.
    pub changed: Vec<ChangedObject>,
    /// Number of objects between them that are the same version.
    pub unchanged: u64,
    /// The start of the next page. `None` for the last page.
    pub next: Option<ListPosition>,
}

/// Parameters of a list of versions.
#[derive(Clone, Debug)]
pub struct ListVersions<'a> {
    /// Keys must begin with this.
    pub prefix: &'a [u8],
    /// Keys with this delimiter after the prefix are grouped into a common prefix. Never empty.
    pub delimiter: Option<&'a [u8]>,
    /// The position after which the page begins.
    pub after: Option<VersionPosition>,
    /// Maximum of versions and common prefixes together.
    pub max: usize,
}

/// A position in a list of versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionPosition {
    /// After all versions of this key.
    AfterKey(Vec<u8>),
    /// After all keys that begin with this prefix.
    AfterPrefix(Vec<u8>),
    /// After this version of this key, and before older ones. If a `null` or imported version no longer exists, the page
    /// begins with the key's newest version.
    AfterVersion(Vec<u8>, VersionName),
}

/// One page of versions.
#[derive(Clone, Debug, Default)]
pub struct VersionsPage {
    /// In order of their keys, the newest version of a key first.
    pub versions: Vec<ListedVersion>,
    /// Common prefixes in order.
    pub common_prefixes: Vec<Vec<u8>>,
    /// The start of the next page. `None` for the last page.
    pub next: Option<VersionPosition>,
}

/// A version in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedVersion {
    /// Key, size, entity tag and date. A delete marker has no size, entity tag or checksums.
    pub object: ListedObject,
    /// The version as clients name it.
    pub name: VersionName,
    /// Whether it is the newest version of its key.
    pub is_latest: bool,
    /// Whether it is a delete marker.
    pub is_delete_marker: bool,
    /// Its retention and legal hold.
    pub lock: ObjectLock,
}
