//! Quota accounting of a batch.
//!
//! What a change adds to a bucket's current objects counts from before the commit, and no longer if the commit fails. What
//! it removes counts until the commit is durable. So no order of commits on several slices exceeds a limit.

use super::Batch;
use super::effects::QuotaReservation;
use super::lookup::TargetKey;
use crate::error::EngineError;
use crate::slice::change_log::Change;
use crate::types::bucket::{Bucket, QuotaUsage};
use std::sync::Arc;

impl Batch<'_> {
    /// Records that the current object of a key now counts for `after` instead of `before`.
    pub(super) fn record_current(&mut self, target: &TargetKey, before: QuotaUsage, after: QuotaUsage) {
        let counts = after.change_from(before);
        self.count(&target.bucket, &counts);
        if let Some(changes) = &mut self.changes {
            let versions = target.versions.clone();
            changes.push(Change::Current { versions, bucket: target.bucket.id, counts });
        }
    }

    /// Reserves quota for a change of a key's current object from `before` to `after`.
    pub(super) fn reserve_quota(
        &mut self,
        bucket: &Arc<Bucket>,
        before: QuotaUsage,
        after: QuotaUsage,
    ) -> Result<(), EngineError> {
        let (added, removed) = (after.excess_over(before), before.excess_over(after));
        bucket.reserve_quota(added)?;
        self.effects.quota_reservations.push(QuotaReservation { bucket: Arc::clone(bucket), added, removed });
        Ok(())
    }

    /// Cancels the latest reservation: the change that it was made for is refused.
    pub(super) fn cancel_last_quota_reservation(&mut self) {
        let last = self.effects.quota_reservations.pop();
        last.expect("a reservation is made before it is cancelled").cancel();
    }
}
