//! Keeps, builds and removes the due index of buckets with lifecycle rules.
//!
//! A change of a version changes at most its own entry and those of its neighbours. Each change is idempotent and concerns only
//! versions that the index has already, so that a build can proceed between any two changes. An unfinished upload has one entry
//! from its beginning to its end.

use super::lookup::{FoundVersion, TargetKey};
use super::records::{Accounting, RecordBytes, broken};
use super::{Batch, Failure};
use crate::error::EngineError;
use crate::fault::Flaw;
use crate::format::due_record::{DUE_STATE_VERSION, DueKey, DueState};
use crate::format::keys;
use crate::format::upload_record;
use crate::slice::change_log::{Change, ChangeKind, FollowedTable};
use crate::slice::command::{DueProgress, IndexDue};
use crate::slice::version_chain::{ChainedVersion, Records, VersionChain};
use crate::types::bucket::{Bucket, BucketState, Usage};
use crate::types::lifecycle::VersionRole;
use cairn_model::{ObjectKey, Timestamp};
use std::sync::Arc;

/// An entry that the index lacks: its key, and the object key.
type NewEntry = (DueKey, Vec<u8>);

/// A version that gets another role. `None` means that no entry is about it.
struct RoleChange {
    version: ChainedVersion,
    before: Option<(VersionRole, Timestamp)>,
    after: Option<(VersionRole, Timestamp)>,
}

/// Returns whether a bucket should have a due index.
fn wants_index(bucket: Option<&Arc<Bucket>>) -> bool {
    bucket
        .is_some_and(|bucket| bucket.state() != BucketState::Deleted && bucket.settings().lifecycle.is_some())
}

