//! Puts and deletes of objects and versions (AWS: "How S3 Versioning works").
//!
//! The newest version of a key is the first of its records. It is the current object unless it is a delete marker. A key has
//! at most one null version. While that is not the newest version, table `null_versions` holds its sequence. So no command
//! ever has to iterate over all versions of a key.

use super::events::Author;
use super::lookup::{FoundPart, FoundVersion, TargetKey, current_object, extents_of};
use super::records::{Accounting, RecordBytes};
use super::{Batch, Failure, UNPINNED_PAYLOAD};
use crate::error::EngineError;
use crate::fault::Flaw;
use crate::format::codec::PayloadForm;
use crate::format::extent::Extent;
use crate::format::keys;
use crate::format::object_record::{Content, ObjectRecord};
use crate::slice::change_log::FollowedTable;
use crate::slice::command::{DeleteObject, PutObject};
use crate::slice::staged::StagedParts;
use crate::slice::version_chain::ChainedVersion;
use crate::space::allocator::RemovedPayload;
use crate::space::reservation::Reservation;
use crate::types::bucket::{QuotaUsage, Versioning};
use crate::types::event::Cause;
use crate::types::object::{DeleteOptions, DeleteOutcome, ObjectInfo, PutOutcome};
use cairn_model::{Timestamp, UploadId, VersionId, VersionName};

/// A version that is to be removed, with the parts that it is made of.
pub(super) struct Removal {
    pub(super) found: FoundVersion,
    parts: Vec<FoundPart>,
}

/// A version that is to be written.
pub(super) struct NewVersion<'t> {
    pub(super) record: ObjectRecord,
    /// Bytes of an inline payload.
    pub(super) inline: &'t [u8],
    /// Extents that the new record owns.
    pub(super) allocated: Vec<Extent>,
    /// The reservation of these extents.
    pub(super) reservation: Option<Reservation>,
    /// Extents freed by this write, other than those of the null version that it replaces.
    pub(super) freed: Vec<Extent>,
}

/// A version that was written.
pub(super) struct Written {
    pub(super) outcome: PutOutcome,
    pub(super) record: ObjectRecord,
    /// Whether it replaced a null version with a payload.
    removed_object: bool,
}

impl Removal {
    /// Returns all extents that the version and its parts own.
    pub(super) fn extents(&self) -> Vec<Extent> {
        let own = match &self.found.record.content {
            Content::Payload(payload) => payload.owned().collect(),
            Content::Parts { .. } | Content::DeleteMarker => Vec::new(),
        };
        [own, extents_of(&self.parts)].concat()
    }
}

/// Returns what a key counts for against the quota if this is its newest version.
pub(super) fn quota_usage(newest: Option<&ObjectRecord>) -> QuotaUsage {
    match newest {
        Some(record) if !record.is_delete_marker() => QuotaUsage { objects: 1, bytes: record.info.size },
        _ => QuotaUsage::default(),
    }
}

