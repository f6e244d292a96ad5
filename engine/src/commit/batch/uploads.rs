//! Multipart uploads: creation, parts, completion, abort (AWS: "Uploading and copying objects using multipart upload").
//!
//! Parts are written once and stay where they are. A completion writes the record of an object that names the upload, moves
//! the record of the upload to table `assembled`, and removes the parts that the request does not name.

use super::events::Author;
use super::lookup::{FoundPart, TargetKey, current_object, extents_of};
use super::records::{Accounting, RecordBytes};
use super::versions::{NewVersion, Written};
use super::{Batch, Failure};
use crate::error::EngineError;
use crate::fault::Flaw;
use crate::format::codec;
use crate::format::keys;
use crate::format::object_record::{Content, ObjectRecord};
use crate::format::part_record::{PartHead, PartRecord};
use crate::format::payload_id::PayloadId;
use crate::format::upload_record;
use crate::limits::OBJECT_BYTES_MAX;
use crate::slice::change_log::{Change, FollowedTable};
use crate::slice::command::{AbortFirstUpload, AbortUpload, CompleteUpload, CreateUpload, PutPart};
use crate::slice::staged::StagedParts;
use crate::space::allocator::RemovedPayload;
use crate::types::bucket::Usage;
use crate::types::object::{
    Attributes, ChecksumAlgorithm, ChecksumKind, CompleteOutcome, ObjectInfo, PartRun, PutOutcome,
};
use crate::types::upload::{NewUpload, PartInfo, UploadInfo, composite_etag};
use cairn_model::{Etag, ObjectKey, UploadId, VersionId};
use std::sync::Arc;

