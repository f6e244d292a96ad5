//! `POST` and `PUT /api/v1/buckets/{bucket}/imported-uploads/{key}`: the parts of an imported version.
//!
//! They are the engine's multipart uploads. Parts of the sizes that they had at the source give the same entity tag.

use std::rc::Rc;
use std::sync::Arc;

use cairn_api::{ImportedPart, ImportedUpload};
use cairn_engine::limits::PART_NUMBER_MAX;
use cairn_engine::{NewUpload, ObjectLock, PutPart};
use cairn_model::UploadId;
use http::StatusCode;

use super::run::Import;
use super::version::UPLOAD_ID;
use super::{checksum, headers};
use crate::call::Call;
use crate::error::AdminError;
use crate::handlers::objects::{declared_size, receive_and_check, write_error};
use crate::reply::Reply;
use crate::request::body::body_error;
use crate::request::query::given;

const PART_NUMBER: &str = "part_number";

/// Begins an upload.
pub(crate) async fn begin_upload(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let Import { bucket, key, .. } = Import::of(&mut call)?;
    let (attributes, lock) = headers::of_version(call.head)?;
    if lock != ObjectLock::default() && !bucket.settings().object_lock {
        return Err(AdminError::ObjectLockNotEnabled);
    }
    let new = NewUpload { attributes, lock, checksum: checksum::of_upload(call.head)? };
    let begun = call.engine()?.create_upload(&bucket, &key, new).await.map_err(write_error)?;
    Reply::json(StatusCode::CREATED, &ImportedUpload { upload_id: begun.id.to_string().into() })
}

/// Writes a part. It replaces an earlier one with the same number.
pub(crate) async fn put_part(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let import = Import::of(&mut call)?;
    let (run, key) = (Arc::clone(&import.run), import.key.clone());
    write_part(call, import).await.inspect_err(|error| run.add_failure(key.as_str(), error))
}

async fn write_part(mut call: Call<'_, '_>, import: Import) -> Result<Reply, AdminError> {
    let upload = UploadId::parse(import.parameters.required(UPLOAD_ID)?).ok_or(AdminError::UploadNotFound)?;
    let number = import.parameters.number(PART_NUMBER, 1..=PART_NUMBER_MAX.into())?;
    let number = given(PART_NUMBER, number)?;
    let number = u16::try_from(number).map_err(|_| AdminError::Internal)?;
    let size = declared_size(call.head)?;
    let engine = Rc::clone(call.engine()?);
    // Before the body is read: the part of an upload that does not exist would be refused.
    let begun = engine.upload(&import.bucket, &import.key, upload)?.upload;
    // Only tests have no connection.
    let body = call.body.take().ok_or(AdminError::Internal)?;
    let (object, algorithm) = ((&import.bucket, &import.key), begun.checksum.map(|begun| begun.algorithm));
    let received =
        receive_and_check(&engine, body, object, (size, true, algorithm), |error| body_error(&error));
    let (payload, checksum) = received.await?;
    call.authenticate_again()?;
    let Import { run, bucket, key, .. } = import;
    let put = engine.put_part(PutPart { bucket, key, upload, number, payload, checksum }).await;
    let part = put.map_err(write_error)?;
    run.add_bytes(size);
    Reply::json(StatusCode::OK, &ImportedPart { etag: part.etag().to_string().into() })
}
