//! Admission of writes: what does not fit is refused before its bytes are received or copied, and copies wait for their
//! turn.
//!
//! The commit decides exactly. The checks only avoid work whose result would be refused, so they may be out of date by the
//! time of the commit, in both directions.

use crate::api::engine::Engine;
use crate::error::EngineError;
use crate::executor::copy_queue::CopyPermit;
use crate::limits::{INLINE_BYTES_MAX, UNIT_BYTES};
use crate::slice::Slice;
use crate::types::bucket::{Bucket, Quota, QuotaUsage};
use cairn_model::ObjectKey;
use std::sync::Arc;

impl Engine {
    /// Refuses an object of `size` bytes that would exceed the bucket's quota now. `quota` is that of the bucket's
    /// current settings, which every caller has read already.
    ///
    /// Costs nothing without a quota, and a lookup of the current object only when the new one would fit only in its place.
    ///
    /// # Errors
    /// [`EngineError::QuotaExceeded`], and errors of the lookup.
    pub fn check_quota(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        quota: Quota,
        size: u64,
    ) -> Result<(), EngineError> {
        let after = QuotaUsage { objects: 1, bytes: size };
        if bucket.fits_quota(quota, after) {
            return Ok(());
        }
        let before = match self.head_object(bucket, key, None) {
            Ok(current) => QuotaUsage { objects: 1, bytes: current.size },
            Err(EngineError::NoSuchKey | EngineError::DeleteMarker { .. }) => QuotaUsage::default(),
            Err(error) => return Err(error),
        };
        let fits = bucket.fits_quota(quota, after.excess_over(before));
        let decided = if fits { Ok(()) } else { Err(EngineError::QuotaExceeded) };
        self.context.counters.count_refusal(decided)
    }

    /// Refuses a payload of `size` bytes that the slice has no space for, even if its volumes grow as far as they can.
    ///
    /// # Errors
    /// [`EngineError::StorageFull`].
    pub(crate) fn check_space(&self, slice: &Slice, size: u64) -> Result<(), EngineError> {
        let growable = self.store().disk.growable_bytes();
        // The allocator's lock is taken only in a store that is nearly full.
        if size <= INLINE_BYTES_MAX || size <= growable {
            return Ok(());
        }
        let free = slice.space.allocator.free_space().free_units.saturating_mul(UNIT_BYTES);
        let fits = size <= growable.saturating_add(free);
        self.context.counters.count_refusal(if fits { Ok(()) } else { Err(EngineError::StorageFull) })
    }

    /// Admits a copy of `size` bytes for a key: waits for its turn among the copies of this executor. `client` is whose
    /// copies are bounded together, such as an account. Quota and space are checked before the wait and after it.
    /// Dropping the future gives up the place in the queue.
    ///
    /// # Errors
    /// [`EngineError::QuotaExceeded`], [`EngineError::StorageFull`]; [`EngineError::Overloaded`] if too many copies wait.
    pub async fn admit_copy(
        &self,
        client: &str,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        size: u64,
    ) -> Result<CopyPermit, EngineError> {
        let check_room = || {
            self.check_quota(bucket, key, bucket.settings().quota, size)?;
            self.check_space(self.store().slice_of(bucket, key)?, size)
        };
        check_room()?;
        let admission = self.context.copies.admit(client, &self.store().background.activities).await;
        let permit = self.context.counters.count_refusal(admission)?;
        check_room()?;
        Ok(permit)
    }
}