impl Batch<'_> {
    /// Begins an upload.
    pub(super) fn create_upload(&mut self, create: CreateUpload) -> Result<UploadInfo, Failure> {
        let target = self.target(&create.bucket, &create.key)?;
        let id = UploadId(self.slice.sequence_after(self.sequence));
        let initiated = self.clock.now();
        let mut body = Vec::new();
        upload_record::encode(&mut body, initiated, &create.upload).map_err(EngineError::from)?;
        self.sequence = id.0;
        let key = keys::with_upload(&target.versions, id);
        let accounting = Accounting { counts: Usage::ONE_UPLOAD, ..Accounting::NOTHING };
        let bytes = RecordBytes::of_body(&body);
        self.insert_record(&target.bucket, FollowedTable::Uploads, &key, bytes, accounting)?;
        self.index_upload(&target, &key, &create.key, initiated)?;
        Ok(UploadInfo { id, initiated, upload: create.upload })
    }

    /// Adds a part to an upload. It replaces an earlier part with the same number.
    pub(super) fn put_part(&mut self, part: PutPart) -> Result<PartInfo, Failure> {
        let target = self.target(&part.bucket, &part.key)?;
        let upload = keys::with_upload(&target.versions, part.upload);
        if self.txn.get(self.slice.tables.uploads, &upload).map_err(EngineError::from)?.is_none() {
            return Err(EngineError::NoSuchUpload.into());
        }
        let key = keys::with_part(&upload, part.number);
        let replaced = match self.txn.get(self.slice.tables.parts, &key).map_err(EngineError::from)? {
            Some(stored) => {
                let record = PartRecord::decode(stored.version, stored.body, part.number);
                Some(FoundPart { key: key.clone(), record: record.map_err(EngineError::from)? })
            }
            None => None,
        };
        let etag = part.payload.etag();
        let StagedParts { size, payload, inline, reservation, .. } = part.payload.into_parts();
        let last_modified = self.clock.now();
        let info = PartInfo {
            number: part.number,
            size,
            md5: etag.md5,
            is_opaque: etag.parts > 0,
            last_modified,
            checksum: part.checksum,
        };
        let record = PartRecord { info, payload };
        let mut body = Vec::new();
        record.encode(&mut body).map_err(EngineError::from)?;
        let allocated: Vec<_> = record.payload.owned().collect();
        self.transfer_extents(&allocated, &extents_of(replaced.as_slice()), reservation)?;
        self.remove_parts(&target, replaced.as_slice())?;
        let bytes = RecordBytes { body: &body, tail: &inline };
        let accounting = Accounting::of_unfinished_part(&record);
        self.insert_record(&target.bucket, FollowedTable::Parts, &key, bytes, accounting)?;
        Ok(record.info)
    }

    /// Removes an upload with its parts.
    pub(super) fn abort_upload(&mut self, abort: &AbortUpload) -> Result<(), Failure> {
        let target = self.target(&abort.bucket, &abort.key)?;
        let upload = keys::with_upload(&target.versions, abort.upload);
        if self.txn.get(self.slice.tables.uploads, &upload).map_err(EngineError::from)?.is_none() {
            return Err(EngineError::NoSuchUpload.into());
        }
        self.abort_at(&target, &upload, Author::client(&abort.key, &abort.origin))?;
        Ok(())
    }

    /// Removes the first upload of a bucket that is being deleted, and so accepts no other change. Returns whether there was
    /// one.
    pub(super) fn abort_first_upload(&mut self, abort: &AbortFirstUpload) -> Result<bool, Failure> {
        let prefix = keys::prefix_of(abort.bucket.id, &[]);
        let first =
            self.txn.first_key_at_or_after(self.slice.tables.uploads, &prefix).map_err(EngineError::from)?;
        let Some(upload) = first.filter(|key| key.starts_with(&prefix)).map(<[u8]>::to_vec) else {
            return Ok(false);
        };
        let corrupt = || EngineError::Corrupt("the key of an upload".to_owned());
        let (_, key, _) = keys::decode_upload(&upload).ok_or_else(corrupt)?;
        let key =
            String::from_utf8(key).ok().and_then(|key| ObjectKey::parse(&key).ok()).ok_or_else(corrupt)?;
        let versions = keys::versions_of(abort.bucket.id, key.as_bytes()).ok_or_else(corrupt)?;
        let target = TargetKey { bucket: Arc::clone(&abort.bucket), versions };
        self.abort_at(&target, &upload, Author::client(&key, &abort.origin))?;
        Ok(true)
    }

    /// Removes an upload that exists, with its parts. Returns the bytes of these.
    pub(super) fn abort_at(
        &mut self,
        target: &TargetKey,
        upload: &[u8],
        author: Author<'_>,
    ) -> Result<u64, Failure> {
        let parts = self.parts_of_upload(upload)?;
        self.transfer_extents(&[], &extents_of(&parts), None)?;
        self.remove_upload(target, upload)?;
        self.remove_parts(target, &parts)?;
        self.write_event_of_abort(target, author)?;
        Ok(parts.iter().map(|part| part.record.info.size).sum())
    }

    pub(super) fn remove_upload(&mut self, target: &TargetKey, key: &[u8]) -> Result<(), Failure> {
        self.unindex_upload(target, key)?;
        let accounting = Accounting { counts: Usage::ONE_UPLOAD, ..Accounting::NOTHING };
        self.remove_record(&target.bucket, FollowedTable::Uploads, key, accounting)
    }

    /// Removes parts of an unfinished upload. Their extents must have been marked free. No reader can have them pinned.
    fn remove_parts(&mut self, target: &TargetKey, parts: &[FoundPart]) -> Result<(), Failure> {
        for part in parts {
            let accounting = Accounting::of_unfinished_part(&part.record);
            self.remove_record(&target.bucket, FollowedTable::Parts, &part.key, accounting)?;
            if let Some(volume) = part.record.payload.volume() {
                self.effects
                    .removed
                    .push(RemovedPayload { id: volume.id, extents: volume.owned().collect() });
            }
        }
        self.parts_touched += parts.len();
        Ok(())
    }

    /// Makes an object of the named parts of an upload, and ends the upload.
    ///
    /// A repeated completion returns the outcome of the first one, as long as its version exists.
    pub(super) fn complete_upload(&mut self, complete: CompleteUpload) -> Result<CompleteOutcome, Failure> {
        let target = self.target(&complete.bucket, &complete.key)?;
        let key = keys::with_upload(&target.versions, complete.upload);
        let etag = composite_etag(complete.parts.iter().map(|(_, md5)| *md5));
        let Some(upload) = self.upload_at(&key, complete.upload)? else {
            let before = self.completed_before(&target, &key)?.filter(|record| record.info.etag == etag);
            return Ok(outcome_of(&before.ok_or(EngineError::NoSuchUpload)?));
        };
        let newest = self.newest(&target)?;
        complete.condition.check(current_object(newest.as_ref()))?;
        if let (Some(upload), Some(newest)) = (complete.condition.unchanged_since, &newest) {
            // Uploads and versions have their numbers from one sequence.
            if newest.record.info.version > VersionId(upload.0) {
                return Err(EngineError::Conflict.into());
            }
        }
        // Counted even if the completion is refused, so that a batch of refusals stays bounded too.
        self.parts_touched += complete.parts.len();
        let DividedParts { used, unused } = self.divide_parts(&key, &complete.parts)?;
        let unused = if self.slice.faults.has(Flaw::DropNamedPart) {
            self.parts_of_upload(&key)?.into_iter().take(1).collect()
        } else {
            unused
        };
        let info = self.completed_info(&target, upload.upload, &used, complete.checksums, etag)?;
        let record = ObjectRecord {
            info,
            content: Content::Parts { id: random_payload_id()?, upload: complete.upload },
        };
        let (allocated, freed) = (Vec::new(), extents_of(&unused));
        let new = NewVersion { record, inline: &[], allocated, reservation: None, freed };
        let Written { outcome: put, record, .. } = self.write_version(&target, newest.as_ref(), new)?;
        self.remove_upload(&target, &key)?;
        self.remove_parts(&target, &unused)?;
        self.count_as_completed(&target, &key, &used);
        let version = put.version.0.to_le_bytes();
        let (table, bytes) = (FollowedTable::Assembled, RecordBytes::of_body(&version));
        self.insert_record(&target.bucket, table, &key, bytes, Accounting::NOTHING)?;
        let author = Author::client(&complete.key, &complete.origin);
        self.write_event_of_put(&target, author, &record.info, put.replaced, true)?;
        Ok(CompleteOutcome { put, etag, encrypted: record.info.encrypted })
    }

    /// Returns the facts of the version that is made of `parts`.
    pub(super) fn completed_info(
        &self,
        target: &TargetKey,
        upload: NewUpload,
        parts: &[PartHead],
        checksums: Vec<(ChecksumAlgorithm, Vec<u8>)>,
        etag: Etag,
    ) -> Result<ObjectInfo, EngineError> {
        let size = total(parts.iter().map(|part| part.info.size))?;
        let NewUpload { attributes, lock, checksum } = upload;
        let checksum_kind = checksum.map_or(ChecksumKind::FullObject, |checksum| checksum.kind);
        Ok(ObjectInfo {
            size,
            etag,
            encrypted: parts.iter().all(|part| part.is_sealed),
            attributes: Attributes { checksums, checksum_kind, ..attributes },
            lock,
            parts: runs(parts.iter().map(|part| (part.info.number, part.info.size))),
            ..self.next_version_info(target)
        })
    }

    pub(super) fn upload_at(&self, key: &[u8], id: UploadId) -> Result<Option<UploadInfo>, EngineError> {
        let Some(record) = self.txn.get(self.slice.tables.uploads, key)? else { return Ok(None) };
        Ok(Some(upload_record::decode(record.version, record.body, id)?))
    }

    /// Finds the version that was made of an upload's parts, as long as it exists.
    fn completed_before(&self, target: &TargetKey, key: &[u8]) -> Result<Option<ObjectRecord>, EngineError> {
        let Some(entry) = self.txn.get(self.slice.tables.assembled, key)? else { return Ok(None) };
        let corrupt = || EngineError::Corrupt("the record of a completed upload".to_owned());
        let version = codec::decode_u64(entry.body).ok_or_else(corrupt)?;
        let found = self.version_with_id(target, VersionId(version))?.ok_or_else(corrupt)?;
        Ok(Some(found.record))
    }

    /// Reads the heads of an upload's parts, in order of their numbers.
    pub(super) fn heads_of_upload(&self, upload: &[u8]) -> Result<Vec<PartHead>, EngineError> {
        let mut heads = Vec::new();
        for item in self.txn.scan(self.slice.tables.parts, upload)? {
            let (key, stored) = item?;
            let Some((_, number)) = keys::decode_part(key).filter(|(of, _)| *of == upload) else { break };
            heads.push(PartHead::decode(stored.version, stored.body, number)?);
        }
        Ok(heads)
    }

    /// Divides the parts of an upload into those that a completion names and the others.
    ///
    /// # Errors
    /// [`EngineError::InvalidPart`] if a named part is missing or has another MD5, or if no part is named.
    fn divide_parts(&self, upload: &[u8], named: &[(u16, [u8; 16])]) -> Result<DividedParts, EngineError> {
        let mut wanted = named.iter().peekable();
        let (mut used, mut unused) = (Vec::with_capacity(named.len()), Vec::new());
        for item in self.txn.scan(self.slice.tables.parts, upload)? {
            let (key, stored) = item?;
            let Some((_, number)) = keys::decode_part(key).filter(|(of, _)| *of == upload) else { break };
            // Only the head is decoded: all other commands of the slice wait while up to ten thousand parts are read.
            let head = PartHead::decode(stored.version, stored.body, number)?;
            match wanted.next_if(|(wanted, _)| *wanted == number) {
                Some((_, md5)) if *md5 == head.info.md5 => used.push(head),
                Some(_) => return Err(EngineError::InvalidPart(number)),
                None => {
                    let record = PartRecord::decode(stored.version, stored.body, number)?;
                    unused.push(FoundPart { key: key.to_vec(), record });
                }
            }
        }
        match wanted.next() {
            Some((number, _)) => Err(EngineError::InvalidPart(*number)),
            None if used.is_empty() => Err(EngineError::InvalidPart(0)),
            None => Ok(DividedParts { used, unused }),
        }
    }

    /// Removes the parts of a completed upload from the usage of unfinished uploads. They count for the new version now.
    pub(super) fn count_as_completed(&mut self, target: &TargetKey, upload: &[u8], parts: &[PartHead]) {
        if self.slice.faults.has(Flaw::CountAssembledParts) {
            return;
        }
        let bytes = parts.iter().map(|part| part.info.size).sum();
        self.count(&target.bucket, &Usage::of_part(bytes).negated());
        let Some(changes) = &mut self.changes else { return };
        for PartHead { info, .. } in parts {
            let (table, key) = (FollowedTable::Parts, keys::with_part(upload, info.number));
            let counts = Usage::of_part(info.size).negated();
            changes.push(Change::Counts { table, key, bucket: target.bucket.id, counts });
        }
    }
}

