//! A bucket, shared by all threads: its fixed facts, settings, state, usage and quota total.
//!
//! Committers and executors read the settings for every request. Only the thread of the bucket catalog changes them. It
//! makes a change durable before it publishes it here.

use crate::error::EngineError;
use crate::types::lifecycle::{LifecycleChange, LifecycleRules};
use crate::types::object_lock::DefaultRetention;
use crate::types::public_access::{NewPublicRules, PublicAccess, PublicAccessBlock};
use crate::types::tags::Tags;
use cairn_model::{BucketName, Timestamp};
use cairn_sync::RwLock;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The versioning state of a bucket (AWS: "Using versioning in S3 buckets").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versioning {
    /// The bucket never kept versions.
    #[default]
    Unversioned,
    /// Every write creates a version.
    Enabled,
    /// Writes replace the `null` version. Other versions stay.
    Suspended,
}

/// Limits of a bucket's current objects. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Most payload bytes.
    pub bytes: Option<u64>,
    /// Most objects.
    pub objects: Option<u64>,
}

/// The encryption that a bucket asks for. It has no effect: encryption at rest is a setting of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketEncryption {
    /// Whether objects should share a key of their bucket.
    pub bucket_key: bool,
    /// Whether keys of clients are refused.
    pub blocks_client_keys: bool,
}

/// Settings of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketSettings {
    /// The versioning state.
    pub versioning: Versioning,
    /// Whether its versions can be locked. Fixed when the bucket is created.
    pub object_lock: bool,
    /// The retention of versions that are written without one of their own.
    pub default_retention: Option<DefaultRetention>,
    /// CORS rules, encoded by the caller. The engine does not interpret them.
    pub cors: Option<Arc<[u8]>>,
    /// The bucket's tags.
    pub tags: Tags,
    /// Limits of its current objects.
    pub quota: Quota,
    /// The location that the bucket was created with, 1 to 64 bytes. It has no effect.
    pub location: Option<Arc<str>>,
    /// The encryption that was set.
    pub encryption: Option<BucketEncryption>,
    /// The public access to the bucket. `None` if nothing was set.
    pub public_access: Option<Arc<PublicAccess>>,
    /// Lifecycle rules. They are stored in a record of their own.
    pub lifecycle: Option<Arc<LifecycleRules>>,
}

/// A change of a bucket's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BucketChange {
    /// Sets whether the bucket keeps versions. A bucket cannot return to [`Versioning::Unversioned`].
    Versioning(Versioning),
    /// Sets the default retention of a bucket with object lock.
    DefaultRetention(Option<DefaultRetention>),
    /// Sets or removes the CORS rules.
    Cors(Option<Arc<[u8]>>),
    /// Replaces the tags.
    Tags(Tags),
    /// Sets or removes the encryption.
    Encryption(Option<BucketEncryption>),
    /// Replaces the rules of public access, or its block, or both.
    PublicAccess {
        /// The rules to set.
        rules: Option<NewPublicRules>,
        /// The block to set or remove.
        block: Option<Option<PublicAccessBlock>>,
    },
    /// Sets the quota.
    Quota(Quota),
    /// Adds, replaces or removes a lifecycle rule.
    Lifecycle(LifecycleChange),
}

/// A bucket.
#[derive(Debug)]
pub struct Bucket {
    /// The bucket's name.
    pub name: BucketName,
    /// Creation time.
    pub created_at: Timestamp,
    /// Number of the bucket. It is never reused, not even for another bucket of the same name.
    pub(crate) id: u64,
    settings: RwLock<Arc<BucketSettings>>,
    state: AtomicU8,
    usage: UsageCounters,
    quota_total: QuotaTotal,
}

/// The usage of a bucket. Exact as of the last commit of each slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of current objects.
    pub objects: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Number of versions with a payload, including current ones.
    pub versions: u64,
    /// Bytes of their payloads.
    pub version_bytes: u64,
    /// Number of delete markers.
    pub delete_markers: u64,
    /// Number of multipart uploads in progress.
    pub uploads: u64,
    /// Bytes of their parts.
    pub part_bytes: u64,
}

impl Usage {
    /// Number of counters.
    pub(crate) const COUNTERS: usize = 7;

    /// The usage of an unfinished upload, besides its parts.
    pub(crate) const ONE_UPLOAD: Self = Self { uploads: 1, ..Self::of_counters([0; Self::COUNTERS]) };

    /// Returns what a part of `size` bytes of an unfinished upload counts for.
    pub(crate) fn of_part(size: u64) -> Self {
        Self { part_bytes: size, ..Self::default() }
    }

    /// Returns the counters in the order of the record.
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

    /// Returns the usage with these counters, in the order of the record.
    pub(crate) const fn of_counters(counters: [u64; Self::COUNTERS]) -> Self {
        let [objects, bytes, versions, version_bytes, delete_markers, uploads, part_bytes] = counters;
        Self { objects, bytes, versions, version_bytes, delete_markers, uploads, part_bytes }
    }

