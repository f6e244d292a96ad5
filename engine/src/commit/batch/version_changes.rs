//! Changes of a version's metadata: retention, legal hold and tags.

use super::lookup::FoundVersion;
use super::records::{Accounting, broken};
use super::{Batch, Failure};
use crate::error::EngineError;
use crate::format::object_record::{Content, OBJECT_RECORD_VERSION};
use crate::slice::change_log::{ChangeKind, FollowedTable};
use crate::slice::command::{ChangeVersion, VersionChange};
use crate::types::bucket::Bucket;
use cairn_model::VersionName;

impl Batch<'_> {
    /// Changes the retention, the legal hold or the tags of a version, and returns its name. Locked versions may get other
    /// tags, as on AWS.
    pub(super) fn change_version(&mut self, command: ChangeVersion) -> Result<VersionName, Failure> {
        let target = self.target(&command.bucket, &command.key)?;
        let is_of_lock = !matches!(command.change, VersionChange::Tags(_));
        if is_of_lock && !target.bucket.settings().object_lock {
            return Err(EngineError::InvalidBucketState.into());
        }
        let mut found = match command.version {
            Some(name) => self.named_version(&target, name)?.ok_or(EngineError::NoSuchVersion)?,
            None => self.newest(&target)?.ok_or(EngineError::NoSuchKey)?,
        };
        let info = &mut found.record.info;
        if command.only_imported && !info.version.is_imported() {
            return Err(EngineError::ImportConflict("a client has written this version here").into());
        }
        if let Content::DeleteMarker = found.record.content {
            let (version, last_modified) = (info.version_name(), info.last_modified);
            return Err(EngineError::DeleteMarker { version, last_modified }.into());
        }
        match command.change {
            VersionChange::LegalHold(hold) => info.lock.legal_hold = Some(hold),
            VersionChange::Retention { retention, bypass_governance } => {
                if !info.lock.allows_retention(retention, self.clock.now(), bypass_governance) {
                    return Err(EngineError::ObjectLocked.into());
                }
                info.lock.retention = retention;
            }
            VersionChange::Tags(tags) => info.attributes.tags = tags,
        }
        let changed = info.version_name();
        self.rewrite(&target.bucket, &found)?;
        Ok(changed)
    }

    /// Writes the record of a version again. What it counts for and owns must not have changed.
    fn rewrite(
        &mut self,
        bucket: &Bucket,
        FoundVersion { key, record }: &FoundVersion,
    ) -> Result<(), Failure> {
        let mut body = Vec::new();
        record.encode(&mut body).map_err(EngineError::from)?;
        let stored = self.txn.get(self.slice.tables.objects, key).map_err(EngineError::from)?;
        let inline = stored.map(|stored| stored.tail.to_vec()).unwrap_or_default();
        let before = self.txn.totals().hash;
        let put = self.txn.put(self.slice.tables.objects, key, OBJECT_RECORD_VERSION, &body, &inline);
        put.map_err(broken)?;
        let hash = self.txn.totals().hash.wrapping_sub(before);
        let table = FollowedTable::Objects;
        self.record_change(ChangeKind::Removed, table, bucket.id, key, Accounting::of_version(record), 0);
        self.record_change(ChangeKind::Added, table, bucket.id, key, Accounting::of_version(record), hash);
        Ok(())
    }
}
