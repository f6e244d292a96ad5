//! Multipart uploads: begin, parts, completion, removal (AWS: "Uploading and copying objects using multipart upload").
//!
//! Parts are written once. A completion writes one record of an object that names the upload, moves the upload's own
//! record to `assembled`, and drops the parts that it does not name; the others stay as they are.

use super::versions::{FoundPart, NewVersion, owned_by, visible};
use super::{Batch, Counted, Failure, Place};
use crate::bucket::Usage;
use crate::changes::{Change, FollowedTable};
use crate::codec::{self, PayloadId};
use crate::error::EngineError;
use crate::keys;
use crate::limits::OBJECT_BYTES_MAX;
use crate::object::{Attributes, ChecksumKind, CompleteOutcome, ObjectInfo, PartRun, PutOutcome};
use crate::part_record::{PartHead, PartRecord};
use crate::queue::{AbortUploadJob, CreateUploadJob};
use crate::record::{Content, ObjectRecord};
#[cfg(feature = "simulation")]
use crate::simulation::Flaw;
use crate::upload::{CompleteUpload, NewUpload, PartInfo, PutPart, UploadInfo, composite_etag};
use crate::upload_record;
use crate::writer::StagedParts;
use cairn_model::{UploadId, VersionId};

/// What an unfinished upload counts for.
const UPLOAD_COUNTS: Usage = Usage {
    objects: 0,
    bytes: 0,
    versions: 0,
    version_bytes: 0,
    delete_markers: 0,
    uploads: 1,
    part_bytes: 0,
};

/// What a part of an unfinished upload counts for, and the space that it owns.
fn counted(part: &PartRecord) -> Counted {
    Counted { counts: part_counts(part.info.size), extents: part.payload.owned().collect() }
}

fn part_counts(size: u64) -> Usage {
    Usage { part_bytes: size, ..Usage::default() }
}

