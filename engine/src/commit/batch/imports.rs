//! Imports of versions from another store.
//!
//! An imported version is written between the other versions of its key, at the place of its date, and below everything
//! that clients have written here. It is a put, a completion or a delete marker in all other respects.

use super::events::Author;
use super::lookup::{FoundVersion, TargetKey};
use super::records::{Accounting, RecordBytes};
use super::uploads::{random_payload_id, total};
use super::versions::{Removal, quota_usage};
use super::{Batch, Failure};
use crate::error::EngineError;
use crate::format::extent::Extent;
use crate::format::keys;
use crate::format::object_record::{Content, ObjectRecord};
use crate::format::part_record::PartHead;
use crate::slice::change_log::FollowedTable;
use crate::slice::command::{ImportVersion, ImportedContent};
use crate::slice::staged::StagedParts;
use crate::slice::version_chain::ChainedVersion;
use crate::space::reservation::Reservation;
use crate::types::bucket::Versioning;
use crate::types::import::{ImportOutcome, ImportedIdentity};
use crate::types::object::ObjectInfo;
use crate::types::object_lock::ObjectLock;
use crate::types::upload::composite_etag;
use cairn_model::{Etag, UploadId, VersionId};

/// The largest id of this store's form that an imported version may have. Sequences go on after it.
const SEQUENCE_MAX: u64 = (1 << 62) - 1;

/// The effect of an import on the version that exists under its name.
enum Standing {
    /// There is none.
    New,
    /// It is a null version that was imported before, and is replaced.
    Replaces(Box<FoundVersion>),
    /// Nothing is to be done.
    Done(ImportOutcome),
}

/// A version that is to be imported, with what its record owns.
struct Imported {
    record: ObjectRecord,
    /// Bytes of an inline payload.
    inline: Vec<u8>,
    /// Extents that the record owns.
    allocated: Vec<Extent>,
    /// The reservation of these extents.
    reservation: Option<Reservation>,
    /// The upload that it is made of, with its parts.
    upload: Option<(UploadId, Vec<PartHead>)>,
}