impl Batch<'_> {
    /// Writes new content of an object.
    pub(super) fn put(&mut self, put: PutObject) -> Result<PutOutcome, Failure> {
        let target = self.target(&put.bucket, &put.key)?;
        let newest = self.newest(&target)?;
        put.condition.check(current_object(newest.as_ref()))?;
        let StagedParts { size, payload, inline, reservation, .. } = put.payload.into_parts();
        let allocated: Vec<_> = payload.owned().collect();
        let info = ObjectInfo {
            size,
            etag: put.etag,
            encrypted: payload.sealed.is_some(),
            attributes: put.attributes,
            lock: put.lock,
            ..self.next_version_info(&target)
        };
        let record = ObjectRecord { info, content: Content::Payload(payload) };
        let new = NewVersion { record, inline: &inline, allocated, reservation, freed: Vec::new() };
        let Written { outcome, record, .. } = self.write_version(&target, newest.as_ref(), new)?;
        let author = Author::client(&put.key, &put.origin);
        self.write_event_of_put(&target, author, &record.info, outcome.replaced, false)?;
        Ok(outcome)
    }

    /// Returns identity and date of the version that is written next, with all other fields empty.
    pub(super) fn next_version_info(&self, target: &TargetKey) -> ObjectInfo {
        let version = VersionId(self.slice.sequence_after(self.sequence));
        let is_null = target.bucket.versioning() != Versioning::Enabled;
        ObjectRecord::delete_marker(version, self.clock.now(), is_null).info
    }

    /// Writes a version as the newest of its key. `newest` is the newest version until now.
    ///
    /// A null version replaces the earlier null version. A version without a retention of its own gets the bucket's default
    /// retention.
    pub(super) fn write_version(
        &mut self,
        target: &TargetKey,
        newest: Option<&FoundVersion>,
        new: NewVersion<'_>,
    ) -> Result<Written, Failure> {
        let NewVersion { mut record, inline, allocated, reservation, mut freed } = new;
        let (now, is_null) = (record.info.last_modified, record.info.is_null);
        if !record.is_delete_marker() && record.info.lock.retention.is_none() {
            let default = target.bucket.settings().default_retention;
            record.info.lock.retention = default.map(|default| default.starting_at(now));
        }
        let replaced = if is_null { self.replaced_null_version(target, newest, now)? } else { None };
        let mut body = std::mem::take(&mut self.buffers.version);
        body.clear();
        record.encode(&mut body).map_err(EngineError::from)?;
        freed.extend(replaced.iter().flat_map(Removal::extents));
        let (before, after) = (quota_usage(newest.map(|found| &found.record)), quota_usage(Some(&record)));
        self.reserve_quota(&target.bucket, before, after)?;
        self.transfer_extents(&allocated, &freed, reservation)
            .inspect_err(|_| self.cancel_last_quota_reservation())?;

        // Everything that can be refused has been decided. From here on the transaction is changed.
        assert!(record.info.version.0 > self.sequence, "the sequences of a slice only grow");
        self.sequence = record.info.version.0;
        let outcome = PutOutcome {
            version: record.info.version,
            is_null,
            last_modified: now,
            replaced: current_object(newest).is_some(),
        };
        self.record_current(target, before, after);
        let newest_is_null = newest.is_some_and(|newest| newest.record.info.is_null);
        let removed_object =
            replaced.as_ref().is_some_and(|replaced| !replaced.found.record.is_delete_marker());
        if let Some(replaced) = replaced {
            self.remove_version(target, replaced)?;
            if !newest_is_null {
                self.remove_null_entry(target)?;
            }
        } else if let Some(newest) = newest.filter(|_| newest_is_null) {
            self.insert_null_entry(target, newest.record.info.version)?;
        }
        let key = keys::with_sequence(&target.versions, record.info.version.0);
        let (version, is_delete_marker) = (record.info.version, record.is_delete_marker());
        let chained = ChainedVersion { key: key.clone(), version, last_modified: now, is_delete_marker };
        self.index_version(target, chained, newest.is_none())?;
        let bytes = RecordBytes { body: &body, tail: inline };
        let accounting = Accounting::of_version(&record);
        self.insert_record(&target.bucket, FollowedTable::Objects, &key, bytes, accounting)?;
        self.buffers.version = body;
        Ok(Written { outcome, record, removed_object })
    }

    /// Finds the null version that a new null version replaces.
    fn replaced_null_version(
        &self,
        target: &TargetKey,
        newest: Option<&FoundVersion>,
        now: Timestamp,
    ) -> Result<Option<Removal>, EngineError> {
        let Some(newest) = newest else { return Ok(None) };
        let null = if newest.record.info.is_null {
            Some(FoundVersion { key: newest.key.clone(), record: newest.record.clone() })
        } else {
            self.older_null_version(target)?
        };
        null.map(|null| self.plan_removal(target, null, now, false)).transpose()
    }

    /// Deletes an object or a version.
    pub(super) fn delete(&mut self, command: &DeleteObject) -> Result<DeleteOutcome, Failure> {
        let target = self.target(&command.bucket, &command.key)?;
        let options = &command.options;
        let author = Author::client(&command.key, &options.origin);
        if let Some(name) = options.version {
            return self.delete_version(&target, author, name, options);
        }
        let newest = self.newest(&target)?;
        options.condition.check(current_object(newest.as_ref()))?;
        self.delete_current(&target, author, newest)
    }

    /// Deletes the current object, with a delete marker if the bucket keeps versions. `newest` is the newest version.
    pub(super) fn delete_current(
        &mut self,
        target: &TargetKey,
        author: Author<'_>,
        newest: Option<FoundVersion>,
    ) -> Result<DeleteOutcome, Failure> {
        let existed = current_object(newest.as_ref()).is_some();
        if target.bucket.versioning() == Versioning::Unversioned {
            if let Some(newest) = newest {
                self.remove_newest(target, author, newest, false)?;
            }
            return Ok(DeleteOutcome { existed, version: None, is_delete_marker: false });
        }
        let info = self.next_version_info(target);
        let record = ObjectRecord::delete_marker(info.version, info.last_modified, info.is_null);
        let name = record.info.version_name();
        let (allocated, freed) = (Vec::new(), Vec::new());
        let new = NewVersion { record, inline: &[], allocated, reservation: None, freed };
        let Written { record: marker, removed_object, .. } =
            self.write_version(target, newest.as_ref(), new)?;
        // A marker over nothing deletes nothing, unless it takes the place of a null version that is not the newest.
        if existed || removed_object {
            self.write_event_of_marker(target, author, &marker.info)?;
        }
        Ok(DeleteOutcome { existed, version: Some(name), is_delete_marker: true })
    }

    fn delete_version(
        &mut self,
        target: &TargetKey,
        author: Author<'_>,
        name: VersionName,
        DeleteOptions { condition, bypass_governance, only_newest, only_imported, .. }: &DeleteOptions,
    ) -> Result<DeleteOutcome, Failure> {
        let found = self.named_version(target, name)?;
        let found = found.filter(|found| !*only_imported || found.record.info.version.is_imported());
        condition.check(found.as_ref().map(|found| &found.record.info))?;
        let Some(found) = found else {
            return Ok(DeleteOutcome { existed: false, version: Some(name), is_delete_marker: false });
        };
        let is_delete_marker = found.record.is_delete_marker();
        let outcome = DeleteOutcome { existed: true, version: Some(name), is_delete_marker };
        let newest =
            self.newest(target)?.ok_or_else(|| EngineError::Corrupt("the order of versions".into()))?;
        if newest.key == found.key {
            self.remove_newest(target, author, found, *bypass_governance)?;
            return Ok(outcome);
        }
        if *only_newest {
            return Ok(DeleteOutcome { existed: false, ..outcome });
        }
        self.remove_older(target, author, found, *bypass_governance)?;
        Ok(outcome)
    }

    /// Removes a version that is not the newest of its key.
    pub(super) fn remove_older(
        &mut self,
        target: &TargetKey,
        author: Author<'_>,
        found: FoundVersion,
        bypass_governance: bool,
    ) -> Result<(), Failure> {
        let (is_null, was_marker) = (found.record.info.is_null, found.record.is_delete_marker());
        let removal = self.plan_removal(target, found, self.clock.now(), bypass_governance)?;
        self.transfer_extents(&[], &removal.extents(), None)?;
        let removed = self.remove_version(target, removal)?;
        self.write_event_of_removal(target, author, &removed, was_marker)?;
        if is_null {
            self.remove_null_entry(target)?;
        }
        Ok(())
    }

    /// Removes the newest version of a key. The next older one becomes the newest.
    ///
    /// That must be within the quota: otherwise removing delete markers could bring back any number of objects.
    pub(super) fn remove_newest(
        &mut self,
        target: &TargetKey,
        author: Author<'_>,
        newest: FoundVersion,
        bypass_governance: bool,
    ) -> Result<(), Failure> {
        let next = self.older_than(target, &newest)?;
        let removal = self.plan_removal(target, newest, self.clock.now(), bypass_governance)?;
        let before = quota_usage(Some(&removal.found.record));
        let after = quota_usage(next.as_ref().map(|found| &found.record));
        self.reserve_quota(&target.bucket, before, after)?;
        self.transfer_extents(&[], &removal.extents(), None)
            .inspect_err(|_| self.cancel_last_quota_reservation())?;
        self.record_current(target, before, after);
        let was_marker = removal.found.record.is_delete_marker();
        let removed = self.remove_version(target, removal)?;
        match next.as_ref().map(|next| &next.record) {
            // What the removal of a marker brings back is what its event is about.
            Some(restored) if author.origin.cause == Cause::Restore && !restored.is_delete_marker() => {
                self.write_event_of_undeletion(target, author, &restored.info)?;
            }
            _ => self.write_event_of_removal(target, author, &removed, was_marker)?,
        }
        if next.is_some_and(|next| next.record.info.is_null) {
            self.remove_null_entry(target)?;
        }
        Ok(())
    }

    /// Reads everything that the removal of a version removes.
    ///
    /// # Errors
    /// [`EngineError::ObjectLocked`] if the version's lock forbids the removal.
    pub(super) fn plan_removal(
        &self,
        target: &TargetKey,
        found: FoundVersion,
        now: Timestamp,
        bypass_governance: bool,
    ) -> Result<Removal, EngineError> {
        let is_locked = found.record.info.lock.forbids_removal(now, bypass_governance);
        if is_locked && !self.slice.faults.has(Flaw::RemoveLocked) {
            return Err(EngineError::ObjectLocked);
        }
        let parts = self.parts_of_version(target, &found)?;
        Ok(Removal { found, parts })
    }

    /// Removes the records of a version. Its extents must have been marked free. Returns the version's facts.
    pub(super) fn remove_version(
        &mut self,
        target: &TargetKey,
        removal: Removal,
    ) -> Result<ObjectInfo, Failure> {
        let extents = removal.extents();
        let Removal { found, parts } = removal;
        self.unindex_version(target, &found)?;
        let accounting = Accounting::of_version(&found.record);
        self.remove_record(&target.bucket, FollowedTable::Objects, &found.key, accounting)?;
        if let Some(id) = &found.record.info.imported {
            let key = keys::with_imported_id(&target.versions, id);
            self.remove_record(&target.bucket, FollowedTable::ImportedIds, &key, Accounting::NOTHING)?;
        }
        match found.record.content {
            Content::DeleteMarker => {}
            Content::Payload(payload) => {
                if let PayloadForm::Volume(volume) = payload.form {
                    self.effects.removed.push(RemovedPayload { id: volume.id, extents });
                }
            }
            Content::Parts { id, upload } => {
                self.remove_assembled(target, upload, &parts)?;
                let is_unpinned = self.slice.faults.has(Flaw::ReleasePartsDespiteReaders);
                let id = if is_unpinned { UNPINNED_PAYLOAD } else { id };
                self.effects.removed.push(RemovedPayload { id, extents });
            }
        }
        Ok(found.record.info)
    }

    /// Removes the records of the upload that a version is made of.
    fn remove_assembled(
        &mut self,
        target: &TargetKey,
        upload: UploadId,
        parts: &[FoundPart],
    ) -> Result<(), Failure> {
        for part in parts {
            let accounting = Accounting::of_completed_part(&part.record);
            self.remove_record(&target.bucket, FollowedTable::Parts, &part.key, accounting)?;
        }
        self.parts_touched += parts.len();
        let key = keys::with_upload(&target.versions, upload);
        self.remove_record(&target.bucket, FollowedTable::Assembled, &key, Accounting::NOTHING)
    }

    pub(super) fn insert_null_entry(
        &mut self,
        target: &TargetKey,
        version: VersionId,
    ) -> Result<(), Failure> {
        if self.slice.faults.has(Flaw::ForgetNullVersions) {
            return Ok(());
        }
        let body = version.0.to_le_bytes();
        let bytes = RecordBytes::of_body(&body);
        let (table, key) = (FollowedTable::NullVersions, &target.versions);
        self.insert_record(&target.bucket, table, key, bytes, Accounting::NOTHING)
    }

    pub(super) fn remove_null_entry(&mut self, target: &TargetKey) -> Result<(), Failure> {
        let table = FollowedTable::NullVersions;
        self.remove_record(&target.bucket, table, &target.versions, Accounting::NOTHING)
    }
}