impl Batch<'_> {
    pub(super) fn create_upload(&mut self, job: CreateUploadJob) -> Result<UploadInfo, Failure> {
        let place = self.place(&job.bucket, &job.key)?;
        let id = UploadId(self.slice.sequence_after(self.sequence));
        let initiated = self.clock.now();
        let mut body = Vec::new();
        upload_record::encode(&mut body, initiated, &job.upload).map_err(EngineError::from)?;
        self.sequence = id.0;
        let key = keys::with_upload(&place.versions, id);
        let counted = Counted { counts: UPLOAD_COUNTS, ..Counted::NOTHING };
        self.insert_record(&place.bucket, FollowedTable::Uploads, &key, (&body, &[]), counted)?;
        Ok(UploadInfo { id, initiated, upload: job.upload })
    }

    fn upload_at(&self, key: &[u8], id: UploadId) -> Result<Option<UploadInfo>, EngineError> {
        let Some(record) = self.txn.get(self.tables.uploads, key)? else { return Ok(None) };
        Ok(Some(upload_record::decode(record.version, record.body, id)?))
    }

    pub(super) fn put_part(&mut self, part: PutPart) -> Result<PartInfo, Failure> {
        let place = self.place(&part.bucket, &part.key)?;
        let upload = keys::with_upload(&place.versions, part.upload);
        if self.txn.get(self.tables.uploads, &upload).map_err(EngineError::from)?.is_none() {
            return Err(EngineError::NoSuchUpload.into());
        }
        let key = keys::with_part(&upload, part.number);
        let old = match self.txn.get(self.tables.parts, &key).map_err(EngineError::from)? {
            Some(old) => {
                let old = PartRecord::decode(old.version, old.body, part.number);
                Some(FoundPart { key: key.clone(), record: old.map_err(EngineError::from)? })
            }
            None => None,
        };
        let md5 = part.payload.md5();
        let StagedParts { size, payload, inline, reservation, .. } = part.payload.into_parts();
        let last_modified = self.clock.now();
        let info = PartInfo { number: part.number, size, md5, last_modified, checksum: part.checksum };
        let record = PartRecord { info, payload };
        let mut body = Vec::new();
        record.encode(&mut body).map_err(EngineError::from)?;
        let taken: Vec<_> = record.payload.owned().collect();
        self.move_space(&taken, &owned_by(old.as_slice()), reservation)?;
        self.remove_parts(&place, old.as_slice())?;
        self.insert_record(&place.bucket, FollowedTable::Parts, &key, (&body, &inline), counted(&record))?;
        Ok(record.info)
    }

    /// Removes parts of an unfinished upload, whose space has been given. Nobody can be reading them.
    fn remove_parts(&mut self, place: &Place, parts: &[FoundPart]) -> Result<(), Failure> {
        for part in parts {
            self.remove_record(&place.bucket, FollowedTable::Parts, &part.key, counted(&part.record))?;
            let volume = part.record.payload.volume();
            self.removed.extend(volume.map(|volume| (volume.id, volume.owned().collect())));
        }
        self.parts_touched += parts.len();
        Ok(())
    }

    pub(super) fn abort_upload(&mut self, job: &AbortUploadJob) -> Result<(), Failure> {
        let place = self.place(&job.bucket, &job.key)?;
        let upload = keys::with_upload(&place.versions, job.upload);
        if self.txn.get(self.tables.uploads, &upload).map_err(EngineError::from)?.is_none() {
            return Err(EngineError::NoSuchUpload.into());
        }
        let parts = self.parts_of(&upload)?;
        self.move_space(&[], &owned_by(&parts), None)?;
        self.remove_upload(&place, &upload)?;
        self.remove_parts(&place, &parts)
    }

    fn remove_upload(&mut self, place: &Place, key: &[u8]) -> Result<(), Failure> {
        let counted = Counted { counts: UPLOAD_COUNTS, ..Counted::NOTHING };
        self.remove_record(&place.bucket, FollowedTable::Uploads, key, counted)
    }

    pub(super) fn complete_upload(&mut self, job: CompleteUpload) -> Result<CompleteOutcome, Failure> {
        let place = self.place(&job.bucket, &job.key)?;
        let key = keys::with_upload(&place.versions, job.upload);
        let etag = composite_etag(job.parts.iter().map(|(_, md5)| *md5));
        let Some(upload) = self.upload_at(&key, job.upload)? else {
            let before = self.completed_before(&place, &key)?.filter(|record| record.info.etag == etag);
            return Ok(outcome_of(&before.ok_or(EngineError::NoSuchUpload)?));
        };
        let newest = self.newest(&place)?;
        super::versions::check_condition(
            &job.condition,
            visible(newest.as_ref().map(|found| &found.record)),
        )?;
        // Also when it is refused in the end: refusals must not add up to a batch without bounds.
        self.parts_touched += job.parts.len();
        let (used, unused) = self.divide(&key, &job.parts)?;
        #[cfg(feature = "simulation")]
        let unused = if self.slice.files.is_flawed(Flaw::DropNamedPart) {
            self.parts_of(&key)?.into_iter().take(1).collect()
        } else {
            unused
        };
        let parts = runs(used.iter().map(|part| (part.info.number, part.info.size)));
        let size = used.iter().fold(0u64, |size, part| size.saturating_add(part.info.size));
        if size > OBJECT_BYTES_MAX {
            return Err(EngineError::PayloadTooLarge.into());
        }
        let NewUpload { attributes, lock, checksum } = upload.upload;
        let checksum_kind = checksum.map_or(ChecksumKind::FullObject, |checksum| checksum.kind);
        let info = ObjectInfo {
            size,
            etag,
            encrypted: used.iter().all(|part| part.is_sealed),
            attributes: Attributes { checksums: job.checksums, checksum_kind, ..attributes },
            lock,
            parts,
            ..self.blank_info(&place)
        };
        let record = ObjectRecord { info, content: Content::Parts { id: new_id()?, upload: job.upload } };
        let (taken, given) = (Vec::new(), owned_by(&unused));
        let new = NewVersion { record, inline: &[], taken, reservation: None, given };
        let put = self.write_version(&place, newest.as_ref(), new)?;
        self.remove_upload(&place, &key)?;
        self.remove_parts(&place, &unused)?;
        self.hand_over(&place, &key, &used);
        let version = put.version.0.to_le_bytes();
        let (table, nothing) = (FollowedTable::Assembled, Counted::NOTHING);
        self.insert_record(&place.bucket, table, &key, (&version, &[]), nothing)?;
        Ok(CompleteOutcome { put, etag })
    }

    /// The version that was made of an upload's parts, while it is there.
    fn completed_before(&self, place: &Place, key: &[u8]) -> Result<Option<ObjectRecord>, EngineError> {
        let Some(entry) = self.txn.get(self.tables.assembled, key)? else { return Ok(None) };
        let corrupt = || EngineError::Corrupt("the record of a completed upload".to_owned());
        let version = codec::u64_of(entry.body).ok_or_else(corrupt)?;
        let found = self.version_with_id(place, VersionId(version))?.ok_or_else(corrupt)?;
        Ok(Some(found.record))
    }

    /// The parts that a completion names, and the others. Both are in order of their numbers.
    fn divide(
        &self,
        upload: &[u8],
        named: &[(u16, [u8; 16])],
    ) -> Result<(Vec<PartHead>, Vec<FoundPart>), EngineError> {
        let mut wanted = named.iter().peekable();
        let (mut used, mut unused) = (Vec::with_capacity(named.len()), Vec::new());
        for item in self.txn.scan(self.tables.parts, upload)? {
            let (key, stored) = item?;
            let Some((_, number)) = keys::decode_part(key).filter(|(of, _)| *of == upload) else { break };
            // Ten thousand of them are looked at while all other changes of the slice wait.
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
            None => Ok((used, unused)),
        }
    }

    /// From now on the parts count for the version that they make.
    fn hand_over(&mut self, place: &Place, upload: &[u8], parts: &[PartHead]) {
        #[cfg(feature = "simulation")]
        if self.slice.files.is_flawed(Flaw::CountAssembledParts) {
            return;
        }
        let bytes = parts.iter().map(|part| part.info.size).sum();
        self.count(&place.bucket, &part_counts(bytes).negated());
        let Some(changes) = &mut self.changes else { return };
        for PartHead { info, .. } in parts {
            let (table, key) = (FollowedTable::Parts, keys::with_part(upload, info.number));
            let counts = part_counts(info.size).negated();
            changes.push(Change::Counts { table, key, bucket: place.bucket.id, counts });
        }
    }
}

fn outcome_of(record: &ObjectRecord) -> CompleteOutcome {
    let ObjectInfo { version, is_null, last_modified, etag, .. } = record.info;
    CompleteOutcome { put: PutOutcome { version, is_null, last_modified, replaced: false }, etag }
}

fn new_id() -> Result<PayloadId, EngineError> {
    let mut id = [0u8; 16];
    getrandom::fill(&mut id).map_err(|error| EngineError::Io(format!("no random numbers: {error}")))?;
    Ok(PayloadId(id))
}

/// Joins parts that follow each other and have one size.
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

#[cfg(test)]
mod tests {
    use super::runs;
    use crate::object::PartRun;

    #[test]
    fn parts_of_one_size_without_gaps_make_one_run() {
        let made = runs([(1, 5), (2, 5), (3, 5), (5, 5), (6, 7), (7, 5)].into_iter());
        let run = |first, count, size| PartRun { first, count, size };
        assert_eq!(made, [run(1, 3, 5), run(5, 1, 5), run(6, 1, 7), run(7, 1, 5)]);
    }
}
