//! A model of one key: its versions, locks and uploads, and what each change does to them.

use crate::simulation::buckets::StoppedClock;
use crate::types::bucket::{Usage, Versioning};
use crate::types::object::PartRun;
use crate::types::object_lock::ObjectLock;
use cairn_model::{Etag, ImportedId, Timestamp, VersionId, VersionName};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The model's placeholders for sequences that it does not know begin here.
const UNKNOWN_SEQUENCES: u64 = 1 << 60;

/// A payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) etag: Etag,
    pub(crate) bytes: Arc<Vec<u8>>,
    /// The parts of the upload; empty when it was put with one request.
    pub(crate) parts: Vec<PartRun>,
}

/// A version of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) is_null: bool,
    /// `None` for a delete marker.
    pub(crate) content: Option<Content>,
    pub(crate) lock: ObjectLock,
}

/// Parts of an unfinished upload, by number: MD5 and bytes.
pub(crate) type Parts = BTreeMap<u16, ([u8; 16], Arc<Vec<u8>>)>;

/// The state of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyState {
    /// By sequence, or number of an imported version.
    pub(crate) versions: BTreeMap<VersionId, Version>,
    /// By id.
    pub(crate) uploads: BTreeMap<u64, Parts>,
}

/// A change of a key.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A put or a copy; with `upload`, the completion of that upload.
    Write {
        content: Content,
        lock: ObjectLock,
        upload: Option<u64>,
    },
    /// Deletes the current object; creates a delete marker when the bucket has versioning.
    Delete,
    /// Imports a version with this number.
    Import(VersionId, Content),
    /// Removes the version with this sequence.
    DeleteVersion(VersionId),
    /// Replaces the lock of the version with this sequence.
    Lock(VersionId, ObjectLock),
    CreateUpload,
    PutPart {
        upload: u64,
        number: u16,
        md5: [u8; 16],
        bytes: Arc<Vec<u8>>,
    },
    AbortUpload(u64),
}

impl Change {
    /// Describes the change in a few words, for people.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Write { content, upload, .. } => {
                format!("write of {} bytes, upload {upload:?}", content.bytes.len())
            }
            Self::PutPart { upload, number, bytes, .. } => {
                format!("part {number} of upload {upload}, {} bytes", bytes.len())
            }
            Self::Import(number, content) => {
                format!("import of version {number}, {} bytes", content.bytes.len())
            }
            other => format!("{other:?}"),
        }
    }
}

impl KeyState {
    /// Returns the payload of the current object.
    pub(crate) fn current(&self) -> Option<&Content> {
        self.versions.values().next_back().and_then(|newest| newest.content.as_ref())
    }

    /// Applies a change. A new version or upload gets the sequence `id`.
    pub(crate) fn apply(&mut self, change: &Change, versioning: Versioning, id: u64) {
        match change {
            Change::Write { content, lock, upload } => {
                if let Some(upload) = upload {
                    self.uploads.remove(upload);
                }
                self.write(Some(content.clone()), *lock, versioning, id);
            }
            Change::Delete if versioning == Versioning::Unversioned => self.versions.clear(),
            Change::Delete => self.write(None, ObjectLock::default(), versioning, id),
            Change::Import(number, content) => {
                let content = Some(content.clone());
                let version = Version { is_null: false, content, lock: ObjectLock::default() };
                self.versions.insert(*number, version);
            }
            Change::DeleteVersion(sequence) => drop(self.versions.remove(sequence)),
            Change::Lock(sequence, lock) => {
                if let Some(version) = self.versions.get_mut(sequence) {
                    version.lock = *lock;
                }
            }
            Change::CreateUpload => drop(self.uploads.insert(id, Parts::new())),
            Change::PutPart { upload, number, md5, bytes } => {
                if let Some(parts) = self.uploads.get_mut(upload) {
                    parts.insert(*number, (*md5, Arc::clone(bytes)));
                }
            }
            Change::AbortUpload(upload) => drop(self.uploads.remove(upload)),
        }
    }

    /// Adds a version. Only the newest null version remains, whatever the order in which they are acknowledged.
    fn write(&mut self, content: Option<Content>, lock: ObjectLock, versioning: Versioning, id: u64) {
        let (is_null, id) = (versioning != Versioning::Enabled, VersionId(id));
        if is_null {
            if self.versions.range(id..).any(|(_, version)| version.is_null) {
                return;
            }
            self.versions.retain(|_, version| !version.is_null);
        }
        self.versions.insert(id, Version { is_null, content, lock });
    }

