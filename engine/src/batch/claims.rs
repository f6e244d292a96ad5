//! Quotas: what the changes of a batch add to a bucket's current objects, and take away.
//!
//! What is added counts before the commit, and no longer when there is none; what is taken away counts until the commit is
//! durable. So no order of commits on several slices passes a limit.

use super::{Batch, Place};
use crate::bucket::{Bucket, Usage};
use crate::changes::Change;
use crate::error::EngineError;
use std::sync::Arc;

/// Objects and bytes of a bucket that count against its quota.
pub(super) struct Claim {
    bucket: Arc<Bucket>,
    objects: u64,
    bytes: u64,
}

impl Batch<'_> {
    /// Notes that the current object of a key counts for `after` and no longer for `before`.
    pub(super) fn note_current(&mut self, place: &Place, before: (u64, u64), after: (u64, u64)) {
        let counts = Usage {
            objects: after.0.wrapping_sub(before.0),
            bytes: after.1.wrapping_sub(before.1),
            ..Usage::default()
        };
        self.count(&place.bucket, &counts);
        if let Some(changes) = &mut self.changes {
            let versions = place.versions.clone();
            changes.push(Change::Current { versions, bucket: place.bucket.id, counts });
        }
    }

    /// Counts against the quota what the current object of a key becomes.
    pub(super) fn claim(
        &mut self,
        bucket: &Arc<Bucket>,
        before: (u64, u64),
        after: (u64, u64),
    ) -> Result<(), EngineError> {
        let (objects, bytes) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
        bucket.claim(objects, bytes)?;
        let claim = |objects, bytes| Claim { bucket: Arc::clone(bucket), objects, bytes };
        self.claims.push(claim(objects, bytes));
        self.released.push(claim(before.0.saturating_sub(after.0), before.1.saturating_sub(after.1)));
        Ok(())
    }

    pub(super) fn unclaim_last(&mut self) {
        self.released.pop();
        if let Some(Claim { bucket, objects, bytes }) = self.claims.pop() {
            bucket.unclaim(objects, bytes);
        }
    }
}

/// Takes back what was counted.
pub(super) fn unclaim(claims: &[Claim]) {
    for Claim { bucket, objects, bytes } in claims {
        bucket.unclaim(*objects, *bytes);
    }
}
