//! A bucket as all threads share it: its fixed facts, its settings, its state and its usage.
//!
//! Settings are read by committers and executors at every request and changed by the control thread alone, which makes
//! a change durable before it shows it here.

use crate::error::EngineError;
use crate::lock::DefaultRetention;
use cairn_model::{BucketName, Timestamp};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Whether a bucket keeps versions (AWS: "Using versioning in S3 buckets").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versioning {
    /// It never did.
    #[default]
    Unversioned,
    /// Every write makes a version.
    Enabled,
    /// Writes replace the `null` version; others stay.
    Suspended,
}

/// Limits of what a bucket holds in current objects; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Bytes of their payloads.
    pub bytes: Option<u64>,
    /// Their number.
    pub objects: Option<u64>,
}

/// What can be set of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketSettings {
    /// Whether it keeps versions.
    pub versioning: Versioning,
    /// Whether its versions can be locked; decided when the bucket is made.
    pub object_lock: bool,
    /// The retention of versions that are written without one.
    pub default_retention: Option<DefaultRetention>,
    /// Its CORS rules, in the form in which the layer above keeps them.
    pub cors: Option<Arc<[u8]>>,
    /// Limits of what it holds.
    pub quota: Quota,
}

/// A change of a bucket's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BucketChange {
    /// Sets whether it keeps versions. Back to [`Versioning::Unversioned`] leads no way.
    Versioning(Versioning),
    /// Sets the default retention of a bucket with object lock.
    DefaultRetention(Option<DefaultRetention>),
    /// Sets, or takes away, the CORS rules.
    Cors(Option<Arc<[u8]>>),
    /// Sets the quota.
    Quota(Quota),
}

/// A bucket.
#[derive(Debug)]
pub struct Bucket {
    /// Its name.
    pub name: BucketName,
    /// When it was made.
    pub created_at: Timestamp,
    /// Never used again for another bucket of the same name.
    pub(crate) id: u64,
    settings: RwLock<Arc<BucketSettings>>,
    state: AtomicU8,
    usage: UsageCounters,
    claims: Claims,
}

/// What a bucket holds, exact as of the last commit of each slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of current objects.
    pub objects: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Versions with a payload, current ones among them.
    pub versions: u64,
    /// Bytes of their payloads.
    pub version_bytes: u64,
    /// Delete markers.
    pub delete_markers: u64,
    /// Multipart uploads that were begun and neither completed nor aborted.
    pub uploads: u64,
    /// Bytes of their parts.
    pub part_bytes: u64,
}

impl Usage {
    /// Number of counters.
    pub(crate) const COUNTERS: usize = 7;

    /// The counters in the order of the record.
    pub(crate) const fn counters(&self) -> [u64; Self::COUNTERS] {
        [
            self.objects,
            self.bytes,
            self.versions,
            self.version_bytes,
            self.delete_markers,
            self.uploads,
            self.part_bytes,
        ]
    }

    /// The usage with these counters.
    pub(crate) const fn of_counters(counters: [u64; Self::COUNTERS]) -> Self {
        let [objects, bytes, versions, version_bytes, delete_markers, uploads, part_bytes] = counters;
        Self { objects, bytes, versions, version_bytes, delete_markers, uploads, part_bytes }
    }

    /// Adds `other`, which may be a difference: numbers wrap, so that a negative one subtracts.
    pub(crate) fn add(&mut self, other: &Self) {
        let mut counters = self.counters();
        for (counter, more) in counters.iter_mut().zip(other.counters()) {
            *counter = counter.wrapping_add(more);
        }
        *self = Self::of_counters(counters);
    }

    /// The difference that takes `self` away again.
    pub(crate) fn negated(&self) -> Self {
        Self::of_counters(self.counters().map(u64::wrapping_neg))
    }

    /// Bytes of all payloads, those of unfinished uploads included.
    #[must_use]
    pub const fn physical_bytes(&self) -> u64 {
        self.version_bytes.wrapping_add(self.part_bytes)
    }
}

#[derive(Debug, Default)]
struct UsageCounters([AtomicU64; Usage::COUNTERS]);

/// What counts against the quota: current objects as of the last commits, and what changes under way will add. What they
/// take away counts until it is durable, so no order of commits passes a limit.
#[derive(Debug, Default)]
struct Claims {
    objects: AtomicU64,
    bytes: AtomicU64,
}

/// Whether changes are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketState {
    Active,
    /// Its deletion is being decided: changes are refused as conflicts.
    Deleting,
    Deleted,
}

impl Bucket {
    pub(crate) fn new(id: u64, name: BucketName, created_at: Timestamp, settings: BucketSettings) -> Self {
        Self {
            name,
            created_at,
            id,
            settings: RwLock::new(Arc::new(settings)),
            state: AtomicU8::new(0),
            usage: UsageCounters::default(),
            claims: Claims::default(),
        }
    }