impl Batch<'_> {
    /// Writes a version of another store.
    pub(super) fn import(&mut self, import: ImportVersion) -> Result<ImportOutcome, Failure> {
        let target = self.target(&import.bucket, &import.key)?;
        let ImportVersion { key, identity, content, emits_events, origin, .. } = import;
        check_bucket(&target, &identity, &content)?;
        let number = self.number_of_import(&target, &identity)?;
        let standing = self.standing(&target, &identity, &content)?;
        let imported = self.imported_record(&target, number, &identity, content)?;
        let replaced = match standing {
            Standing::Done(outcome) => return Ok(outcome),
            Standing::New => None,
            Standing::Replaces(found) => Some(self.plan_removal(&target, *found, self.clock.now(), false)?),
        };
        let outcome = if replaced.is_some() { ImportOutcome::Replaced } else { ImportOutcome::Created };
        let record = self.place(&target, imported, replaced)?;
        if emits_events {
            let author = Author::client(&key, &origin);
            if record.is_delete_marker() {
                self.write_event_of_marker(&target, author, &record.info)?;
            } else {
                self.write_event_of_put(&target, author, &record.info, false, false)?;
            }
        }
        Ok(outcome)
    }

    /// Decides what the import does to the version that exists under its name.
    fn standing(
        &self,
        target: &TargetKey,
        identity: &ImportedIdentity,
        content: &ImportedContent,
    ) -> Result<Standing, EngineError> {
        let Some(id) = &identity.id else {
            return Ok(match self.null_version(target)? {
                None => Standing::New,
                Some(null) if !null.record.info.version.is_imported() => Standing::Done(ImportOutcome::Kept),
                Some(null) if self.is_same(target, &null, identity, content)? => {
                    Standing::Done(ImportOutcome::Unchanged)
                }
                Some(null) => Standing::Replaces(Box::new(null)),
            });
        };
        if let Some(found) = self.imported_version(target, id)? {
            if self.is_same(target, &found, identity, content)? {
                return Ok(Standing::Done(ImportOutcome::Unchanged));
            }
            return Err(EngineError::ImportConflict("another version was imported under this id"));
        }
        if let Some(own) = id.as_version() {
            if own.is_imported() || own.0 > SEQUENCE_MAX {
                return Err(EngineError::ImportConflict("no version of this store can have this id"));
            }
            if self.version_with_id(target, own)?.is_some() {
                return Err(EngineError::ImportConflict("a version that was written here has this id"));
            }
        }
        Ok(Standing::New)
    }

    /// Returns whether a version is the one to be imported: size, entity tag, date and kind are equal.
    fn is_same(
        &self,
        target: &TargetKey,
        found: &FoundVersion,
        identity: &ImportedIdentity,
        content: &ImportedContent,
    ) -> Result<bool, EngineError> {
        let info = &found.record.info;
        let (size, etag, is_marker) = match content {
            ImportedContent::Payload { payload, .. } => (payload.size(), payload.etag(), false),
            ImportedContent::DeleteMarker => (0, info.etag, true),
            ImportedContent::Upload { upload, .. } => {
                let parts = self.heads_of_upload(&keys::with_upload(&target.versions, *upload))?;
                let (size, etag) = facts_of_parts(&parts)?;
                (size, etag, false)
            }
        };
        Ok(found.record.is_delete_marker() == is_marker
            && (info.size, info.last_modified) == (size, identity.last_modified)
            && info.etag == identity.etag.unwrap_or(etag))
    }

    /// Returns the number of the version: the next one of its date.
    fn number_of_import(
        &self,
        target: &TargetKey,
        identity: &ImportedIdentity,
    ) -> Result<VersionId, EngineError> {
        let conflict = EngineError::ImportConflict;
        let time = identity.last_modified.0;
        let first = VersionId::imported_at(time).ok_or(conflict("the date is after the year 2248"))?;
        let next = VersionId::imported_at(time + 1).unwrap_or(VersionId(0));
        // Versions of the same time are between the least numbers of this time and the next one. Newer ones come first.
        let from = keys::with_sequence(&target.versions, next.0);
        let found = self.txn.first_key_at_or_after(self.slice.tables.objects, &[&from[..], &[0]].concat())?;
        let newest = found.filter(|key| key.starts_with(&target.versions)).and_then(keys::decode);
        match newest.map(|(_, _, sequence)| VersionId(sequence)).filter(|newest| *newest >= first) {
            None => Ok(first),
            Some(newest) => {
                newest.next_of_same_time().ok_or(conflict("the key has too many versions of this date"))
            }
        }
    }

    /// Makes the record of a version, and takes its payload.
    fn imported_record(
        &self,
        target: &TargetKey,
        number: VersionId,
        identity: &ImportedIdentity,
        content: ImportedContent,
    ) -> Result<Imported, EngineError> {
        let ImportedIdentity { id, last_modified, etag, .. } = *identity;
        let marker = ObjectRecord::delete_marker(number, last_modified, id.is_none());
        let identified = ObjectInfo { imported: id, ..marker.info };
        let (inline, allocated) = (Vec::new(), Vec::new());
        match content {
            ImportedContent::DeleteMarker => {
                let record = ObjectRecord { info: identified, content: Content::DeleteMarker };
                Ok(Imported { record, inline, allocated, reservation: None, upload: None })
            }
            ImportedContent::Payload { payload, attributes, lock } => {
                let etag = etag.unwrap_or(payload.etag());
                let StagedParts { size, payload, inline, reservation, .. } = payload.into_parts();
                let encrypted = payload.sealed.is_some();
                let allocated = payload.owned().collect();
                let info = ObjectInfo { size, etag, encrypted, attributes, lock, ..identified };
                let record = ObjectRecord { info, content: Content::Payload(payload) };
                Ok(Imported { record, inline, allocated, reservation, upload: None })
            }
            ImportedContent::Upload { upload, checksum } => {
                let key = keys::with_upload(&target.versions, upload);
                let begun = self.upload_at(&key, upload)?.ok_or(EngineError::NoSuchUpload)?;
                let parts = self.heads_of_upload(&key)?;
                let (_, composite) = facts_of_parts(&parts)?;
                let etag = etag.unwrap_or(composite);
                if etag.parts != composite.parts {
                    return Err(EngineError::ImportConflict("the entity tag names another number of parts"));
                }
                let is_known = !parts.iter().any(|part| part.info.is_opaque);
                if is_known && !identity.is_etag_opaque && etag != composite {
                    return Err(EngineError::ImportConflict("the parts have another entity tag"));
                }
                if checksum.as_ref().is_some_and(|checksum| checksum.etag != composite) {
                    return Err(EngineError::ImportConflict(
                        "a part was replaced while its checksum was compared",
                    ));
                }
                let checksums = checksum.into_iter().map(|checksum| (checksum.algorithm, checksum.digest));
                let ObjectInfo { size, encrypted, attributes, lock, parts: runs, .. } =
                    self.completed_info(target, begun.upload, &parts, checksums.collect(), etag)?;
                let info = ObjectInfo { size, etag, encrypted, attributes, lock, parts: runs, ..identified };
                let record =
                    ObjectRecord { info, content: Content::Parts { id: random_payload_id()?, upload } };
                Ok(Imported { record, inline, allocated, reservation: None, upload: Some((upload, parts)) })
            }
        }
    }

    /// Writes a version at the place of its number.
    fn place(
        &mut self,
        target: &TargetKey,
        imported: Imported,
        replaced: Option<Removal>,
    ) -> Result<ObjectRecord, Failure> {
        let Imported { record, inline, allocated, reservation, upload } = imported;
        let (number, is_null) = (record.info.version, record.info.is_null);
        let newest = self.newest(target)?;
        let null_before =
            if is_null { None } else { self.null_version(target)?.map(|null| null.record.info.version) };
        let null_entry_before = self.older_null_version(target)?.is_some();
        // The newest version once the replaced one is gone.
        let replaced_key = replaced.as_ref().map(|replaced| &replaced.found.key);
        let other = match &newest {
            Some(newest) if Some(&newest.key) == replaced_key => self.older_than(target, newest)?,
            _ => None,
        };
        let remaining = if newest.as_ref().map(|newest| &newest.key) == replaced_key {
            other.as_ref()
        } else {
            newest.as_ref()
        };
        let becomes_newest = remaining.is_none_or(|remaining| remaining.record.info.version < number);
        let newest_after =
            if becomes_newest { &record } else { &remaining.expect("there is a newer one").record };
        let mut body = std::mem::take(&mut self.buffers.version);
        body.clear();
        record.encode(&mut body).map_err(EngineError::from)?;
        let freed: Vec<_> = replaced.iter().flat_map(Removal::extents).collect();
        let (before, after) =
            (quota_usage(newest.as_ref().map(|found| &found.record)), quota_usage(Some(newest_after)));
        self.reserve_quota(&target.bucket, before, after)?;
        self.transfer_extents(&allocated, &freed, reservation)
            .inspect_err(|_| self.cancel_last_quota_reservation())?;

        // Everything that can be refused has been decided. From here on the transaction is changed.
        let null_after = if is_null { Some(number) } else { null_before };
        let null_entry = null_after.filter(|null| *null != newest_after.info.version);
        self.record_current(target, before, after);
        if let Some(replaced) = replaced {
            self.remove_version(target, replaced)?;
        }
        if null_entry_before {
            self.remove_null_entry(target)?;
        }
        if let Some(null) = null_entry {
            self.insert_null_entry(target, null)?;
        }
        let key = keys::with_sequence(&target.versions, number.0);
        let (last_modified, is_delete_marker) = (record.info.last_modified, record.is_delete_marker());
        let chained = ChainedVersion { key: key.clone(), version: number, last_modified, is_delete_marker };
        self.index_version_between(target, chained)?;
        let bytes = RecordBytes { body: &body, tail: &inline };
        self.insert_record(
            &target.bucket,
            FollowedTable::Objects,
            &key,
            bytes,
            Accounting::of_version(&record),
        )?;
        self.buffers.version = body;
        let number_bytes = number.0.to_le_bytes();
        let bytes = RecordBytes::of_body(&number_bytes);
        if let Some(id) = &record.info.imported {
            let key = keys::with_imported_id(&target.versions, id);
            self.insert_record(&target.bucket, FollowedTable::ImportedIds, &key, bytes, Accounting::NOTHING)?;
            if let Some(own) = id.as_version() {
                self.sequence = self.sequence.max(self.slice.sequence_after(own.0));
            }
        }
        if let Some((upload, parts)) = upload {
            let key = keys::with_upload(&target.versions, upload);
            self.parts_touched += parts.len();
            self.remove_upload(target, &key)?;
            self.count_as_completed(target, &key, &parts);
            self.insert_record(&target.bucket, FollowedTable::Assembled, &key, bytes, Accounting::NOTHING)?;
        }
        Ok(record)
    }
}

/// Refuses what the bucket's settings do not allow.
fn check_bucket(
    target: &TargetKey,
    identity: &ImportedIdentity,
    content: &ImportedContent,
) -> Result<(), EngineError> {
    let settings = target.bucket.settings();
    let is_versioned = target.bucket.versioning() != Versioning::Unversioned;
    let needs_versions = identity.id.is_some() || matches!(content, ImportedContent::DeleteMarker);
    let has_lock = matches!(content, ImportedContent::Payload { lock, .. } if *lock != ObjectLock::default());
    if needs_versions && !is_versioned || has_lock && !settings.object_lock {
        return Err(EngineError::InvalidBucketState);
    }
    Ok(())
}

/// Returns size and entity tag of an object of these parts.
fn facts_of_parts(parts: &[PartHead]) -> Result<(u64, Etag), EngineError> {
    if parts.is_empty() {
        return Err(EngineError::InvalidPart(0));
    }
    let size = total(parts.iter().map(|part| part.info.size))?;
    Ok((size, composite_etag(parts.iter().map(|part| part.info.md5))))
}
