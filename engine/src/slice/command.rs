//! Commands to the committer, one for each kind of change.

use crate::error::EngineError;
use crate::format::extent::Extent;
use crate::slice::staged::StagedPayload;
use crate::types::bucket::Bucket;
use crate::types::event::{Origin, Tick};
use crate::types::import::{ImportOutcome, ImportedIdentity, PartsDigest};
use crate::types::lifecycle::{DayLength, RuleId, VersionRole};
use crate::types::lifecycle_status::RuleCounts;
use crate::types::object::{
    Attributes, ChecksumAlgorithm, CompleteOutcome, DeleteOptions, DeleteOutcome, PutOutcome, WriteCondition,
};
use crate::types::object_lock::{ObjectLock, Retention};
use crate::types::tags::Tags;
use crate::types::upload::{NewUpload, PartInfo, UploadInfo};
use cairn_model::{Etag, ObjectKey, Timestamp, UploadId, VersionId, VersionName};
use futures_channel::oneshot;
use std::sync::Arc;

/// Receives the outcome of a command. The command takes effect even if the receiver is gone.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, EngineError>>;

/// A change of a slice.
pub(crate) enum Command {
    /// Writes new content of an object.
    Put(Box<PutObject>, Reply<PutOutcome>),
    /// Deletes an object or a version.
    Delete(Box<DeleteObject>, Reply<DeleteOutcome>),
    /// Changes the lock or the tags of a version.
    ChangeVersion(Box<ChangeVersion>, Reply<VersionName>),
    /// Begins an upload.
    CreateUpload(Box<CreateUpload>, Reply<UploadInfo>),
    /// Adds a part to an upload.
    PutPart(Box<PutPart>, Reply<PartInfo>),
    /// Makes an object of an upload's parts.
    CompleteUpload(Box<CompleteUpload>, Reply<CompleteOutcome>),
    /// Writes a version of another store.
    Import(Box<ImportVersion>, Reply<ImportOutcome>),
    /// Removes an upload with its parts.
    AbortUpload(Box<AbortUpload>, Reply<()>),
    /// Asks what the slice holds of the bucket with this id, after all earlier commands.
    ProbeContents(u64, Reply<BucketContents>),
    /// Removes the first upload of a bucket that is being deleted. Replies whether there was one.
    AbortFirstUpload(Box<AbortFirstUpload>, Reply<bool>),
    /// Removes marks of extents that no record owns. Replies with the runs that were freed.
    FreeOrphans(Box<FreeOrphans>, Reply<Vec<Extent>>),
    /// Removes the oldest events, those before a tick, at most so many. Replies with their number.
    RemoveEvents { before: Tick, max: usize, reply: Reply<usize> },
    /// Builds or removes a part of a bucket's due index. Replies with what is left to do.
    IndexDue(IndexDue, Reply<DueProgress>),
    /// Removes versions that lifecycle rules say are due.
    Expire(Box<ExpireDue>, Reply<ExpireOutcome>),
}

impl Command {
    /// Returns the payload that the command brings.
    pub(crate) fn payload(&self) -> Option<&StagedPayload> {
        match self {
            Self::Put(put, _) => Some(&put.payload),
            Self::PutPart(part, _) => Some(&part.payload),
            Self::Import(import, _) => match &import.content {
                ImportedContent::Payload { payload, .. } => Some(payload),
                ImportedContent::Upload { .. } | ImportedContent::DeleteMarker => None,
            },
            _ => None,
        }
    }

    /// Returns whether the command frees space rather than needing it.
    pub(crate) const fn frees_space(&self) -> bool {
        matches!(
            self,
            Self::Delete(..)
                | Self::AbortUpload(..)
                | Self::ProbeContents(..)
                | Self::AbortFirstUpload(..)
                | Self::FreeOrphans(..)
                | Self::RemoveEvents { .. }
                | Self::Expire(..)
        )
    }

    /// Completes the command with an error.
    pub(crate) fn fail(self, error: &EngineError) {
        // The receiver may be gone.
        fn send<T>(reply: Reply<T>, error: &EngineError) {
            let _ = reply.send(Err(error.clone()));
        }
        match self {
            Self::Put(_, reply) => send(reply, error),
            Self::Delete(_, reply) => send(reply, error),
            Self::ChangeVersion(_, reply) => send(reply, error),
            Self::AbortUpload(_, reply) => send(reply, error),
            Self::CreateUpload(_, reply) => send(reply, error),
            Self::PutPart(_, reply) => send(reply, error),
            Self::CompleteUpload(_, reply) => send(reply, error),
            Self::Import(_, reply) => send(reply, error),
            Self::ProbeContents(_, reply) => send(reply, error),
            Self::AbortFirstUpload(_, reply) => send(reply, error),
            Self::FreeOrphans(_, reply) => send(reply, error),
            Self::RemoveEvents { reply, .. } => send(reply, error),
            Self::IndexDue(_, reply) => send(reply, error),
            Self::Expire(_, reply) => send(reply, error),
        }
    }
}

pub(crate) struct DeleteObject {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) key: ObjectKey,
    pub(crate) options: DeleteOptions,
}

pub(crate) struct ChangeVersion {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) key: ObjectKey,
    /// `None` means the current version.
    pub(crate) version: Option<VersionName>,
    /// Whether the version is only changed if an import has brought it.
    pub(crate) only_imported: bool,
    pub(crate) change: VersionChange,
}

/// A change of a version's metadata.
pub enum VersionChange {
    /// Its retention, and whether the caller may shorten one in governance mode.
    Retention {
        /// `None` removes it.
        retention: Option<Retention>,
        /// The caller has checked the permission.
        bypass_governance: bool,
    },
    /// Its legal hold.
    LegalHold(bool),
    /// All of its tags.
    Tags(Tags),
}

