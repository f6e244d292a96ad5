//! The queue of changes in front of a slice's committer.
//!
//! Executors push without waiting; the committer takes everything that is there as one batch. Bounded: beyond the limit
//! a change is refused at once.

use crate::bucket::Bucket;
use crate::error::EngineError;
use crate::extent::Extent;
use crate::limits::{BATCH_INLINE_BYTES_MAX, BATCH_JOBS_MAX, QUEUE_JOBS_MAX};
use crate::lock::{ObjectLock, Retention};
use crate::object::{Attributes, CompleteOutcome, DeleteOptions, DeleteOutcome, PutOutcome, WriteCondition};
use crate::upload::{CompleteUpload, NewUpload, PartInfo, PutPart, UploadInfo};
use crate::writer::StagedPayload;
use cairn_model::{Etag, ObjectKey, UploadId, VersionName};
use futures_channel::oneshot;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Where the outcome of a change goes. The waiting side may have gone; the change happens all the same.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, EngineError>>;

/// A change that waits for the committer.
pub(crate) enum Job {
    /// New content of an object.
    Put(Box<PutJob>, Reply<PutOutcome>),
    /// Removal of an object or a version.
    Delete(Box<DeleteJob>, Reply<DeleteOutcome>),
    /// Change of what locks a version.
    Lock(Box<LockJob>, Reply<()>),
    /// Begin of an upload.
    CreateUpload(Box<CreateUploadJob>, Reply<UploadInfo>),
    /// A part of an upload.
    PutPart(Box<PutPart>, Reply<PartInfo>),
    /// An object of an upload's parts.
    CompleteUpload(Box<CompleteUpload>, Reply<CompleteOutcome>),
    /// Removal of an upload with its parts.
    AbortUpload(Box<AbortUploadJob>, Reply<()>),
    /// Whether the bucket with this id has no record here; decided in line with all changes before it.
    ProbeEmpty(u64, Reply<bool>),
    /// Removal of marks of space that no record owns; answers with the runs that were freed.
    FreeOrphans(Box<FreeOrphansJob>, Reply<Vec<Extent>>),
}

impl Job {
    /// The payload that it brings.
    pub(crate) fn payload(&self) -> Option<&StagedPayload> {
        match self {
            Self::Put(put, _) => Some(&put.payload),
            Self::PutPart(part, _) => Some(&part.payload),
            _ => None,
        }
    }

    /// Whether it takes space away rather than needing it.
    pub(crate) const fn gives_back(&self) -> bool {
        matches!(
            self,
            Self::Delete(..) | Self::AbortUpload(..) | Self::ProbeEmpty(..) | Self::FreeOrphans(..)
        )
    }

    /// Answers it with a failure.
    pub(crate) fn fail(self, error: &EngineError) {
        // The one who asked may have gone: then there is nobody to tell.
        fn tell<T>(reply: Reply<T>, error: &EngineError) {
            let _ = reply.send(Err(error.clone()));
        }
        match self {
            Self::Put(_, reply) => tell(reply, error),
            Self::Delete(_, reply) => tell(reply, error),
            Self::Lock(_, reply) | Self::AbortUpload(_, reply) => tell(reply, error),
            Self::CreateUpload(_, reply) => tell(reply, error),
            Self::PutPart(_, reply) => tell(reply, error),
            Self::CompleteUpload(_, reply) => tell(reply, error),
            Self::ProbeEmpty(_, reply) => tell(reply, error),
            Self::FreeOrphans(_, reply) => tell(reply, error),
        }
    }
}

pub(crate) struct PutJob {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) key: ObjectKey,
    pub(crate) payload: StagedPayload,
    pub(crate) etag: Etag,
    pub(crate) attributes: Attributes,
    pub(crate) condition: WriteCondition,
    pub(crate) lock: ObjectLock,
}

pub(crate) struct DeleteJob {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) key: ObjectKey,
    pub(crate) options: DeleteOptions,
}

pub(crate) struct LockJob {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) key: ObjectKey,
    /// `None`: the current one.
    pub(crate) version: Option<VersionName>,
    pub(crate) change: LockChange,
}

/// A change of what locks a version.
pub(crate) enum LockChange {
    Retention { retention: Option<Retention>, bypass_governance: bool },
    LegalHold(bool),
}

pub(crate) struct CreateUploadJob {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) key: ObjectKey,
    pub(crate) upload: NewUpload,
}

pub(crate) struct AbortUploadJob {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) key: ObjectKey,
    pub(crate) upload: UploadId,
}

pub(crate) struct FreeOrphansJob {
    /// Number of the transaction as of which no record owned any of the runs.
    pub(crate) snapshot: u64,
    pub(crate) runs: Vec<Extent>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    closed: bool,
}

/// See the file's first lines.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a change.
    pub(crate) fn push(&self, job: Job) -> Result<(), EngineError> {
        let mut state = self.lock();
        if state.closed {
            return Err(EngineError::ShuttingDown);
        }
        if state.jobs.len() >= QUEUE_JOBS_MAX {
            return Err(EngineError::Overloaded);
        }
        state.jobs.push_back(job);
        if state.jobs.len() == 1 {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Waits for changes and takes as many as a transaction may hold. `None`: closed and empty.
    pub(crate) fn take(&self) -> Option<Vec<Job>> {
        let mut state = self.lock();
        while state.jobs.is_empty() {
            if state.closed {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut inline = 0;
        let mut fits = |job: &Job| {
            inline += job.payload().map_or(0, StagedPayload::inline_bytes);
            inline <= BATCH_INLINE_BYTES_MAX
        };
        let count = state.jobs.iter().take(BATCH_JOBS_MAX).take_while(|job| fits(job)).count();
        Some(state.jobs.drain(..count.max(1)).collect())
    }

    /// Changes that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().jobs.len()
    }

    /// Refuses further changes; those that wait are still committed.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
    }
}
