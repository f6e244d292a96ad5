//! Multipart uploads on one executor: the path of each request.

use crate::bucket::Bucket;
use crate::codec;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::keys;
use crate::list;
use crate::object::{CompleteOutcome, ObjectInfo};
use crate::part_record::PartHead;
use crate::queue::{AbortUploadJob, CreateUploadJob, Job};
use crate::record::ObjectRecord;
use crate::upload::{
    CompleteUpload, ListUploads, NewUpload, PartInfo, PartsPage, PutPart, UploadInfo, UploadsPage,
};
use crate::upload_record;
use cairn_lmdb::ReadTxn;
use cairn_model::{ObjectKey, UploadId};
use std::sync::Arc;

impl Engine {
    /// Begins an upload. Durable when it returns.
    ///
    /// # Errors
    /// Bucket states, [`EngineError::StorageFull`] and failures of the device.
    pub async fn create_upload(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        upload: NewUpload,
    ) -> Result<UploadInfo, EngineError> {
        self.note_request();
        let job = CreateUploadJob { bucket: Arc::clone(bucket), key: key.clone(), upload };
        self.commit(bucket, key, |reply| Job::CreateUpload(Box::new(job), reply)).await
    }

    /// What an upload was begun with.
    ///
    /// # Errors
    /// [`EngineError::NoSuchUpload`].
    pub fn upload(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        id: UploadId,
    ) -> Result<UploadInfo, EngineError> {
        self.in_upload(bucket, key, id, |_, _, upload| Ok(upload))
    }

    /// The version that was made of an upload's parts, while it is there.
    ///
    /// # Errors
    /// [`EngineError::NoSuchUpload`] for one that was not completed, or whose version is gone; [`EngineError::Corrupt`] when a
    /// record fails its check.
    pub fn completed_upload(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        id: UploadId,
    ) -> Result<ObjectInfo, EngineError> {
        let slice = self.store().slice_of(bucket, key)?;
        let versions = keys::versions_of(bucket.id, key.as_bytes()).ok_or(EngineError::NoSuchUpload)?;
        let found = || {
            let corrupt = || EngineError::Corrupt("the record of a completed upload".to_owned());
            let (txn, tables) = (slice.environment.read()?, &slice.tables);
            let entry = txn.get(tables.assembled, &keys::with_upload(&versions, id))?;
            let sequence = codec::u64_of(entry.ok_or(EngineError::NoSuchUpload)?.body);
            let place = keys::with_sequence(&versions, sequence.ok_or_else(corrupt)?);
            let record = txn.get(tables.objects, &place)?.ok_or_else(corrupt)?;
            Ok(ObjectRecord::decode(record.version, record.body)?.info)
        };
        self.reported(found(), || format!("{}/{key}, upload {id}", bucket.name))
    }

    /// Adds a part to an upload, in the place of one with the same number. Durable when it returns.
    ///
    /// # Errors
    /// [`EngineError::NoSuchUpload`], bucket states, [`EngineError::StorageFull`] and failures of the device.
    pub async fn put_part(&self, part: PutPart) -> Result<PartInfo, EngineError> {
        let (bucket, key) = (Arc::clone(&part.bucket), part.key.clone());
        self.commit(&bucket, &key, |reply| Job::PutPart(Box::new(part), reply)).await
    }

    /// Makes an object of parts of an upload. The parts stay where they are; those that are not named are dropped. Asked for
    /// again with the same parts, while the object is there, it answers the same. Durable when it returns.
    ///
    /// # Errors
    /// [`EngineError::NoSuchUpload`], [`EngineError::InvalidPart`], [`EngineError::PayloadTooLarge`], and as
    /// [`Engine::put_object`].
    pub async fn complete_upload(&self, complete: CompleteUpload) -> Result<CompleteOutcome, EngineError> {
        self.note_request();
        let (bucket, key) = (Arc::clone(&complete.bucket), complete.key.clone());
        self.commit(&bucket, &key, |reply| Job::CompleteUpload(Box::new(complete), reply)).await
    }

    /// Drops an upload with its parts. Durable when it returns.
    ///
    /// # Errors
    /// [`EngineError::NoSuchUpload`] and failures of the device.
    pub async fn abort_upload(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        id: UploadId,
    ) -> Result<(), EngineError> {
        self.note_request();
        let job = AbortUploadJob { bucket: Arc::clone(bucket), key: key.clone(), upload: id };
        self.commit(bucket, key, |reply| Job::AbortUpload(Box::new(job), reply)).await
    }

    /// Parts of an upload with numbers above `after`, `max` of them at most.
    ///
    /// # Errors
    /// [`EngineError::NoSuchUpload`].
    pub fn list_parts(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        id: UploadId,
        after: u16,
        max: usize,
    ) -> Result<PartsPage, EngineError> {
        let table = self.store().slice_of(bucket, key)?.tables.parts;
        self.in_upload(bucket, key, id, |txn, encoded, upload| {
            let mut page = PartsPage { upload, parts: Vec::new(), is_truncated: false };
            let Some(first) = after.checked_add(1) else { return Ok(page) };
            for item in txn.scan(table, &keys::with_part(encoded, first))? {
                let (key, record) = item?;
                let Some((_, number)) = keys::decode_part(key).filter(|(upload, _)| *upload == encoded)
                else {
                    break;
                };
                if page.parts.len() == max {
                    page.is_truncated = true;
                    break;
                }
                page.parts.push(PartHead::decode(record.version, record.body, number)?.info);
            }
            Ok(page)
        })
    }

    /// What `look` makes of an upload, given its key, in one snapshot.
    fn in_upload<T>(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        id: UploadId,
        look: impl FnOnce(&ReadTxn<'_>, &[u8], UploadInfo) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let slice = self.store().slice_of(bucket, key)?;
        let versions = keys::versions_of(bucket.id, key.as_bytes()).ok_or(EngineError::NoSuchUpload)?;
        let encoded = keys::with_upload(&versions, id);
        let found = || {
            let txn = slice.environment.read()?;
            let record = txn.get(slice.tables.uploads, &encoded)?.ok_or(EngineError::NoSuchUpload)?;
            let upload = upload_record::decode(record.version, record.body, id)?;
            look(&txn, &encoded, upload)
        };
        self.reported(found(), || format!("{}/{key}, upload {id}", bucket.name))
    }

    /// One page of a bucket's unfinished uploads.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a record fails its check.
    pub fn list_uploads(
        &self,
        bucket: &Arc<Bucket>,
        list: &ListUploads<'_>,
    ) -> Result<UploadsPage, EngineError> {
        let page = list::list_uploads(&self.store().slices, bucket.id, list);
        self.reported(page, || bucket.name.to_string())
    }
}
