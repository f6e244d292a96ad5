//! Previews: what a rule would do now. Changes nothing.
//!
//! A preview reads all versions under the rule's prefix, because a bucket without rules has no due index. It reads page by page,
//! each from its own short snapshot, and rests in between like all background work.

use crate::api::engine::Engine;
use crate::check::throttle::Throttle;
use crate::error::EngineError;
use crate::format::keys;
use crate::format::object_record::{ObjectRecord, decode_tags_of};
use crate::limits::{PREVIEW_SAMPLE_MAX, PREVIEW_TIME_MAX, PREVIEW_VERSIONS_MAX, WALK_PAGE_RECORDS};
use crate::slice::Slice;
use crate::slice::version_chain::{ChainedVersion, VersionChain};
use crate::store::Store;
use crate::types::bucket::{Bucket, Versioning};
use crate::types::lifecycle::{LifecycleRule, VersionRole};
use crate::types::lifecycle_status::{LifecyclePreview, PlannedAction, PlannedRemoval};
use cairn_lmdb::Record;
use cairn_model::{Timestamp, usize_of};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

impl Engine {
    /// Returns what a rule would do now. Whether it is enabled does not matter.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a record fails its check, and failures of the device.
    pub async fn preview_lifecycle(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        rule: LifecycleRule,
    ) -> Result<LifecyclePreview, EngineError> {
        let (store, bucket) = (Arc::clone(self.store()), Arc::clone(bucket));
        self.in_background(async move { Previewing::new(&store, &bucket, &rule).run().await }).await
    }
}

/// A preview in progress.
struct Previewing<'p> {
    store: &'p Store,
    bucket: &'p Bucket,
    rule: &'p LifecycleRule,
    now: Timestamp,
    preview: LifecyclePreview,
    versions_read: u64,
}

/// The version that was read last, and the number of non-current versions of its key so far.
type Above = Option<(ChainedVersion, usize)>;

impl<'p> Previewing<'p> {
    fn new(store: &'p Store, bucket: &'p Bucket, rule: &'p LifecycleRule) -> Self {
        let preview = LifecyclePreview { is_complete: true, ..LifecyclePreview::default() };
        Self { store, bucket, rule, now: store.clock.now(), preview, versions_read: 0 }
    }

    async fn run(mut self) -> Result<LifecyclePreview, EngineError> {
        let throttle = Throttle::at_pace(&self.store.background.on_demand);
        let (store, begun) = (self.store, Instant::now());
        for slice in &store.slices {
            let mut above: Above = None;
            loop {
                let read = throttle.begin().await;
                if self.versions_read >= PREVIEW_VERSIONS_MAX || begun.elapsed() > PREVIEW_TIME_MAX {
                    self.preview.is_complete = false;
                    return Ok(self.preview);
                }
                let has_more = self.read_page(slice, &mut above)?;
                read.end(0).await;
                if !has_more {
                    break;
                }
            }
        }
        Ok(self.preview)
    }

    /// Reads the next versions of a slice. Returns whether more may follow.
    fn read_page(&mut self, slice: &Slice, above: &mut Above) -> Result<bool, EngineError> {
        let prefix = keys::prefix_of(self.bucket.id, self.rule.prefix.as_bytes());
        let from = above.as_ref().map_or_else(|| prefix.clone(), |(last, _)| [&last.key[..], &[0]].concat());
        let txn = slice.environment.read()?;
        for (read, item) in txn.scan(slice.tables.objects, &from)?.enumerate() {
            let (key, record) = item?;
            if !key.starts_with(&prefix) {
                return Ok(false);
            }
            if read >= WALK_PAGE_RECORDS {
                return Ok(true);
            }
            self.versions_read += 1;
            let version = ChainedVersion::decode(key, record)?;
            let versions = &key[..keys::shared_length(key)];
            let newer = above.take().filter(|(newer, _)| newer.key.starts_with(versions));
            let noncurrent = newer.as_ref().map_or(0, |(_, noncurrent)| *noncurrent);
            let chain = VersionChain { records: &txn, objects: slice.tables.objects, versions };
            let role = chain.role_below(newer.as_ref().map(|(newer, _)| newer), &version)?;
            if let Some(role) = role {
                self.judge(&version, record, role, noncurrent)?;
            }
            *above = Some((version, noncurrent + usize::from(newer.is_some())));
        }
        Ok(false)
    }

    fn judge(
        &mut self,
        version: &ChainedVersion,
        record: Record<'_>,
        (role, since): (VersionRole, Timestamp),
        newer_noncurrent: usize,
    ) -> Result<(), EngineError> {
        let is_kept = role == VersionRole::Noncurrent
            && newer_noncurrent < usize_of(self.rule.newer_noncurrent_versions.into());
        let due = self.rule.due_at(role, since, self.store.background.lifecycle.day());
        let Some(due_at) = due.filter(|_| !is_kept) else { return Ok(()) };
        let tags = &self.rule.tags;
        if !tags.is_empty() && !decode_tags_of(record.version, record.body)?.contains_all(tags) {
            return Ok(());
        }
        if due_at > self.now {
            let next = self.preview.next_due_at;
            self.preview.next_due_at = Some(next.map_or(due_at, |next| next.min(due_at)));
            return Ok(());
        }
        let info = ObjectRecord::decode(record.version, record.body)?.info;
        let preview = &mut self.preview;
        let action = match role {
            VersionRole::Noncurrent if info.lock.forbids_removal(self.now, false) => {
                preview.locked += 1;
                return Ok(());
            }
            VersionRole::Noncurrent => {
                preview.noncurrent_versions += 1;
                preview.noncurrent_bytes += info.size;
                PlannedAction::RemoveVersion
            }
            VersionRole::LoneMarker => {
                preview.delete_markers += 1;
                PlannedAction::RemoveDeleteMarker
            }
            VersionRole::Current => {
                preview.current_objects += 1;
                preview.current_bytes += info.size;
                match self.bucket.versioning() {
                    Versioning::Unversioned => PlannedAction::RemoveObject,
                    Versioning::Enabled | Versioning::Suspended => PlannedAction::WriteDeleteMarker,
                }
            }
        };
        if preview.sample.len() < PREVIEW_SAMPLE_MAX {
            let key = keys::decode(&version.key).map(|(_, key, _)| key).unwrap_or_default();
            let key = String::from_utf8_lossy(&key).into_owned();
            let (version, size) = (info.version_name(), info.size);
            preview.sample.push(PlannedRemoval { key, version, size, due_at, action, role });
        }
        Ok(())
    }
}
