//! The effects of a batch in memory after its commit: space, quota, usage and answers.

use crate::error::EngineError;
use crate::format::extent::Extent;
use crate::slice::Slice;
use crate::space::allocator::RemovedPayload;
use crate::space::reservation::Reservation;
use crate::types::bucket::{Bucket, QuotaUsage, Usage};
use std::collections::HashMap;
use std::sync::Arc;

/// Sends the outcome of a command after the commit. Its argument is the error if the commit failed.
pub(super) type Completion = Box<dyn FnOnce(Option<&EngineError>)>;

/// The reservation of one change in a bucket's quota: what it adds and what it removes.
pub(super) struct QuotaReservation {
    pub(super) bucket: Arc<Bucket>,
    /// Counted now. Released when the commit fails.
    pub(super) added: QuotaUsage,
    /// Released when the commit succeeds.
    pub(super) removed: QuotaUsage,
}

impl QuotaReservation {
    /// Releases what the change would have added.
    pub(super) fn cancel(&self) {
        self.bucket.release_quota(self.added);
    }

    /// Releases what the change has removed.
    pub(super) fn complete(&self) {
        self.bucket.release_quota(self.removed);
    }
}

/// The effects of a batch. Nobody sees them before the commit.
#[derive(Default)]
pub(super) struct CommitEffects {
    /// Change of each bucket's usage, by the bucket's id. The counters wrap.
    pub(super) usage: HashMap<u64, (Arc<Bucket>, Usage)>,
    pub(super) completions: Vec<Completion>,
    /// Extents of the new payloads. Records own them if the commit succeeds, else they are freed.
    pub(super) reservations: Vec<Reservation>,
    /// Payloads that records no longer name after the commit.
    pub(super) removed: Vec<RemovedPayload>,
    /// Extents that no record owned, and whose marks in the free map are removed.
    pub(super) freed_orphans: Vec<Extent>,
    pub(super) quota_reservations: Vec<QuotaReservation>,
}

impl CommitEffects {
    /// Carries out the effects after a commit, and completes the commands last.
    pub(super) fn carry_out(self, slice: &Slice) {
        self.reservations.into_iter().for_each(Reservation::commit);
        slice.space.allocator.free_removed(self.removed);
        slice.space.allocator.free_orphans(self.freed_orphans);
        self.quota_reservations.iter().for_each(QuotaReservation::complete);
        for (bucket, change) in self.usage.values() {
            bucket.add_usage(change);
        }
        complete_all(self.completions, None);
    }

    /// Fails every command. Unless the extents of new payloads are kept from other writers, they become free.
    pub(super) fn cancel(self, error: &EngineError, keep_extents: bool) {
        complete_all(self.completions, Some(error));
        self.quota_reservations.iter().for_each(QuotaReservation::cancel);
        if keep_extents {
            self.reservations.into_iter().for_each(Reservation::commit);
        }
    }
}

pub(super) fn complete_all(completions: Vec<Completion>, failure: Option<&EngineError>) {
    completions.into_iter().for_each(|complete| complete(failure));
}