/// The parts of an upload, divided by a completion. Both lists are in order of the parts' numbers.
struct DividedParts {
    used: Vec<PartHead>,
    unused: Vec<FoundPart>,
}

fn outcome_of(record: &ObjectRecord) -> CompleteOutcome {
    let ObjectInfo { version, is_null, last_modified, etag, encrypted, .. } = record.info;
    CompleteOutcome { put: PutOutcome { version, is_null, last_modified, replaced: false }, etag, encrypted }
}

pub(super) fn random_payload_id() -> Result<PayloadId, EngineError> {
    let mut id = [0u8; 16];
    getrandom::fill(&mut id)
        .map_err(|error| EngineError::Io(format!("random numbers are not available: {error}")))?;
    Ok(PayloadId(id))
}

/// Joins parts with consecutive numbers and the same size into runs.
fn runs(parts: impl Iterator<Item = (u16, u64)>) -> Vec<PartRun> {
    let mut runs: Vec<PartRun> = Vec::new();
    for (number, size) in parts {
        match runs.last_mut() {
            Some(run) if run.size == size && run.first + run.count == number => run.count += 1,
            _ => runs.push(PartRun { first: number, count: 1, size }),
        }
    }
    runs
}

/// Returns the size of an object of parts of these sizes.
///
/// # Errors
/// [`EngineError::PayloadTooLarge`].
pub(super) fn total(mut sizes: impl Iterator<Item = u64>) -> Result<u64, EngineError> {
    let size = sizes.try_fold(0u64, u64::checked_add).filter(|size| *size <= OBJECT_BYTES_MAX);
    size.ok_or(EngineError::PayloadTooLarge)
}