    /// Adds `other`, which may be a difference. Counters wrap, so that a negative difference subtracts.
    pub(crate) fn add(&mut self, other: &Self) {
        let mut counters = self.counters();
        for (counter, more) in counters.iter_mut().zip(other.counters()) {
            *counter = counter.wrapping_add(more);
        }
        *self = Self::of_counters(counters);
    }

    /// Returns the difference that undoes the addition of `self`.
    pub(crate) fn negated(&self) -> Self {
        Self::of_counters(self.counters().map(u64::wrapping_neg))
    }

    /// Returns the bytes of all payloads, including those of unfinished uploads.
    #[must_use]
    pub const fn physical_bytes(&self) -> u64 {
        self.version_bytes.wrapping_add(self.part_bytes)
    }
}

/// The content, for people: `3 versions (2 of them current), 1 delete marker and 1 unfinished upload`.
impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = |count: u64| if count == 1 { "" } else { "s" };
        let Self { objects, versions, delete_markers, uploads, .. } = *self;
        write!(f, "{versions} version{} ({objects} of them current), ", many(versions))?;
        write!(f, "{delete_markers} delete marker{} and ", many(delete_markers))?;
        write!(f, "{uploads} unfinished upload{}", many(uploads))
    }
}

#[derive(Debug, Default)]
struct UsageCounters([AtomicU64; Usage::COUNTERS]);

/// Current objects and their payload bytes: what a quota limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QuotaUsage {
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
}

