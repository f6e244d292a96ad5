//! The model in memory: what buckets of each kind hold, according to the S3 documentation.

use crate::support::content;
use cairn_engine::{BucketSettings, ObjectLock, RetentionMode, Usage, Versioning};
use cairn_model::{Timestamp, UploadId, VersionId, VersionName};
use std::collections::BTreeMap;

/// A time in the past, and one that is never reached.
pub(crate) const PAST: Timestamp = Timestamp(1);
pub(crate) const FUTURE: Timestamp = Timestamp(u64::MAX / 2);

/// Seed and size of some bytes.
pub(crate) type Piece = (u64, usize);

/// Returns the bytes of the pieces, concatenated.
pub(crate) fn bytes(pieces: &[Piece]) -> Vec<u8> {
    pieces.iter().flat_map(|(seed, size)| content(*seed, *size)).collect()
}

#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) id: VersionId,
    pub(crate) is_null: bool,
    /// `None` for a delete marker.
    pub(crate) pieces: Option<Vec<Piece>>,
    pub(crate) lock: ObjectLock,
}

impl Version {
    pub(crate) fn name(&self) -> VersionName {
        if self.is_null { VersionName::Null } else { VersionName::Id(self.id) }
    }

    pub(crate) fn size(&self) -> u64 {
        self.pieces.iter().flatten().map(|(_, size)| *size as u64).sum()
    }

    pub(crate) fn is_locked(&self, bypass_governance: bool) -> bool {
        let unexpired = self.lock.retention.filter(|retention| retention.until == FUTURE);
        let retained = unexpired
            .is_some_and(|retention| retention.mode == RetentionMode::Compliance || !bypass_governance);
        retained || self.lock.legal_hold == Some(true)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Upload {
    pub(crate) id: UploadId,
    pub(crate) parts: BTreeMap<u16, Piece>,
    /// The lock of the object that the upload will make.
    pub(crate) lock: ObjectLock,
}

/// The state of a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Key {
    /// The newest first.
    pub(crate) versions: Vec<Version>,
    /// In the order of their creation.
    pub(crate) uploads: Vec<Upload>,
}

impl Key {
    pub(crate) fn current(&self) -> Option<&Version> {
        self.versions.first().filter(|newest| newest.pieces.is_some())
    }
}

/// The state of a bucket.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) name: &'static str,
    pub(crate) versioning: Versioning,
    pub(crate) object_lock: bool,
    pub(crate) keys: BTreeMap<String, Key>,
}

impl Model {
    /// Returns an empty bucket of each kind.
    pub(crate) fn all() -> Vec<Self> {
        let kinds = [
            ("plain", Versioning::Unversioned, false),
            ("versioned", Versioning::Enabled, false),
            ("locked", Versioning::Enabled, true),
        ];
        let model =
            |(name, versioning, object_lock)| Self { name, versioning, object_lock, keys: BTreeMap::new() };
        kinds.map(model).to_vec()
    }

    pub(crate) fn settings(&self) -> BucketSettings {
        let (versioning, object_lock) = (self.versioning, self.object_lock);
        BucketSettings { versioning, object_lock, ..BucketSettings::default() }
    }

    /// Adds a version. A null version replaces the null version that exists.
    pub(crate) fn write(&mut self, key: &str, id: VersionId, pieces: Option<Vec<Piece>>, lock: ObjectLock) {
        let is_null = self.versioning != Versioning::Enabled;
        let versions = &mut self.keys.entry(key.to_owned()).or_default().versions;
        if is_null {
            versions.retain(|version| !version.is_null);
        }
        versions.insert(0, Version { id, is_null, pieces, lock });
    }

    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for key in self.keys.values() {
            if let Some(current) = key.current() {
                usage.objects += 1;
                usage.bytes += current.size();
            }
            let (markers, versions): (Vec<_>, Vec<_>) =
                key.versions.iter().partition(|version| version.pieces.is_none());
            usage.delete_markers += markers.len() as u64;
            usage.versions += versions.len() as u64;
            usage.version_bytes += versions.iter().map(|version| version.size()).sum::<u64>();
            usage.uploads += key.uploads.len() as u64;
            let parts = key.uploads.iter().flat_map(|upload| upload.parts.values());
            usage.part_bytes += parts.map(|(_, size)| *size as u64).sum::<u64>();
        }
        usage
    }
}
