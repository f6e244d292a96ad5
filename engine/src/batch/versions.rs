//! Objects and versions: puts, deletes, delete markers (AWS: "How S3 Versioning works").
//!
//! The newest version of a key stands first among its records; it is the current object unless it is a delete marker. A
//! key has at most one null version. While that is not the newest, table `null_versions` says where it stands, so that
//! none of this ever walks over a key's versions.

use super::locks::stamp_default_retention;
use super::{Batch, Counted, Failure, Place};
use crate::bucket::{Usage, Versioning};
use crate::changes::FollowedTable;
use crate::codec::{self, PayloadForm, PayloadId};
use crate::error::EngineError;
use crate::extent::Extent;
use crate::keys;
use crate::object::{DeleteOptions, DeleteOutcome, EtagMatch, ObjectInfo, PutOutcome, WriteCondition};
use crate::part_record::PartRecord;
use crate::queue::{DeleteJob, PutJob};
use crate::record::{Content, ObjectRecord};
#[cfg(feature = "simulation")]
use crate::simulation::Flaw;
use crate::space::Reservation;
use crate::writer::StagedParts;
use cairn_model::{Timestamp, UploadId, VersionId, VersionName};

/// A version as the transaction sees it.
pub(super) struct Found {
    /// Key in the table of objects.
    pub(super) key: Vec<u8>,
    pub(super) record: ObjectRecord,
}

/// A part as the transaction sees it.
pub(super) struct FoundPart {
    /// Key in the table of parts.
    pub(super) key: Vec<u8>,
    pub(super) record: PartRecord,
}

/// A version that is to be removed, with the parts that it is made of.
pub(super) struct Doomed {
    found: Found,
    parts: Vec<FoundPart>,
}

/// A version that is to be written.
pub(super) struct NewVersion<'t> {
    pub(super) record: ObjectRecord,
    /// Bytes of an inline payload.
    pub(super) inline: &'t [u8],
    /// Space that the version brings.
    pub(super) taken: Vec<Extent>,
    pub(super) reservation: Option<Reservation>,
    /// Space of others that its coming frees, beside that of the version in whose place it comes.
    pub(super) given: Vec<Extent>,
}

impl Doomed {
    /// All space that the version owns.
    fn owned(&self) -> Vec<Extent> {
        let own = match &self.found.record.content {
            Content::Payload(payload) => payload.owned().collect(),
            Content::Parts { .. } | Content::DeleteMarker => Vec::new(),
        };
        [own, owned_by(&self.parts)].concat()
    }
}

/// All space that parts own.
pub(super) fn owned_by(parts: &[FoundPart]) -> Vec<Extent> {
    parts.iter().flat_map(|part| part.record.payload.owned()).collect()
}

/// What the record of a version counts for, and the space that it owns itself.
pub(super) fn counted(record: &ObjectRecord) -> Counted {
    let (counts, extents) = match &record.content {
        Content::DeleteMarker => (Usage { delete_markers: 1, ..Usage::default() }, Vec::new()),
        Content::Parts { .. } => (version_counts(record.info.size), Vec::new()),
        Content::Payload(payload) => (version_counts(record.info.size), payload.owned().collect()),
    };
    Counted { counts, extents }
}

fn version_counts(size: u64) -> Usage {
    Usage { versions: 1, version_bytes: size, ..Usage::default() }
}

/// The current object, if the newest version is one.
pub(super) fn visible(newest: Option<&ObjectRecord>) -> Option<&ObjectInfo> {
    newest.filter(|record| !record.is_delete_marker()).map(|record| &record.info)
}

/// What the current object counts for.
fn current_counts(newest: Option<&ObjectRecord>) -> (u64, u64) {
    visible(newest).map_or((0, 0), |info| (1, info.size))
}