impl QuotaUsage {
    /// Returns by how much `self` exceeds `other`, separately for objects and bytes.
    pub(crate) const fn excess_over(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_sub(other.objects),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    /// Returns the change of a bucket's usage from `before` to `self`. The counters wrap.
    pub(crate) fn change_from(self, before: Self) -> Usage {
        Usage {
            objects: self.objects.wrapping_sub(before.objects),
            bytes: self.bytes.wrapping_sub(before.bytes),
            ..Usage::default()
        }
    }
}

/// The total that counts against the quota.
///
/// The total includes the current objects as of the last commits, and everything that changes in progress will add. What
/// a change removes still counts until the removal is durable. So no order of commits on several slices exceeds a limit.
///
/// The counters wrap and are not asserted to stay above zero: they begin with sums of usage records, which come from the
/// device.
#[derive(Debug, Default)]
struct QuotaTotal {
    objects: AtomicU64,
    bytes: AtomicU64,
}

/// The state of a bucket: whether it accepts changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketState {
    /// The bucket accepts changes.
    Active,
    /// A deletion is in progress. Changes are refused as conflicts.
    Deleting,
    /// The bucket no longer exists.
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
            quota_total: QuotaTotal::default(),
        }
    }

    /// Returns the number of the bucket. No other bucket of the store ever has it, not even one of the same name.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Returns the current settings.
    #[must_use]
    pub fn settings(&self) -> Arc<BucketSettings> {
        Arc::clone(&self.settings.read())
    }

    /// Returns what anybody may read; `None` if nothing was set.
    #[must_use]
    pub fn public_access(&self) -> Option<Arc<PublicAccess>> {
        self.settings.read().public_access.clone()
    }

    /// Returns whether the bucket keeps versions.
    #[must_use]
    pub fn versioning(&self) -> Versioning {
        self.settings.read().versioning
    }

    /// Publishes settings that are durable.
    pub(crate) fn set_settings(&self, settings: BucketSettings) {
        *self.settings.write() = Arc::new(settings);
    }

    /// Returns the usage summed over all slices.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage::of_counters(self.usage.0.each_ref().map(|counter| counter.load(Ordering::Relaxed)))
    }

    /// Adds what one commit changed. Counters wrap, so that a negative difference subtracts.
    pub(crate) fn add_usage(&self, change: &Usage) {
        for (counter, more) in self.usage.0.iter().zip(change.counters()) {
            counter.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Adds the usage of one slice while the store is being opened.
    pub(crate) fn load_usage(&self, usage: &Usage) {
        self.add_usage(usage);
        self.add_to_quota_total(QuotaUsage { objects: usage.objects, bytes: usage.bytes });
    }

    fn add_to_quota_total(&self, more: QuotaUsage) {
        self.quota_total.objects.fetch_add(more.objects, Ordering::SeqCst);
        self.quota_total.bytes.fetch_add(more.bytes, Ordering::SeqCst);
    }

    /// Counts `more` against the quota.
    ///
    /// # Errors
    /// [`EngineError::QuotaExceeded`]. Then nothing was counted.
    pub(crate) fn reserve_quota(&self, more: QuotaUsage) -> Result<(), EngineError> {
        // The lock is held until both counters are changed, so that `set_quota` happens entirely before or after.
        let settings = self.settings.read();
        let quota = settings.quota;
        let add = |counter: &AtomicU64, more: u64, limit: Option<u64>| {
            let added = counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |total| {
                let total = total.checked_add(more)?;
                // A change that adds nothing is never refused, even if the total is above the limit.
                (more == 0 || limit.is_none_or(|limit| total <= limit)).then_some(total)
            });
            added.map(|_| ()).map_err(|_| EngineError::QuotaExceeded)
        };
        add(&self.quota_total.objects, more.objects, quota.objects)?;
        add(&self.quota_total.bytes, more.bytes, quota.bytes)
            .inspect_err(|_| self.release_quota(QuotaUsage { objects: more.objects, bytes: 0 }))
    }

    /// Returns whether `quota` allows `more` in addition to the current objects. Changes in progress do not count: one of
    /// them may be a write of the same key, which `more` would replace.
    pub(crate) fn fits_quota(&self, quota: Quota, more: QuotaUsage) -> bool {
        if quota == Quota::default() {
            return true;
        }
        let Usage { objects, bytes, .. } = self.usage();
        let fits = |used: u64, more: u64, limit: Option<u64>| {
            more == 0 || limit.is_none_or(|limit| used.checked_add(more).is_some_and(|total| total <= limit))
        };
        fits(objects, more.objects, quota.objects) && fits(bytes, more.bytes, quota.bytes)
    }

    /// Subtracts `less` from the quota's total: the change failed, or what it counted for is durably gone.
    pub(crate) fn release_quota(&self, less: QuotaUsage) {
        self.quota_total.objects.fetch_sub(less.objects, Ordering::SeqCst);
        self.quota_total.bytes.fetch_sub(less.bytes, Ordering::SeqCst);
    }

    /// Sets the quota for later reservations.
    ///
    /// # Errors
    /// [`EngineError::QuotaBelowUsage`]. Then nothing was changed.
    pub(crate) fn set_quota(&self, quota: Quota) -> Result<(), EngineError> {
        let mut settings = self.settings.write();
        let total = self.quota_total();
        let fits = |limit: Option<u64>, total| limit.is_none_or(|limit| total <= limit);
        if !fits(quota.objects, total.objects) || !fits(quota.bytes, total.bytes) {
            return Err(EngineError::QuotaBelowUsage);
        }
        *settings = Arc::new(BucketSettings { quota, ..BucketSettings::clone(&settings) });
        Ok(())
    }

    fn quota_total(&self) -> QuotaUsage {
        QuotaUsage {
            objects: self.quota_total.objects.load(Ordering::SeqCst),
            bytes: self.quota_total.bytes.load(Ordering::SeqCst),
        }
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
    use super::{Bucket, BucketSettings, Quota, QuotaUsage, Usage};
    use crate::error::EngineError;
    use cairn_model::{BucketName, Timestamp};

    fn bucket(quota: Quota) -> Bucket {
        let settings = BucketSettings { quota, ..BucketSettings::default() };
        Bucket::new(1, BucketName::parse("quota").expect("a name"), Timestamp(0), settings)
    }

    const fn usage(objects: u64, bytes: u64) -> QuotaUsage {
        QuotaUsage { objects, bytes }
    }

    #[test]
    fn refused_quota_reservation_counts_nothing() {
        let bucket = bucket(Quota { bytes: Some(10), objects: Some(2) });
        bucket.reserve_quota(usage(1, 6)).expect("fits");
        assert_eq!(bucket.reserve_quota(usage(1, 5)), Err(EngineError::QuotaExceeded));
        assert_eq!(bucket.quota_total(), usage(1, 6));
        bucket.reserve_quota(usage(1, 4)).expect("fits exactly");
        assert_eq!(bucket.reserve_quota(usage(1, 0)), Err(EngineError::QuotaExceeded));
        bucket.reserve_quota(usage(0, 0)).expect("adds nothing");
        assert_eq!(
            bucket.set_quota(Quota { bytes: Some(9), objects: None }),
            Err(EngineError::QuotaBelowUsage)
        );
        bucket.release_quota(usage(1, 4));
        assert_eq!(bucket.quota_total(), usage(1, 6));
    }
    #[test]
    fn early_check_counts_current_objects_and_no_reservations() {
        let limits = Quota { bytes: Some(10), objects: Some(2) };
        let bucket = bucket(limits);
        bucket.reserve_quota(usage(2, 10)).expect("fits");
        assert!(bucket.fits_quota(limits, usage(2, 10)), "a reservation may be for the same key");
        bucket.add_usage(&Usage { objects: 1, bytes: 6, ..Usage::default() });
        assert!(bucket.fits_quota(limits, usage(1, 4)));
        assert!(!bucket.fits_quota(limits, usage(1, 5)));
        assert!(!bucket.fits_quota(limits, usage(2, 0)));
        assert!(!bucket.fits_quota(limits, usage(0, u64::MAX)), "no overflow");
        assert!(bucket.fits_quota(Quota { bytes: Some(1), objects: Some(0) }, usage(0, 0)), "adds nothing");
        assert!(bucket.fits_quota(Quota::default(), usage(u64::MAX, u64::MAX)), "no limit");
    }
}
