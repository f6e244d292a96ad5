//! Object lock: retention and legal holds of versions, and the default that new ones get.

use super::versions::{Found, counted};
use super::{Batch, Failure, Place, broken};
use crate::bucket::Bucket;
use crate::changes::{ChangeKind, FollowedTable};
use crate::error::EngineError;
use crate::lock::ObjectLock;
use crate::queue::{LockChange, LockJob};
use crate::record::{Content, OBJECT_RECORD_VERSION, ObjectRecord};
use cairn_model::Timestamp;

impl Batch<'_> {
    pub(super) fn change_lock(&mut self, job: &LockJob) -> Result<(), Failure> {
        let place = self.place(&job.bucket, &job.key)?;
        if !place.bucket.settings().object_lock {
            return Err(EngineError::InvalidBucketState.into());
        }
        let found = match job.version {
            Some(name) => self.named_version(&place, name)?.ok_or(EngineError::NoSuchVersion)?,
            None => self.newest(&place)?.ok_or(EngineError::NoSuchKey)?,
        };
        let Found { key, mut record } = found;
        let info = &mut record.info;
        if let Content::DeleteMarker = record.content {
            let (version, last_modified) = (info.version_name(), info.last_modified);
            return Err(EngineError::DeleteMarker { version, last_modified }.into());
        }
        match job.change {
            LockChange::LegalHold(hold) => info.lock.legal_hold = Some(hold),
            LockChange::Retention { retention, bypass_governance } => {
                if !info.lock.may_retain(retention, self.clock.now(), bypass_governance) {
                    return Err(EngineError::ObjectLocked.into());
                }
                info.lock.retention = retention;
            }
        }
        self.rewrite(&place, &key, &record)
    }

    /// Writes the record of a version that changed in nothing that it counts for or owns.
    fn rewrite(&mut self, place: &Place, key: &[u8], record: &ObjectRecord) -> Result<(), Failure> {
        let mut body = Vec::new();
        record.encode(&mut body).map_err(EngineError::from)?;
        let stored = self.txn.get(self.tables.objects, key).map_err(EngineError::from)?;
        let inline = stored.map(|stored| stored.tail.to_vec()).unwrap_or_default();
        let before = self.txn.totals().hash;
        let put = self.txn.put(self.tables.objects, key, OBJECT_RECORD_VERSION, &body, &inline);
        put.map_err(broken)?;
        let hash = self.txn.totals().hash.wrapping_sub(before);
        let (bucket, table) = (&place.bucket, FollowedTable::Objects);
        self.note_record(ChangeKind::Removed, table, bucket, key, counted(record), 0);
        self.note_record(ChangeKind::Added, table, bucket, key, counted(record), hash);
        Ok(())
    }
}

/// Gives a version the bucket's default retention when it has none of its own.
pub(super) fn stamp_default_retention(bucket: &Bucket, lock: &mut ObjectLock, now: Timestamp) {
    if lock.retention.is_none() {
        lock.retention = bucket.settings().default_retention.map(|default| default.from(now));
    }
}