impl Batch<'_> {
    /// The newest version of a key.
    pub(super) fn newest(&self, place: &Place) -> Result<Option<Found>, EngineError> {
        self.version_at_or_after(place, &place.versions)
    }

    fn version_at_or_after(&self, place: &Place, key: &[u8]) -> Result<Option<Found>, EngineError> {
        let found = self.txn.first_at_or_after(self.tables.objects, key)?;
        let Some((key, record)) = found.filter(|(key, _)| key.starts_with(&place.versions)) else {
            return Ok(None);
        };
        let record = ObjectRecord::decode(record.version, record.body)?;
        Ok(Some(Found { key: key.to_vec(), record }))
    }

    pub(super) fn version_with_id(
        &self,
        place: &Place,
        version: VersionId,
    ) -> Result<Option<Found>, EngineError> {
        let key = keys::with_sequence(&place.versions, version.0);
        let Some(record) = self.txn.get(self.tables.objects, &key)? else { return Ok(None) };
        let record = ObjectRecord::decode(record.version, record.body)?;
        Ok(Some(Found { key, record }))
    }

    /// The null version that is not the newest.
    fn older_null_version(&self, place: &Place) -> Result<Option<Found>, EngineError> {
        let Some(entry) = self.txn.get(self.tables.null_versions, &place.versions)? else { return Ok(None) };
        let corrupt = || EngineError::Corrupt("the place of a null version".to_owned());
        let sequence = codec::u64_of(entry.body).ok_or_else(corrupt)?;
        self.version_with_id(place, VersionId(sequence))?.ok_or_else(corrupt).map(Some)
    }

    pub(super) fn named_version(
        &self,
        place: &Place,
        name: VersionName,
    ) -> Result<Option<Found>, EngineError> {
        match name {
            VersionName::Id(id) => {
                // The null version has no id that a client could name.
                Ok(self.version_with_id(place, id)?.filter(|found| !found.record.info.is_null))
            }
            VersionName::Null => match self.newest(place)? {
                Some(newest) if newest.record.info.is_null => Ok(Some(newest)),
                Some(_) => self.older_null_version(place),
                None => Ok(None),
            },
        }
    }

    /// The parts of an upload, in order of their numbers.
    pub(super) fn parts_of(&self, upload: &[u8]) -> Result<Vec<FoundPart>, EngineError> {
        let mut parts = Vec::new();
        for item in self.txn.scan(self.tables.parts, upload)? {
            let (key, record) = item?;
            if !key.starts_with(upload) {
                break;
            }
            let (_, number) =
                keys::decode_part(key).ok_or_else(|| EngineError::Corrupt("the key of a part".to_owned()))?;
            let record = PartRecord::decode(record.version, record.body, number)?;
            parts.push(FoundPart { key: key.to_vec(), record });
        }
        Ok(parts)
    }

    /// Reads all that a removal of a version removes, and asks its lock.
    fn doom(
        &self,
        place: &Place,
        found: Found,
        now: Timestamp,
        bypasses_governance: bool,
    ) -> Result<Doomed, EngineError> {
        let is_locked = found.record.info.lock.forbids_removal(now, bypasses_governance);
        #[cfg(feature = "simulation")]
        let is_locked = is_locked && !self.slice.files.is_flawed(Flaw::RemoveLocked);
        if is_locked {
            return Err(EngineError::ObjectLocked);
        }
        let parts = match &found.record.content {
            Content::Parts { upload, .. } => self.parts_of(&keys::with_upload(&place.versions, *upload))?,
            Content::Payload(_) | Content::DeleteMarker => Vec::new(),
        };
        Ok(Doomed { found, parts })
    }

    /// The null version, which a new one comes in place of.
    pub(super) fn doomed_null(
        &self,
        place: &Place,
        newest: Option<&Found>,
        now: Timestamp,
    ) -> Result<Option<Doomed>, EngineError> {
        let Some(newest) = newest else { return Ok(None) };
        let null = if newest.record.info.is_null {
            Some(Found { key: newest.key.clone(), record: newest.record.clone() })
        } else {
            self.older_null_version(place)?
        };
        null.map(|null| self.doom(place, null, now, false)).transpose()
    }

    pub(super) fn put(&mut self, put: PutJob) -> Result<PutOutcome, Failure> {
        let place = self.place(&put.bucket, &put.key)?;
        let newest = self.newest(&place)?;
        check_condition(&put.condition, visible(newest.as_ref().map(|found| &found.record)))?;
        let StagedParts { size, payload, inline, reservation, .. } = put.payload.into_parts();
        let taken: Vec<_> = payload.owned().collect();
        let info = ObjectInfo {
            size,
            etag: put.etag,
            encrypted: payload.sealed.is_some(),
            attributes: put.attributes,
            lock: put.lock,
            ..self.blank_info(&place)
        };
        let record = ObjectRecord { info, content: Content::Payload(payload) };
        let new = NewVersion { record, inline: &inline, taken, reservation, given: Vec::new() };
        self.write_version(&place, newest.as_ref(), new)
    }

    /// Identity and date of the version that is written next.
    pub(super) fn blank_info(&self, place: &Place) -> ObjectInfo {
        let version = VersionId(self.slice.sequence_after(self.sequence));
        let is_null = place.bucket.versioning() != Versioning::Enabled;
        ObjectRecord::delete_marker(version, self.clock.now(), is_null).info
    }

    /// Writes a version as the newest of its key, which is `newest` now; a null version comes in the place of the one that
    /// was. Without a retention of its own it gets the bucket's default.
    pub(super) fn write_version(
        &mut self,
        place: &Place,
        newest: Option<&Found>,
        new: NewVersion<'_>,
    ) -> Result<PutOutcome, Failure> {
        let NewVersion { mut record, inline, taken, reservation, mut given } = new;
        let (now, is_null) = (record.info.last_modified, record.info.is_null);
        if !record.is_delete_marker() {
            stamp_default_retention(&place.bucket, &mut record.info.lock, now);
        }
        let doomed = if is_null { self.doomed_null(place, newest, now)? } else { None };
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        record.encode(&mut body).map_err(EngineError::from)?;
        given.extend(doomed.iter().flat_map(Doomed::owned));
        let before = newest.map(|found| &found.record);
        self.claim(&place.bucket, current_counts(before), current_counts(Some(&record)))?;
        self.move_space(&taken, &given, reservation).inspect_err(|_| self.unclaim_last())?;

        self.sequence = record.info.version.0;
        let outcome = PutOutcome {
            version: record.info.version,
            is_null,
            last_modified: now,
            replaced: visible(before).is_some(),
        };
        self.note_current(place, current_counts(before), current_counts(Some(&record)));
        let newest_is_null = newest.is_some_and(|newest| newest.record.info.is_null);
        if let Some(doomed) = doomed {
            self.remove_version(place, doomed)?;
            if !newest_is_null {
                self.remove_null_entry(place)?;
            }
        } else if let Some(newest) = newest.filter(|_| newest_is_null) {
            self.insert_null_entry(place, newest.record.info.version)?;
        }
        let key = keys::with_sequence(&place.versions, record.info.version.0);
        self.insert_record(&place.bucket, FollowedTable::Objects, &key, (&body, inline), counted(&record))?;
        self.body = body;
        Ok(outcome)
    }

    pub(super) fn delete(&mut self, job: &DeleteJob) -> Result<DeleteOutcome, Failure> {
        let place = self.place(&job.bucket, &job.key)?;
        let DeleteOptions { version, condition, bypass_governance } = &job.options;
        if let Some(name) = version {
            return self.delete_version(&place, *name, condition, *bypass_governance);
        }
        let newest = self.newest(&place)?;
        let current = visible(newest.as_ref().map(|found| &found.record));
        check_condition(condition, current)?;
        let existed = current.is_some();
        if place.bucket.versioning() == Versioning::Unversioned {
            if let Some(newest) = newest {
                self.remove_newest(&place, newest, false)?;
            }
            return Ok(DeleteOutcome { existed, version: None, is_delete_marker: false });
        }
        let info = self.blank_info(&place);
        let record = ObjectRecord::delete_marker(info.version, info.last_modified, info.is_null);
        let name = record.info.version_name();
        let new = NewVersion { record, inline: &[], taken: Vec::new(), reservation: None, given: Vec::new() };
        self.write_version(&place, newest.as_ref(), new)?;
        Ok(DeleteOutcome { existed, version: Some(name), is_delete_marker: true })
    }

    fn delete_version(
        &mut self,
        place: &Place,
        name: VersionName,
        condition: &WriteCondition,
        bypass_governance: bool,
    ) -> Result<DeleteOutcome, Failure> {
        let found = self.named_version(place, name)?;
        check_condition(condition, found.as_ref().map(|found| &found.record.info))?;
        let Some(found) = found else {
            return Ok(DeleteOutcome { existed: false, version: Some(name), is_delete_marker: false });
        };
        let is_delete_marker = found.record.is_delete_marker();
        let outcome = DeleteOutcome { existed: true, version: Some(name), is_delete_marker };
        let newest =
            self.newest(place)?.ok_or_else(|| EngineError::Corrupt("the order of versions".into()))?;
        if newest.key == found.key {
            self.remove_newest(place, found, bypass_governance)?;
            return Ok(outcome);
        }
        let is_null = found.record.info.is_null;
        let doomed = self.doom(place, found, self.clock.now(), bypass_governance)?;
        self.move_space(&[], &doomed.owned(), None)?;
        self.remove_version(place, doomed)?;
        if is_null {
            self.remove_null_entry(place)?;
        }
        Ok(outcome)
    }

    /// Removes the newest version of a key; the one behind it is the newest then, and must be within the quota: a removed
    /// delete marker would else bring back any number of objects.
    fn remove_newest(
        &mut self,
        place: &Place,
        newest: Found,
        bypass_governance: bool,
    ) -> Result<(), Failure> {
        let behind = [&newest.key[..], &[0]].concat();
        let next = self.version_at_or_after(place, &behind)?;
        let doomed = self.doom(place, newest, self.clock.now(), bypass_governance)?;
        let before = current_counts(Some(&doomed.found.record));
        let after = current_counts(next.as_ref().map(|found| &found.record));
        self.claim(&place.bucket, before, after)?;
        self.move_space(&[], &doomed.owned(), None).inspect_err(|_| self.unclaim_last())?;
        self.note_current(place, before, after);
        self.remove_version(place, doomed)?;
        if next.is_some_and(|next| next.record.info.is_null) {
            self.remove_null_entry(place)?;
        }
        Ok(())
    }

    /// Removes the records of a version, whose space has been given.
    fn remove_version(&mut self, place: &Place, doomed: Doomed) -> Result<(), Failure> {
        let owned = doomed.owned();
        let Doomed { found, parts } = doomed;
        self.remove_record(&place.bucket, FollowedTable::Objects, &found.key, counted(&found.record))?;
        match found.record.content {
            Content::DeleteMarker => {}
            Content::Payload(payload) => {
                if let PayloadForm::Volume(volume) = payload.form {
                    self.removed.push((volume.id, owned));
                }
            }
            Content::Parts { id, upload } => self.remove_assembled(place, id, upload, &parts, owned)?,
        }
        Ok(())
    }

    fn remove_assembled(
        &mut self,
        place: &Place,
        id: PayloadId,
        upload: UploadId,
        parts: &[FoundPart],
        owned: Vec<Extent>,
    ) -> Result<(), Failure> {
        for part in parts {
            let extents = part.record.payload.owned().collect();
            let counted = Counted { extents, ..Counted::NOTHING };
            self.remove_record(&place.bucket, FollowedTable::Parts, &part.key, counted)?;
        }
        self.parts_touched += parts.len();
        let key = keys::with_upload(&place.versions, upload);
        self.remove_record(&place.bucket, FollowedTable::Assembled, &key, Counted::NOTHING)?;
        #[cfg(feature = "simulation")]
        let id = if self.slice.files.is_flawed(Flaw::ReleasePartsDespiteReaders) {
            // Nobody has this one pinned.
            PayloadId([0; 16])
        } else {
            id
        };
        self.removed.push((id, owned));
        Ok(())
    }

    fn insert_null_entry(&mut self, place: &Place, version: VersionId) -> Result<(), Failure> {
        #[cfg(feature = "simulation")]
        if self.slice.files.is_flawed(Flaw::ForgetNullVersions) {
            return Ok(());
        }
        let body = version.0.to_le_bytes();
        let (table, nothing) = (FollowedTable::NullVersions, Counted::NOTHING);
        self.insert_record(&place.bucket, table, &place.versions, (&body, &[]), nothing)
    }

    fn remove_null_entry(&mut self, place: &Place) -> Result<(), Failure> {
        let table = FollowedTable::NullVersions;
        self.remove_record(&place.bucket, table, &place.versions, Counted::NOTHING)
    }
}

/// Decides a condition on the current object, if there is one.
pub(super) fn check_condition(
    condition: &WriteCondition,
    current: Option<&ObjectInfo>,
) -> Result<(), EngineError> {
    let Some(info) = current else {
        let needs_one = condition.if_match.is_some()
            || condition.if_size.is_some()
            || condition.if_last_modified_seconds.is_some();
        return if needs_one { Err(EngineError::NoSuchKey) } else { Ok(()) };
    };
    let tag_fits = match &condition.if_match {
        None | Some(EtagMatch::Any) => true,
        Some(EtagMatch::OneOf(tags)) => tags.contains(&info.etag.to_string()),
    };
    let holds = !condition.must_be_absent
        && tag_fits
        && condition.if_size.is_none_or(|size| size == info.size)
        && condition.if_last_modified_seconds.is_none_or(|seconds| seconds == info.last_modified.seconds());
    if holds { Ok(()) } else { Err(EngineError::PreconditionFailed) }
}