impl Batch<'_> {
    /// Returns whether the index of the key's bucket must be kept. Most buckets have none.
    fn keeps_due_index(&self, target: &TargetKey) -> bool {
        !self.due_states.is_empty() && self.due_states.contains_key(&target.bucket.id)
    }

    fn chain<'t>(&'t self, target: &'t TargetKey) -> VersionChain<'t, impl Records> {
        VersionChain { records: &self.txn, objects: self.slice.tables.objects, versions: &target.versions }
    }

    /// Changes the index for a version that is about to be removed.
    pub(super) fn unindex_version(
        &mut self,
        target: &TargetKey,
        found: &FoundVersion,
    ) -> Result<(), Failure> {
        if !self.keeps_due_index(target) {
            return Ok(());
        }
        let changes = self.changes_of_removal(target, found);
        self.apply_role_changes(target, changes)
    }

    fn changes_of_removal(
        &self,
        target: &TargetKey,
        found: &FoundVersion,
    ) -> Result<Vec<RoleChange>, EngineError> {
        let version = ChainedVersion {
            key: found.key.clone(),
            version: found.record.info.version,
            last_modified: found.record.info.last_modified,
            is_delete_marker: found.record.is_delete_marker(),
        };
        let chain = self.chain(target);
        let (newer, older) = (chain.newer_than(&version.key)?, chain.older_than(&version.key)?);
        let before = chain.role_below(newer.as_ref(), &version)?;
        let neighbour = match (&newer, older) {
            (_, Some(older)) => {
                let before = Some((VersionRole::Noncurrent, version.last_modified));
                let after = chain.role_below(newer.as_ref(), &older)?;
                Some(RoleChange { version: older, before, after })
            }
            // A marker that loses its last older version is alone.
            (Some(newer), None) if newer.is_delete_marker && chain.newer_than(&newer.key)?.is_none() => {
                let after = Some((VersionRole::LoneMarker, newer.last_modified));
                Some(RoleChange { version: newer.clone(), before: None, after })
            }
            _ => None,
        };
        let own = RoleChange { version, before, after: None };
        Ok(std::iter::once(own).chain(neighbour).collect())
    }

    /// Changes the index for a version that is about to be written between two others, or at an end. Replaced versions are
    /// already removed.
    pub(super) fn index_version_between(
        &mut self,
        target: &TargetKey,
        new: ChainedVersion,
    ) -> Result<(), Failure> {
        if !self.keeps_due_index(target) {
            return Ok(());
        }
        let chain = self.chain(target);
        let changes = chain.newer_than(&new.key).and_then(|newer| {
            let older = chain.older_than(&new.key)?;
            Self::changes_of_write(&chain, new, newer, older)
        });
        self.apply_role_changes(target, changes)
    }

    /// Changes the index for a version that is about to be written as the newest. Replaced versions are already removed.
    /// `is_first`: the key had no version before.
    pub(super) fn index_version(
        &mut self,
        target: &TargetKey,
        new: ChainedVersion,
        is_first: bool,
    ) -> Result<(), Failure> {
        if !self.keeps_due_index(target) {
            return Ok(());
        }
        let chain = self.chain(target);
        // New keys are the most frequent case, and need no look at the table.
        let older = if is_first { Ok(None) } else { chain.newest() };
        let changes = older.and_then(|older| Self::changes_of_write(&chain, new, None, older));
        self.apply_role_changes(target, changes)
    }

    /// Returns the changes for a version that is about to be written between these two.
    fn changes_of_write(
        chain: &VersionChain<'_, impl Records>,
        new: ChainedVersion,
        newer: Option<ChainedVersion>,
        older: Option<ChainedVersion>,
    ) -> Result<Vec<RoleChange>, EngineError> {
        let role = match (&newer, &older, new.is_delete_marker) {
            (Some(newer), ..) => Some((VersionRole::Noncurrent, newer.last_modified)),
            (None, _, false) => Some((VersionRole::Current, new.last_modified)),
            (None, None, true) => Some((VersionRole::LoneMarker, new.last_modified)),
            (None, Some(_), true) => None,
        };
        let mut changes = Vec::with_capacity(2);
        if let Some(older) = older {
            let before = chain.role_below(newer.as_ref(), &older)?;
            let after = Some((VersionRole::Noncurrent, new.last_modified));
            changes.push(RoleChange { version: older, before, after });
        } else if let Some(newer) = newer {
            // A marker that was alone is so no longer.
            let before = chain.role_of(&newer)?;
            let after = before.filter(|(role, _)| *role != VersionRole::LoneMarker);
            changes.push(RoleChange { version: newer, before, after });
        }
        changes.push(RoleChange { version: new, before: None, after: role });
        Ok(changes)
    }

    /// Changes the entries. A damaged record of another version of the key must not prevent the change: then the index keeps
    /// its entries, and an inspection reports the damage.
    fn apply_role_changes(
        &mut self,
        target: &TargetKey,
        changes: Result<Vec<RoleChange>, EngineError>,
    ) -> Result<(), Failure> {
        match changes {
            Ok(changes) => changes.iter().try_for_each(|change| self.set_role(target, change)),
            Err(EngineError::Corrupt(_)) => Ok(()),
            Err(error) => Err(Failure::Broken(error)),
        }
    }

    /// Replaces the entry of a version, if the index has the version.
    fn set_role(&mut self, target: &TargetKey, change: &RoleChange) -> Result<(), Failure> {
        let RoleChange { version, before, after } = change;
        let bucket = target.bucket.id;
        let has_version = self.due_states.get(&bucket).is_some_and(|state| state.has(&version.key));
        if !has_version || before == after {
            return Ok(());
        }
        // The key of the target was checked when it was encoded.
        let Some((_, key, _)) = keys::decode(&version.key) else { return Ok(()) };
        let entry = |role| DueKey::of_version(bucket, role, version.version, &key);
        if let Some(before) = before.filter(|_| !self.slice.faults.has(Flaw::KeepDueEntries)) {
            self.remove_due(bucket, &entry(before).encode())?;
        }
        if let Some(after) = *after {
            let entry = (entry(after), key);
            // A version that is just written has no entry yet.
            let is_new = version.version.0 == self.sequence && before.is_none();
            if is_new || !self.has_due(&entry)? {
                self.insert_due(&target.bucket, &entry)?;
            }
        }
        Ok(())
    }

    fn has_due(&self, (entry, _): &NewEntry) -> Result<bool, Failure> {
        Ok(self.txn.get(self.slice.tables.due, &entry.encode()).map_err(broken)?.is_some())
    }

    fn insert_due(&mut self, bucket: &Arc<Bucket>, (entry, key): &NewEntry) -> Result<(), Failure> {
        let encoded = entry.encode();
        let bytes = RecordBytes::of_body(key);
        self.insert_record(bucket, FollowedTable::Due, &encoded, bytes, Accounting::NOTHING)
    }

    fn remove_due(&mut self, bucket: u64, key: &[u8]) -> Result<(), Failure> {
        let before = self.txn.totals().hash;
        if !self.txn.remove(self.slice.tables.due, key).map_err(broken)? {
            return Ok(());
        }
        let hash = before.wrapping_sub(self.txn.totals().hash);
        if let Some(changes) = &mut self.changes {
            let (kind, table, key) = (ChangeKind::Removed, FollowedTable::Due, key.to_vec());
            let (counts, extents) = (Usage::default(), Vec::new());
            changes.push(Change::Record { kind, table, key, bucket, counts, extents, hash });
        }
        Ok(())
    }

    /// Adds the entry of an upload that is being begun.
    pub(super) fn index_upload(
        &mut self,
        target: &TargetKey,
        upload: &[u8],
        key: &ObjectKey,
        initiated: Timestamp,
    ) -> Result<(), Failure> {
        match self.entry_of_upload(target, upload, initiated) {
            Some(entry) => self.insert_due(&target.bucket, &(entry, key.as_bytes().to_vec())),
            None => Ok(()),
        }
    }

    /// Removes the entry of an upload that is about to end. A damaged record must not prevent that: then its entry stays, and
    /// an inspection reports the damage.
    pub(super) fn unindex_upload(&mut self, target: &TargetKey, upload: &[u8]) -> Result<(), Failure> {
        if !self.keeps_due_index(target) {
            return Ok(());
        }
        let Some(stored) = self.txn.get(self.slice.tables.uploads, upload).map_err(broken)? else {
            return Ok(());
        };
        let Ok(initiated) = upload_record::decode_initiated(stored.version, stored.body) else {
            return Ok(());
        };
        match self.entry_of_upload(target, upload, initiated) {
            Some(entry) => self.remove_due(target.bucket.id, &entry.encode()),
            None => Ok(()),
        }
    }

    /// Returns the entry of an upload. `None` if the index does not have it.
    fn entry_of_upload(&self, target: &TargetKey, upload: &[u8], since: Timestamp) -> Option<DueKey> {
        let bucket = target.bucket.id;
        self.due_states.get(&bucket).filter(|state| state.has_upload(upload))?;
        let (_, _, id) = keys::decode_upload(upload)?;
        Some(DueKey::of_upload(bucket, since, id))
    }

    /// Builds or removes a part of a bucket's index, whichever brings it closer to what it should be.
    pub(super) fn step_due_index(&mut self, step: &IndexDue) -> Result<DueProgress, Failure> {
        let wanted = wants_index(step.bucket.as_ref());
        match (self.due_states.get(&step.id).cloned(), &step.bucket) {
            (Some(DueState::Complete), _) if wanted => Ok(DueProgress::Finished),
            (None, _) if !wanted => Ok(DueProgress::Finished),
            (None, Some(bucket)) => self.build_due_index(bucket, Vec::new(), step.entries_max),
            (Some(DueState::Building(last)), Some(bucket)) if wanted => {
                self.build_due_index(bucket, last, step.entries_max)
            }
            (Some(DueState::BuildingUploads(last)), Some(bucket)) if wanted => {
                self.build_upload_index(bucket, last, step.entries_max)
            }
            _ => self.remove_due_index(step.id, step.entries_max),
        }
    }

    /// Adds the entries of the next versions after the key `last`.
    fn build_due_index(
        &mut self,
        bucket: &Arc<Bucket>,
        last: Vec<u8>,
        entries_max: usize,
    ) -> Result<DueProgress, Failure> {
        let (entries, last) = self.missing_entries(bucket.id, &last, entries_max)?;
        for entry in &entries {
            if !self.has_due(entry)? {
                self.insert_due(bucket, entry)?;
            }
        }
        let state = last.map_or_else(|| DueState::BuildingUploads(Vec::new()), DueState::Building);
        self.set_due_state(bucket.id, Some(state))?;
        Ok(DueProgress::Unfinished)
    }

    /// Adds the entries of the next uploads after the key `after`.
    fn build_upload_index(
        &mut self,
        bucket: &Arc<Bucket>,
        after: Vec<u8>,
        entries_max: usize,
    ) -> Result<DueProgress, Failure> {
        let (entries, last) = self.missing_uploads(bucket.id, &after, entries_max)?;
        for entry in &entries {
            if !self.has_due(entry)? {
                self.insert_due(bucket, entry)?;
            }
        }
        let (state, progress) = match last {
            Some(last) => (DueState::BuildingUploads(last), DueProgress::Unfinished),
            None => (DueState::Complete, DueProgress::Finished),
        };
        self.set_due_state(bucket.id, Some(state))?;
        Ok(progress)
    }

    /// Derives the entries of the uploads after the key `after`. Returns them with the key of the last one, or `None` if there
    /// are no more. An upload whose record is damaged gets none, as the inspection knows.
    fn missing_uploads(
        &self,
        bucket: u64,
        after: &[u8],
        uploads_max: usize,
    ) -> Result<(Vec<NewEntry>, Option<Vec<u8>>), EngineError> {
        let all = keys::prefix_of(bucket, &[]);
        let from = if after.is_empty() { all.clone() } else { [after, &[0]].concat() };
        let (mut entries, mut last) = (Vec::new(), None);
        for (read, item) in self.txn.scan(self.slice.tables.uploads, &from)?.enumerate() {
            let (key, record) = item?;
            if !key.starts_with(&all) {
                return Ok((entries, None));
            }
            if read >= uploads_max {
                return Ok((entries, last));
            }
            last = Some(key.to_vec());
            let initiated = upload_record::decode_initiated(record.version, record.body);
            if let (Ok(since), Some((_, object, id))) = (initiated, keys::decode_upload(key)) {
                entries.push((DueKey::of_upload(bucket, since, id), object));
            }
        }
        Ok((entries, None))
    }

    /// Derives the entries of the versions after the key `after`. Returns them with the key of the last version, or `None` if
    /// there are no more versions.
    fn missing_entries(
        &self,
        bucket: u64,
        after: &[u8],
        versions_max: usize,
    ) -> Result<(Vec<NewEntry>, Option<Vec<u8>>), EngineError> {
        let all = keys::prefix_of(bucket, &[]);
        let from = if after.is_empty() { all.clone() } else { [after, &[0]].concat() };
        let mut found = Vec::new();
        for item in self.txn.scan(self.slice.tables.objects, &from)? {
            let (key, record) = item?;
            if !key.starts_with(&all) || found.len() > versions_max {
                break;
            }
            found.push(ChainedVersion::decode(key, record)?);
        }
        let has_more = found.len() > versions_max;
        found.truncate(versions_max);
        let (mut entries, mut newer) = (Vec::with_capacity(found.len()), None::<ChainedVersion>);
        for version in found {
            let (_, object, _) = keys::decode(&version.key)
                .ok_or_else(|| EngineError::Corrupt("the key of a version".to_owned()))?;
            let versions = &version.key[..keys::shared_length(&version.key)];
            let chain = VersionChain { records: &self.txn, objects: self.slice.tables.objects, versions };
            let above = match newer.take() {
                Some(newer) => Some(newer).filter(|newer| newer.key.starts_with(versions)),
                None => chain.newer_than(&version.key)?,
            };
            if let Some(role) = chain.role_below(above.as_ref(), &version)? {
                entries.push((DueKey::of_version(bucket, role, version.version, &object), object));
            }
            newer = Some(version);
        }
        Ok((entries, newer.map(|last| last.key).filter(|_| has_more)))
    }

    /// Removes entries of a bucket's index, and its state after the last one.
    fn remove_due_index(&mut self, bucket: u64, entries_max: usize) -> Result<DueProgress, Failure> {
        let prefix = bucket.to_be_bytes();
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for item in self.txn.scan(self.slice.tables.due, &prefix).map_err(EngineError::from)? {
            let (key, _) = item.map_err(EngineError::from)?;
            if !key.starts_with(&prefix) || keys.len() > entries_max {
                break;
            }
            keys.push(key.to_vec());
        }
        let has_more = keys.len() > entries_max;
        keys.truncate(entries_max);
        for key in &keys {
            self.remove_due(bucket, key)?;
        }
        self.set_due_state(bucket, has_more.then_some(DueState::Removing))?;
        Ok(if has_more { DueProgress::Unfinished } else { DueProgress::Finished })
    }

    fn set_due_state(&mut self, bucket: u64, state: Option<DueState>) -> Result<(), Failure> {
        let key = bucket.to_be_bytes();
        match &state {
            Some(state) => {
                let body = state.encode();
                self.txn
                    .put(self.slice.tables.due_state, &key, DUE_STATE_VERSION, &body, &[])
                    .map_err(broken)?;
            }
            None => drop(self.txn.remove(self.slice.tables.due_state, &key).map_err(broken)?),
        }
        let states = Arc::make_mut(&mut self.due_states);
        match state {
            Some(state) => drop(states.insert(bucket, state)),
            None => drop(states.remove(&bucket)),
        }
        self.due_states_changed = true;
        Ok(())
    }
}