    /// As [`Self::apply`], for a change whose sequence is unknown. It becomes the newest.
    pub(crate) fn apply_with_unknown_sequence(&mut self, change: &Change, versioning: Versioning) {
        let versions = self.versions.keys().filter(|version| !version.is_imported()).map(|version| version.0);
        let last = versions.chain(self.uploads.keys().copied()).max().unwrap_or(0).max(UNKNOWN_SEQUENCES);
        self.apply(change, versioning, last + 1);
    }

    /// Returns the state with its unknown sequences replaced by those of `found`; `None` when the two differ otherwise.
    pub(crate) fn with_sequences_of(&self, found: &Self) -> Option<Self> {
        let versions = replace_unknown(&self.versions, &found.versions, VersionId(UNKNOWN_SEQUENCES))?;
        let uploads = replace_unknown(&self.uploads, &found.uploads, UNKNOWN_SEQUENCES)?;
        Some(Self { versions, uploads }).filter(|state| state == found)
    }

    /// Returns the usage that the key contributes to its bucket.
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for version in self.versions.values() {
            match &version.content {
                None => usage.delete_markers += 1,
                Some(content) => {
                    usage.versions += 1;
                    usage.version_bytes += content.bytes.len() as u64;
                }
            }
        }
        if let Some(current) = self.current() {
            (usage.objects, usage.bytes) = (1, current.bytes.len() as u64);
        }
        usage.uploads = self.uploads.len() as u64;
        let parts = self.uploads.values().flat_map(BTreeMap::values);
        usage.part_bytes = parts.map(|(_, bytes)| bytes.len() as u64).sum();
        usage
    }

    /// Describes the state in a few words, for people.
    pub(crate) fn describe(&self) -> String {
        let version = |(sequence, version): (&VersionId, &Version)| {
            let size = version.content.as_ref().map(|content| content.bytes.len());
            let null = if version.is_null { " null" } else { "" };
            let locked = if version.lock == ObjectLock::default() { "" } else { " locked" };
            size.map_or_else(
                || format!("{sequence}{null} delete marker"),
                |size| format!("{sequence}{null}{locked} of {size} bytes"),
            )
        };
        let upload = |(id, parts): (&u64, &Parts)| {
            let parts: Vec<_> = parts.iter().map(|(number, (_, bytes))| (*number, bytes.len())).collect();
            format!("upload {id} {parts:?}")
        };
        let all: Vec<_> = self.versions.iter().map(version).chain(self.uploads.iter().map(upload)).collect();
        format!("[{}]", all.join(", "))
    }
}

/// Returns the id by which clients know an imported version of the workload.
pub(crate) fn imported_id(number: VersionId) -> ImportedId {
    ImportedId::parse(&format!("import-{number}")).expect("its form is valid")
}

/// Returns when a version of the workload was written. The number of an imported version tells it.
pub(crate) fn last_modified(version: VersionId) -> Timestamp {
    let imported = (0..48).rev().fold(0, |time: u64, bit| {
        let later = time | 1 << bit;
        let is_reached = VersionId::imported_at(later).is_some_and(|first| first <= version);
        if is_reached { later } else { time }
    });
    if version.is_imported() { Timestamp(imported) } else { StoppedClock::NOW }
}

/// Returns a version as clients name it.
pub(crate) fn name_of(sequence: VersionId, version: &Version) -> VersionName {
    match version.is_null {
        true => VersionName::Null,
        false if sequence.is_imported() => VersionName::Imported(imported_id(sequence)),
        false => VersionName::Id(sequence),
    }
}

/// Replaces the unknown sequences in `of`, which are not less than `first_unknown`, by those sequences of `found` that are not
/// in `of`, in their order.
fn replace_unknown<K: Copy + Ord, T: Clone>(
    of: &BTreeMap<K, T>,
    found: &BTreeMap<K, T>,
    first_unknown: K,
) -> Option<BTreeMap<K, T>> {
    let mut others = found.keys().filter(|sequence| !of.contains_key(sequence));
    let known = |(sequence, value): (&K, &T)| {
        let sequence = if *sequence >= first_unknown { *others.next()? } else { *sequence };
        Some((sequence, value.clone()))
    };
    of.iter().map(known).collect()
}
