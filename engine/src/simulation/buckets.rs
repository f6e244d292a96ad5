//! The buckets of a campaign: one of each kind.

use crate::bucket::{Bucket, BucketSettings, Versioning};
use crate::error::EngineError;
use crate::lock::{DefaultRetention, ObjectLock, Retention, RetentionMode, RetentionPeriod};
use crate::store::Store;
use cairn_model::{BucketName, Clock, Timestamp};
use std::sync::Arc;

/// Without versions.
pub(crate) const PLAIN: usize = 0;
/// With versions, which is suspended and enabled again.
pub(crate) const VERSIONED: usize = 1;
/// With object lock, and a default retention.
pub(crate) const LOCKED: usize = 2;

/// How a bucket is made.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    versioning: Versioning,
    object_lock: bool,
}

/// By number.
pub(crate) const BUCKETS: [Kind; 3] = [
    Kind { name: "plain", versioning: Versioning::Unversioned, object_lock: false },
    Kind { name: "versioned", versioning: Versioning::Enabled, object_lock: false },
    Kind { name: "locked", versioning: Versioning::Enabled, object_lock: true },
];

const DEFAULT_RETENTION: DefaultRetention =
    DefaultRetention { mode: RetentionMode::Governance, period: RetentionPeriod::Days(1) };
const DAY: u64 = 24 * 60 * 60 * 1000;

/// Time stands still: what happens follows from the seed alone.
pub(crate) struct StoppedClock;

impl StoppedClock {
    pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000);
    pub(crate) const TOMORROW: Timestamp = Timestamp(Self::NOW.0 + DAY);
}

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Self::NOW
    }
}

/// The lock of a version that is written with `lock`.
pub(crate) fn lock_of_new(bucket: usize, lock: ObjectLock) -> ObjectLock {
    if bucket != LOCKED || lock.retention.is_some() {
        return lock;
    }
    let retention = Retention { mode: RetentionMode::Governance, until: StoppedClock::TOMORROW };
    ObjectLock { retention: Some(retention), ..lock }
}

/// The buckets of a store, in order of their numbers; `None` where one is missing.
fn find(store: &Store) -> Option<Vec<Arc<Bucket>>> {
    BUCKETS.iter().map(|kind| store.bucket(&BucketName::parse(kind.name).ok()?)).collect()
}

/// The buckets of a store that has them.
///
/// # Errors
/// When one is gone.
pub(crate) fn of(store: &Store) -> Result<Vec<Arc<Bucket>>, String> {
    find(store).ok_or_else(|| "a bucket is gone".to_owned())
}

/// The buckets of a store; they are made when it is new.
pub(crate) async fn of_new(store: &Arc<Store>) -> Result<Vec<Arc<Bucket>>, EngineError> {
    if let Some(buckets) = find(store) {
        return Ok(buckets);
    }
    let mut made = Vec::new();
    for Kind { name, versioning, object_lock } in &BUCKETS {
        let settings = BucketSettings {
            versioning: *versioning,
            object_lock: *object_lock,
            default_retention: object_lock.then_some(DEFAULT_RETENTION),
            ..BucketSettings::default()
        };
        let name = BucketName::parse(name).map_err(|_| EngineError::NoSuchBucket)?;
        made.push(store.create_bucket(&name, settings).await?);
    }
    Ok(made)
}
