//! Multipart uploads on one executor.

use crate::api::engine::Engine;
use crate::error::EngineError;
use crate::format::codec;
use crate::format::keys;
use crate::format::object_record::{Content, ObjectRecord};
use crate::format::part_record::PartHead;
use crate::format::upload_record;
use crate::list;
use crate::slice::command::{AbortUpload, Command, CompleteUpload, CreateUpload, PutPart};
use crate::slice::lookup::{FoundVersion, find_version};
use crate::types::bucket::Bucket;
use crate::types::event::Origin;
use crate::types::object::{CompleteOutcome, ObjectInfo};
use crate::types::upload::{
    ListUploads, NewUpload, ObjectParts, PartInfo, PartsPage, UploadInfo, UploadsPage,
};
use cairn_lmdb::ReadTxn;
use cairn_model::{ObjectKey, UploadId, VersionName};
use std::sync::Arc;

impl Engine {
    /// Creates an upload. Durable when it returns.
    ///
    /// # Errors
    /// Bucket states, [`EngineError::StorageFull`] and failures of the device.
    pub async fn create_upload(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        upload: NewUpload,
    ) -> Result<UploadInfo, EngineError> {
        self.context.begin_request();
        let create = CreateUpload { bucket: Arc::clone(bucket), key: key.clone(), upload };
        self.commit(bucket, key, |reply| Command::CreateUpload(Box::new(create), reply)).await
    }

    /// Returns the metadata of an unfinished upload.
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

    /// Returns the version that was made from an upload's parts, as long as it exists.
    ///
    /// # Errors
    /// [`EngineError::NoSuchUpload`] when the upload was not completed or its version was removed; [`EngineError::Corrupt`]
    /// when a record fails its check.
    pub fn completed_upload(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        id: UploadId,
    ) -> Result<ObjectInfo, EngineError> {
        let slice = self.store().slice_of(bucket, key)?;
        let versions = keys::versions_of(bucket.id, key.as_bytes()).ok_or(EngineError::NoSuchUpload)?;
        let find = || {
            let corrupt = || EngineError::Corrupt("the record of a completed upload".to_owned());
            let (txn, tables) = (slice.environment.read()?, &slice.tables);
            let entry = txn.get(tables.assembled, &keys::with_upload(&versions, id))?;
            let sequence = codec::decode_u64(entry.ok_or(EngineError::NoSuchUpload)?.body);
            let version = keys::with_sequence(&versions, sequence.ok_or_else(corrupt)?);
            let record = txn.get(tables.objects, &version)?.ok_or_else(corrupt)?;
            Ok(ObjectRecord::decode(record.version, record.body)?.info)
        };
        self.context.report_damage(find(), || format!("{}/{key}, upload {id}", bucket.name))
    }

    /// Adds a part to an upload; replaces an earlier part with the same number. Durable when it returns.
    ///
    /// # Errors
    /// [`EngineError::NoSuchUpload`], bucket states, [`EngineError::StorageFull`] and failures of the device.
    pub async fn put_part(&self, part: PutPart) -> Result<PartInfo, EngineError> {
        let (bucket, key) = (Arc::clone(&part.bucket), part.key.clone());
        self.commit(&bucket, &key, |reply| Command::PutPart(Box::new(part), reply)).await
    }

    /// Completes an upload: makes an object from its parts. Durable when it returns.
    ///
    /// The bytes of the parts are not copied. Parts that are not named are removed. The call can be repeated with the same
    /// parts: as long as the object exists, the outcome is the same.
    ///
    /// # Errors
    /// [`EngineError::NoSuchUpload`], [`EngineError::InvalidPart`], [`EngineError::PayloadTooLarge`], and as
    /// [`Engine::put_object`].
    pub async fn complete_upload(&self, complete: CompleteUpload) -> Result<CompleteOutcome, EngineError> {
        self.context.begin_request();
        let (bucket, key) = (Arc::clone(&complete.bucket), complete.key.clone());
        self.commit(&bucket, &key, |reply| Command::CompleteUpload(Box::new(complete), reply)).await
    }

    /// Aborts an upload and removes its parts. Durable when it returns.
    ///
    /// # Errors
    /// [`EngineError::NoSuchUpload`] and failures of the device.
    pub async fn abort_upload(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        id: UploadId,
        origin: Origin,
    ) -> Result<(), EngineError> {
        self.context.begin_request();
        let abort = AbortUpload { bucket: Arc::clone(bucket), key: key.clone(), upload: id, origin };
        self.commit(bucket, key, |reply| Command::AbortUpload(Box::new(abort), reply)).await
    }

    /// Returns the parts of an upload with numbers above `after`, at most `max`.
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

    /// Returns the metadata of a version, by default the current one, and a page of the parts that it was made of: those with
    /// numbers above `after`, at most `max`. A version that was put in one piece has none.
    ///
    /// # Errors
    /// As [`Engine::head_object`].
    pub fn object_parts(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: Option<VersionName>,
        after: u16,
        max: usize,
    ) -> Result<ObjectParts, EngineError> {
        let slice = self.store().slice_of(bucket, key)?;
        let find = || {
            let (txn, tables) = (slice.environment.read()?, &slice.tables);
            let FoundVersion { versions, record, .. } = find_version(&txn, tables, bucket, key, version)?;
            let mut found = ObjectParts { info: record.info, parts: Vec::new(), is_truncated: false };
            let (Content::Parts { upload, .. }, Some(first)) = (record.content, after.checked_add(1)) else {
                return Ok(found);
            };
            let encoded = keys::with_upload(&versions, upload);
            for item in txn.scan(tables.parts, &keys::with_part(&encoded, first))? {
                let (key, record) = item?;
                let Some((_, number)) = keys::decode_part(key).filter(|(upload, _)| *upload == encoded)
                else {
                    break;
                };
                if found.parts.len() == max {
                    found.is_truncated = true;
                    break;
                }
                found.parts.push(PartHead::decode(record.version, record.body, number)?.info);
            }
            Ok(found)
        };
        self.context.report_damage(find(), || format!("{}/{key}", bucket.name))
    }

    /// Calls `read` with an unfinished upload and its encoded key, in one snapshot.
    fn in_upload<T>(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        id: UploadId,
        read: impl FnOnce(&ReadTxn<'_>, &[u8], UploadInfo) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let slice = self.store().slice_of(bucket, key)?;
        let versions = keys::versions_of(bucket.id, key.as_bytes()).ok_or(EngineError::NoSuchUpload)?;
        let encoded = keys::with_upload(&versions, id);
        let find = || {
            let txn = slice.environment.read()?;
            let record = txn.get(slice.tables.uploads, &encoded)?.ok_or(EngineError::NoSuchUpload)?;
            let upload = upload_record::decode(record.version, record.body, id)?;
            read(&txn, &encoded, upload)
        };
        self.context.report_damage(find(), || format!("{}/{key}, upload {id}", bucket.name))
    }

    /// Returns one page of a bucket's unfinished uploads.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a record fails its check.
    pub fn list_uploads(
        &self,
        bucket: &Arc<Bucket>,
        list: &ListUploads<'_>,
    ) -> Result<UploadsPage, EngineError> {
        let page = list::list_uploads(&self.store().slices, bucket.id, list);
        self.context.report_damage(page, || bucket.name.to_string())
    }
}
