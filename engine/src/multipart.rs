//! Multipart uploads on one executor: the path of each request.

use crate::bucket::Bucket;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::object::CompleteOutcome;
use crate::reader::OpenObject;
use crate::upload::{
    CompleteUpload, ListUploads, NewUpload, PartInfo, PartsPage, PutPart, UploadInfo, UploadsPage,
};
use crate::writer::StagedPayload;
use cairn_model::{ObjectKey, UploadId};
use std::rc::Rc;
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
        let _ = (bucket, key, upload);
        Err(EngineError::ShuttingDown)
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
        let _ = (bucket, key, id);
        Err(EngineError::ShuttingDown)
    }

    /// Adds a part to an upload, in the place of one with the same number. Durable when it returns.
    ///
    /// # Errors
    /// [`EngineError::NoSuchUpload`], bucket states, [`EngineError::StorageFull`] and failures of the device.
    pub async fn put_part(&self, part: PutPart) -> Result<PartInfo, EngineError> {
        let _ = part;
        Err(EngineError::ShuttingDown)
    }

    /// Makes an object of parts of an upload. The parts stay where they are; those that are not named are dropped. Asked for
    /// again with the same parts, while the object is there, it answers the same. Durable when it returns.
    ///
    /// # Errors
    /// [`EngineError::NoSuchUpload`], [`EngineError::InvalidPart`], [`EngineError::PayloadTooLarge`], and as
    /// [`Engine::put_object`].
    pub async fn complete_upload(&self, complete: CompleteUpload) -> Result<CompleteOutcome, EngineError> {
        let _ = complete;
        Err(EngineError::ShuttingDown)
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
        let _ = (bucket, key, id);
        Err(EngineError::ShuttingDown)
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
        let _ = (bucket, key, id, after, max);
        Err(EngineError::ShuttingDown)
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
        let _ = (bucket, list);
        Err(EngineError::ShuttingDown)
    }

    /// Copies the payload of an object that was opened whole, checked block by block, to one for another key. The MD5 of
    /// an object that was put in one piece is not computed again. Other requests go on meanwhile.
    ///
    /// # Errors
    /// [`EngineError::PayloadTooLarge`], [`EngineError::StorageFull`], [`EngineError::Corrupt`] and failures of the device.
    pub async fn copy_payload(
        self: &Rc<Self>,
        source: OpenObject,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
    ) -> Result<StagedPayload, EngineError> {
        let _ = (source, bucket, key);
        Err(EngineError::ShuttingDown)
    }
}