#[cfg(test)]
mod tests {
    use super::{runs, total};
    use crate::error::EngineError;
    use crate::limits::{OBJECT_BYTES_MAX, PART_NUMBER_MAX, PAYLOAD_BYTES_MAX};
    use crate::types::object::PartRun;

    /// AWS has had objects of 10 000 parts of 5 GiB since December 2025; before, the limit was 5 TiB.
    #[test]
    fn the_largest_object_has_as_many_parts_of_the_largest_size_as_there_are() {
        let largest = || (1..=PART_NUMBER_MAX).map(|_| PAYLOAD_BYTES_MAX);
        assert_eq!(total(largest()).ok(), Some(53_687_091_200_000));
        assert_eq!(OBJECT_BYTES_MAX, 10_000 * (5 << 30));
        assert!(matches!(total(largest().chain([1])), Err(EngineError::PayloadTooLarge)));
        assert!(matches!(total([u64::MAX, 2].into_iter()), Err(EngineError::PayloadTooLarge)));
        let made = runs((1..=PART_NUMBER_MAX).map(|number| (number, PAYLOAD_BYTES_MAX)));
        assert_eq!(made, [PartRun { first: 1, count: PART_NUMBER_MAX, size: PAYLOAD_BYTES_MAX }]);
    }

    #[test]
    fn consecutive_parts_of_one_size_make_one_run() {
        let made = runs([(1, 5), (2, 5), (3, 5), (5, 5), (6, 7), (7, 5)].into_iter());
        let run = |first, count, size| PartRun { first, count, size };
        assert_eq!(made, [run(1, 3, 5), run(5, 1, 5), run(6, 1, 7), run(7, 1, 5)]);
    }
}