    /// The settings as they are now.
    #[must_use]
    pub fn settings(&self) -> Arc<BucketSettings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether it keeps versions.
    #[must_use]
    pub fn versioning(&self) -> Versioning {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).versioning
    }

    /// Shows settings that are durable.
    pub(crate) fn set_settings(&self, settings: BucketSettings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// Usage over all slices.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage::of_counters(self.usage.0.each_ref().map(|counter| counter.load(Ordering::Relaxed)))
    }

    /// Adds what one commit changed; the differences wrap, so that a negative one subtracts.
    pub(crate) fn add_usage(&self, change: &Usage) {
        for (counter, more) in self.usage.0.iter().zip(change.counters()) {
            counter.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Adds what a slice of a store that is being opened holds.
    pub(crate) fn load_usage(&self, usage: &Usage) {
        self.add_usage(usage);
        self.claim_unasked(usage.objects, usage.bytes);
    }

    /// Counts `objects` and `bytes` more against the quota, which is not asked.
    pub(crate) fn claim_unasked(&self, objects: u64, bytes: u64) {
        self.claims.objects.fetch_add(objects, Ordering::SeqCst);
        self.claims.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Counts `objects` and `bytes` more against the quota.
    ///
    /// # Errors
    /// [`EngineError::QuotaExceeded`]; nothing was counted then.
    pub(crate) fn claim(&self, objects: u64, bytes: u64) -> Result<(), EngineError> {
        // Held while claiming, so that a lower limit is set either before or after, never in between.
        let settings = self.settings.read().unwrap_or_else(PoisonError::into_inner);
        let quota = settings.quota;
        let claim = |counter: &AtomicU64, more: u64, limit: Option<u64>| {
            let claimed = counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |held| {
                let held = held.checked_add(more)?;
                // What takes nothing more is never refused, though a limit may lie below what is there.
                (more == 0 || limit.is_none_or(|limit| held <= limit)).then_some(held)
            });
            claimed.map(|_| ()).map_err(|_| EngineError::QuotaExceeded)
        };
        claim(&self.claims.objects, objects, quota.objects)?;
        claim(&self.claims.bytes, bytes, quota.bytes).inspect_err(|_| self.unclaim(objects, 0))
    }

    /// Takes back what was counted against the quota: it did not happen, or what it was for is gone.
    pub(crate) fn unclaim(&self, objects: u64, bytes: u64) {
        self.claims.objects.fetch_sub(objects, Ordering::SeqCst);
        self.claims.bytes.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Sets the quota that claims are held against.
    ///
    /// # Errors
    /// [`EngineError::QuotaBelowUsage`]; nothing was changed then.
    pub(crate) fn set_quota(&self, quota: Quota) -> Result<(), EngineError> {
        let mut settings = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        let (objects, bytes) = self.claimed();
        let fits = |limit: Option<u64>, held| limit.is_none_or(|limit| held <= limit);
        if !fits(quota.objects, objects) || !fits(quota.bytes, bytes) {
            return Err(EngineError::QuotaBelowUsage);
        }
        *settings = Arc::new(BucketSettings { quota, ..BucketSettings::clone(&settings) });
        Ok(())
    }

    fn claimed(&self) -> (u64, u64) {
        (self.claims.objects.load(Ordering::SeqCst), self.claims.bytes.load(Ordering::SeqCst))
    }

    pub(crate) fn state(&self) -> BucketState {
        match self.state.load(Ordering::SeqCst) {
            0 => BucketState::Active,
            1 => BucketState::Deleting,
            _ => BucketState::Deleted,
        }
    }

    pub(crate) fn set_state(&self, state: BucketState) {
        let number = match state {
            BucketState::Active => 0,
            BucketState::Deleting => 1,
            BucketState::Deleted => 2,
        };
        self.state.store(number, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::{Bucket, BucketSettings, Quota};
    use crate::error::EngineError;
    use cairn_model::{BucketName, Timestamp};

    fn bucket(quota: Quota) -> Bucket {
        let settings = BucketSettings { quota, ..BucketSettings::default() };
        Bucket::new(1, BucketName::parse("quota").expect("a name"), Timestamp(0), settings)
    }

    #[test]
    fn a_claim_that_would_pass_a_limit_counts_nothing() {
        let bucket = bucket(Quota { bytes: Some(10), objects: Some(2) });
        bucket.claim(1, 6).expect("fits");
        assert_eq!(bucket.claim(1, 5), Err(EngineError::QuotaExceeded));
        assert_eq!(bucket.claimed(), (1, 6));
        bucket.claim(1, 4).expect("fits exactly");
        assert_eq!(bucket.claim(1, 0), Err(EngineError::QuotaExceeded));
        bucket.claim(0, 0).expect("takes nothing");
        assert_eq!(
            bucket.set_quota(Quota { bytes: Some(9), objects: None }),
            Err(EngineError::QuotaBelowUsage)
        );
        bucket.unclaim(1, 4);
        assert_eq!(bucket.claimed(), (1, 6));
    }
}