pub(crate) struct CreateUpload {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) key: ObjectKey,
    pub(crate) upload: NewUpload,
}

pub(crate) struct AbortUpload {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) key: ObjectKey,
    pub(crate) upload: UploadId,
    pub(crate) origin: Origin,
}

pub(crate) struct AbortFirstUpload {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) origin: Origin,
}

/// The content of a bucket in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketContents {
    Nothing,
    /// Unfinished uploads, but no version and no delete marker.
    OnlyUploads,
    Versions,
}

pub(crate) struct FreeOrphans {
    /// Number of a transaction. In its snapshot no record owned any of the runs.
    pub(crate) snapshot: u64,
    pub(crate) runs: Vec<Extent>,
}

/// A step towards the due index that a bucket should have: one if it has lifecycle rules, none otherwise.
pub(crate) struct IndexDue {
    /// Id of the bucket.
    pub(crate) id: u64,
    /// The bucket, if it exists.
    pub(crate) bucket: Option<Arc<Bucket>>,
    /// Most entries that are added or removed.
    pub(crate) entries_max: usize,
}

/// The progress of building or removing a due index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DueProgress {
    /// Further steps are needed.
    Unfinished,
    /// The index is as it should be.
    Finished,
}

/// Versions of one bucket that some rule may consider due.
pub(crate) struct ExpireDue {
    pub(crate) bucket: Arc<Bucket>,
    /// The time that the worker trusts. Nothing that is due later is removed.
    pub(crate) now: Timestamp,
    pub(crate) day: DayLength,
    /// The author of the changes, for their events.
    pub(crate) origin: Origin,
    pub(crate) candidates: Vec<DueVersion>,
}

/// An entry of a due index.
#[derive(Clone, Debug)]
pub(crate) struct DueVersion {
    pub(crate) role: VersionRole,
    pub(crate) since: Timestamp,
    pub(crate) version: VersionId,
    pub(crate) key: ObjectKey,
}

/// The outcome of the examination of candidates.
#[derive(Debug, Default)]
pub(crate) struct ExpireOutcome {
    /// The first so many candidates were decided. The others are left for another command.
    pub(crate) decided: usize,
    /// The counts of each rule.
    pub(crate) counts: Vec<(RuleId, RuleCounts)>,
    /// The last reason why some candidates could not be removed.
    pub(crate) failure: Option<EngineError>,
}

/// A put of an object whose payload has been written.
pub struct PutObject {
    /// The bucket.
    pub bucket: Arc<Bucket>,
    /// The key that the payload was written for.
    pub key: ObjectKey,
    /// The payload, with all its writes completed.
    pub payload: StagedPayload,
    /// Entity tag of the payload.
    pub etag: Etag,
    /// Stored headers, and checksums that have been verified.
    pub attributes: Attributes,
    /// Conditions on the current object.
    pub condition: WriteCondition,
    /// Lock of the new version. Without a retention it gets the bucket's default retention.
    pub lock: ObjectLock,
    /// The origin of the request.
    pub origin: Origin,
}

/// An upload of a part whose payload has been written.
pub struct PutPart {
    /// The bucket.
    pub bucket: Arc<Bucket>,
    /// The key that the upload is for.
    pub key: ObjectKey,
    /// The upload.
    pub upload: UploadId,
    /// Number of the part, 1 to 10 000.
    pub number: u16,
    /// The payload, written for this key ([`crate::Engine::write_payload`]), with all its writes completed.
    pub payload: StagedPayload,
    /// Checksum of the part, which has been verified.
    pub checksum: Option<(ChecksumAlgorithm, Vec<u8>)>,
}

/// A completion of an upload.
pub struct CompleteUpload {
    /// The bucket.
    pub bucket: Arc<Bucket>,
    /// The key that the upload is for.
    pub key: ObjectKey,
    /// The upload.
    pub upload: UploadId,
    /// Number and [`PartInfo::md5`](crate::PartInfo::md5) of each part of the object, in ascending order of numbers. Other
    /// parts are removed.
    pub parts: Vec<(u16, [u8; 16])>,
    /// Checksums of the object.
    pub checksums: Vec<(ChecksumAlgorithm, Vec<u8>)>,
    /// Conditions on the current object.
    pub condition: WriteCondition,
    /// The origin of the request.
    pub origin: Origin,
}

/// The content of an imported version.
pub enum ImportedContent {
    /// A payload that has been written, with all its writes completed.
    Payload {
        /// The payload.
        payload: Box<StagedPayload>,
        /// Stored headers and tags, and checksums that have been verified.
        attributes: Attributes,
        /// Lock of the version. The bucket's default retention does not apply.
        lock: ObjectLock,
    },
    /// All parts of an upload, with the attributes and the lock that the upload was begun with.
    Upload {
        /// The upload.
        upload: UploadId,
        /// The checksum of the object, if the upload has one.
        checksum: Option<PartsDigest>,
    },
    /// None: the version is a delete marker.
    DeleteMarker,
}

/// A version of another store, which gets its place among the versions of its key by its date.
pub struct ImportVersion {
    /// The bucket.
    pub bucket: Arc<Bucket>,
    /// The key.
    pub key: ObjectKey,
    /// The identity of the version at its source.
    pub identity: ImportedIdentity,
    /// Its content.
    pub content: ImportedContent,
    /// Whether storage events are written for it.
    pub emits_events: bool,
    /// The origin of the request.
    pub origin: Origin,
}
