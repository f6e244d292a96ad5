//! Previews: what a rule would do now. Changes nothing.
//!
//! A preview reads all versions and uploads under the rule's prefix, because a bucket without rules has no due index. It reads
//! page by page, each from its own short snapshot, and rests in between like all background work.

use crate::api::engine::Engine;
use crate::check::throttle::Throttle;
use crate::error::EngineError;
use crate::format::keys;
use crate::format::object_record::{ObjectRecord, decode_tags_of};
use crate::format::part_record::PartHead;
use crate::format::upload_record;
use crate::limits::{PREVIEW_RECORDS_MAX, PREVIEW_SAMPLE_MAX, PREVIEW_TIME_MAX, WALK_PAGE_RECORDS};
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
    records_read: u64,
    begun: Instant,
}

/// The version that was read last, and the number of non-current versions of its key so far.
type Above = Option<(ChainedVersion, usize)>;

impl<'p> Previewing<'p> {
    fn new(store: &'p Store, bucket: &'p Bucket, rule: &'p LifecycleRule) -> Self {
        let preview = LifecyclePreview { is_complete: true, ..LifecyclePreview::default() };
        Self {
            store,
            bucket,
            rule,
            now: store.clocks.system.now(),
            preview,
            records_read: 0,
            begun: Instant::now(),
        }
    }

    async fn run(mut self) -> Result<LifecyclePreview, EngineError> {
        let throttle = Throttle::at_pace(&self.store.background.on_demand);
        let store = self.store;
        for slice in &store.slices {
            let (mut above, mut has_more): (Above, bool) = (None, self.rule.acts_on_versions());
            while has_more && self.has_time() {
                let read = throttle.begin().await;
                has_more = self.read_page(slice, &mut above)?;
                read.end(0).await;
            }
            let (mut last, mut has_more) = (None, self.rule.abort_uploads_days.is_some());
            while has_more && self.has_time() {
                let read = throttle.begin().await;
                has_more = self.read_uploads(slice, &mut last)?;
                read.end(0).await;
            }
        }
        Ok(self.preview)
    }

    /// Returns whether more may be read. If not, the preview is not complete.
    fn has_time(&mut self) -> bool {
        self.preview.is_complete =
            self.records_read < PREVIEW_RECORDS_MAX && self.begun.elapsed() <= PREVIEW_TIME_MAX;
        self.preview.is_complete
    }

    fn note_next(&mut self, due_at: Timestamp) {
        let next = self.preview.next_due_at;
        self.preview.next_due_at = Some(next.map_or(due_at, |next| next.min(due_at)));
    }

    /// Reads the next uploads of a slice, after the key `last`. Returns whether more may follow.
    fn read_uploads(&mut self, slice: &Slice, last: &mut Option<Vec<u8>>) -> Result<bool, EngineError> {
        let prefix = keys::prefix_of(self.bucket.id, self.rule.prefix.as_bytes());
        let from = last.as_ref().map_or_else(|| prefix.clone(), |last| [&last[..], &[0]].concat());
        let day = self.store.background.lifecycle.day();
        let (txn, mut read) = (slice.environment.read()?, 0);
        for item in txn.scan(slice.tables.uploads, &from)? {
            let (key, record) = item?;
            if !key.starts_with(&prefix) {
                return Ok(false);
            }
            if read >= WALK_PAGE_RECORDS {
                return Ok(true);
            }
            let initiated = upload_record::decode_initiated(record.version, record.body)?;
            let due = self.rule.due_at(VersionRole::UnfinishedUpload, initiated, day);
            let (mut records, mut bytes) = (1, 0);
            match due {
                Some(due_at) if due_at <= self.now => {
                    for item in txn.scan(slice.tables.parts, key)? {
                        let (part, record) = item?;
                        let Some((_, number)) = keys::decode_part(part).filter(|(of, _)| *of == key) else {
                            break;
                        };
                        bytes += PartHead::decode(record.version, record.body, number)?.info.size;
                        records += 1;
                    }
                    self.preview.multipart_uploads += 1;
                    self.preview.multipart_bytes += bytes;
                }
                Some(due_at) => self.note_next(due_at),
                None => {}
            }
            read += records;
            self.records_read += records as u64;
            *last = Some(key.to_vec());
        }
        Ok(false)
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
            self.records_read += 1;
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
            self.note_next(due_at);
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
            VersionRole::UnfinishedUpload => return Ok(()),
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
