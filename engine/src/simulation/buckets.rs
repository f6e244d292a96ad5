//! The buckets of a campaign: one for each kind of versioning and locking.

use crate::error::EngineError;
use crate::simulation::violation::{Violation, ViolationKind};
use crate::store::Store;
use crate::types::bucket::{Bucket, BucketSettings, Versioning};
use crate::types::event::Origin;
use crate::types::lifecycle::{FilterForm, LifecycleRule, LifecycleRules, RuleId};
use crate::types::object_lock::{DefaultRetention, ObjectLock, Retention, RetentionMode, RetentionPeriod};
use crate::types::tags::Tags;
use cairn_model::{BucketName, Clock, Timestamp};
use std::sync::Arc;

/// Number of the bucket without versioning.
pub(crate) const PLAIN: usize = 0;
/// Number of the bucket whose versioning is enabled, suspended and enabled again.
pub(crate) const VERSIONED: usize = 1;
/// Number of the bucket with object lock and a default retention.
pub(crate) const LOCKED: usize = 2;

/// The settings that a bucket is created with.
pub(crate) struct BucketKind {
    pub(crate) name: &'static str,
    versioning: Versioning,
    object_lock: bool,
}

/// The buckets, by number.
pub(crate) const BUCKETS: [BucketKind; 3] = [
    BucketKind { name: "plain", versioning: Versioning::Unversioned, object_lock: false },
    BucketKind { name: "versioned", versioning: Versioning::Enabled, object_lock: false },
    BucketKind { name: "locked", versioning: Versioning::Enabled, object_lock: true },
];

const DEFAULT_RETENTION: DefaultRetention =
    DefaultRetention { mode: RetentionMode::Governance, period: RetentionPeriod::Days(1) };
const DAY_MILLISECONDS: u64 = 24 * 60 * 60 * 1000;

/// A clock that stands still, so that a campaign depends on its seed alone.
pub(crate) struct StoppedClock;

impl StoppedClock {
    pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000);
    pub(crate) const TOMORROW: Timestamp = Timestamp(Self::NOW.0 + DAY_MILLISECONDS);
}

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Self::NOW
    }
}

/// Returns the lifecycle rules of each bucket. The first one matches the keys of the tasks. The second one matches all keys,
/// but has tags that no version has.
fn rules() -> LifecycleRules {
    let rule = LifecycleRule {
        id: RuleId([7; 16]),
        s3_id: None,
        prefix: "task".to_owned(),
        tags: Tags::default(),
        form: FilterForm::default(),
        expiration_days: Some(1),
        noncurrent_days: Some(1),
        newer_noncurrent_versions: 0,
        expired_delete_markers: true,
        abort_uploads_days: Some(1),
        is_enabled: true,
        created_at: StoppedClock::NOW,
    };
    let tagged = LifecycleRule {
        id: RuleId([8; 16]),
        prefix: String::new(),
        tags: Tags::of_record(vec![("no".to_owned(), "version".to_owned())]),
        expired_delete_markers: false,
        abort_uploads_days: None,
        ..rule.clone()
    };
    LifecycleRules(vec![rule, tagged])
}

/// Returns the lock that a new version gets when it is written with `lock`.
pub(crate) fn lock_of_new_version(bucket: usize, lock: ObjectLock) -> ObjectLock {
    if bucket != LOCKED || lock.retention.is_some() {
        return lock;
    }
    let retention = Retention { mode: RetentionMode::Governance, until: StoppedClock::TOMORROW };
    ObjectLock { retention: Some(retention), ..lock }
}

/// Returns the buckets in the order of their numbers; `None` when one is missing.
fn all_of(store: &Store) -> Option<Vec<Arc<Bucket>>> {
    BUCKETS.iter().map(|kind| store.bucket(&BucketName::parse(kind.name).ok()?)).collect()
}

/// Returns the buckets of a store that must have them.
///
/// # Errors
/// An error when one is missing.
pub(crate) fn existing(store: &Store) -> Result<Vec<Arc<Bucket>>, Violation> {
    all_of(store).ok_or_else(|| Violation::new(ViolationKind::BucketMismatch, "a bucket is missing"))
}

/// Returns the buckets of a store; creates them when the store is new.
pub(crate) async fn existing_or_new(store: &Arc<Store>) -> Result<Vec<Arc<Bucket>>, EngineError> {
    if let Some(buckets) = all_of(store) {
        return Ok(buckets);
    }
    let mut created = Vec::new();
    for BucketKind { name, versioning, object_lock } in &BUCKETS {
        let settings = BucketSettings {
            versioning: *versioning,
            object_lock: *object_lock,
            default_retention: object_lock.then_some(DEFAULT_RETENTION),
            lifecycle: Some(Arc::new(rules())),
            ..BucketSettings::default()
        };
        let name = BucketName::parse(name).expect("the names of the campaign's buckets are valid");
        created.push(store.create_bucket(&name, settings, Origin::default()).await?);
    }
    Ok(created)
}
