//! What a key holds, and what changes do with it: the rules of versions, uploads and locks as a campaign's checker has them.

use crate::bucket::{Usage, Versioning};
use crate::lock::ObjectLock;
use crate::object::PartRun;
use cairn_model::Etag;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Sequences that the checker gives to what it does not know the sequence of are this and more.
const UNKNOWN: u64 = 1 << 60;

/// A payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) etag: Etag,
    pub(crate) bytes: Arc<Vec<u8>>,
    /// The parts that it was uploaded in; empty when it was put in one piece.
    pub(crate) parts: Vec<PartRun>,
}

/// A version of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) is_null: bool,
    /// `None`: a delete marker.
    pub(crate) content: Option<Content>,
    pub(crate) lock: ObjectLock,
}

/// Parts of an unfinished upload, by number: MD5 and bytes.
pub(crate) type Parts = BTreeMap<u16, ([u8; 16], Arc<Vec<u8>>)>;

/// All that a key holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyState {
    /// By sequence.
    pub(crate) versions: BTreeMap<u64, Version>,
    /// By id.
    pub(crate) uploads: BTreeMap<u64, Parts>,
}

/// A change of a key.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A put, a copy, or, with the upload whose parts it takes, a completion.
    Write {
        content: Content,
        lock: ObjectLock,
        upload: Option<u64>,
    },
    /// Removal of the current object, by a delete marker where the bucket has versioning.
    Delete,
    /// Removal of the version with a sequence.
    DeleteVersion(u64),
    /// Another lock of the version with a sequence.
    Lock(u64, ObjectLock),
    CreateUpload,
    PutPart {
        upload: u64,
        number: u16,
        md5: [u8; 16],
        bytes: Arc<Vec<u8>>,
    },
    AbortUpload(u64),
}

impl KeyState {
    /// The current object.
    pub(crate) fn current(&self) -> Option<&Content> {
        self.versions.values().next_back().and_then(|newest| newest.content.as_ref())
    }

    /// What a change makes of it. A new version or upload gets the sequence `id`.
    pub(crate) fn change(&mut self, change: &Change, versioning: Versioning, id: u64) {
        match change {
            Change::Write { content, lock, upload } => {
                if let Some(upload) = upload {
                    self.uploads.remove(upload);
                }
                self.write(Some(content.clone()), *lock, versioning, id);
            }
            Change::Delete if versioning == Versioning::Unversioned => self.versions.clear(),
            Change::Delete => self.write(None, ObjectLock::default(), versioning, id),
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

    /// A version comes; of null versions the newest alone stays, in whatever order they are told.
    fn write(&mut self, content: Option<Content>, lock: ObjectLock, versioning: Versioning, id: u64) {
        let is_null = versioning != Versioning::Enabled;
        if is_null {
            if self.versions.range(id..).any(|(_, version)| version.is_null) {
                return;
            }
            self.versions.retain(|_, version| !version.is_null);
        }
        self.versions.insert(id, Version { is_null, content, lock });
    }

    /// As [`Self::change`], of a change that nobody knows the sequence of; it is behind all others.
    pub(crate) fn change_unknown(&mut self, change: &Change, versioning: Versioning) {
        let sequences = self.versions.keys().chain(self.uploads.keys());
        let last = sequences.copied().max().unwrap_or(0).max(UNKNOWN);
        self.change(change, versioning, last + 1);
    }

    /// The state with the sequences of `found`, when that is all that distinguishes the two.
    pub(crate) fn identified(&self, found: &Self) -> Option<Self> {
        let versions = identified(&self.versions, &found.versions)?;
        let uploads = identified(&self.uploads, &found.uploads)?;
        Some(Self { versions, uploads }).filter(|state| state == found)
    }

    /// What it counts for.
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

    /// In few words, for people.
    pub(crate) fn describe(&self) -> String {
        let version = |(sequence, version): (&u64, &Version)| {
            let size = version.content.as_ref().map(|content| content.bytes.len());
            let null = if version.is_null { " null" } else { "" };
            let locked = if version.lock == ObjectLock::default() { "" } else { " locked" };
            size.map_or_else(
                || format!("{sequence}{null} marker"),
                |size| format!("{sequence}{null}{locked} of {size}"),
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

/// `of` with its unknown sequences replaced by those that `found` has beside the known ones, in order.
fn identified<T: Clone>(of: &BTreeMap<u64, T>, found: &BTreeMap<u64, T>) -> Option<BTreeMap<u64, T>> {
    let mut others = found.keys().filter(|sequence| !of.contains_key(sequence));
    let known = |(sequence, value): (&u64, &T)| {
        let sequence = if *sequence >= UNKNOWN { *others.next()? } else { *sequence };
        Some((sequence, value.clone()))
    };
    of.iter().map(known).collect()
}
