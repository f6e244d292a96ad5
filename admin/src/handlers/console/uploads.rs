//! `/uploads`: files in parts, so that an upload from a browser can be continued.
//!
//! They are the engine's multipart uploads. The size of the file decides how it is divided, so that a browser that has
//! forgotten everything but the id can go on.

use std::rc::Rc;
use std::sync::Arc;

use cairn_engine::limits::OBJECT_BYTES_MAX;
use cairn_engine::{
    Attributes, Bucket, Cause, CompleteUpload, EngineError, NewUpload, PartInfo, PutPart, WriteCondition,
};
use cairn_http1::is_field_value;
use cairn_identity::policy::{Action, Permission};
use cairn_model::{ObjectKey, UploadId, u64_of, usize_of};
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::upload_id::{BrowserUpload, PARTS_MAX};
use crate::call::Call;
use crate::error::AdminError;
use crate::handlers::objects::{completed, declared_size, receive, write_error};
use crate::limits::STORED_HEADER_BYTES_MAX;
use crate::reply::Reply;
use crate::request::names::{bucket_name, object_key};

/// An upload whose bucket exists.
struct Found {
    upload: BrowserUpload,
    bucket: Arc<Bucket>,
    key: ObjectKey,
    id: UploadId,
}

impl Call<'_, '_> {
    /// Finds the upload of the path, if the caller may do this to its object.
    fn browser_upload(&self, action: Action) -> Result<(Found, Permission), AdminError> {
        let upload = BrowserUpload::decode(&self.segment("id")?)?;
        let (name, key) = (bucket_name(&upload.bucket)?, object_key(&upload.key)?);
        let permission = self.authorize_object(action, &name, &key)?;
        let bucket = self.store()?.bucket(&name).ok_or(AdminError::UploadNotFound)?;
        let id = upload.upload_id()?;
        Ok((Found { upload, bucket, key, id }, permission))
    }
}

impl Found {
    /// Names the upload in the audit trail.
    fn resource(&self) -> String {
        format!("{}/{}", self.bucket.name, self.key)
    }

    /// Returns all parts that were uploaded.
    fn parts(&self, call: &Call<'_, '_>) -> Result<Vec<PartInfo>, AdminError> {
        let page = call.engine()?.list_parts(&self.bucket, &self.key, self.id, 0, usize_of(PARTS_MAX))?;
        Ok(page.parts)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateRequest {
    bucket: String,
    key: String,
    size: u64,
    content_type: Option<String>,
    if_absent: Option<bool>,
}

#[derive(Serialize)]
struct Created {
    id: String,
    part_bytes: u64,
}

/// `POST /uploads`: begins an upload.
pub(crate) async fn create(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let request: CreateRequest = call.json().await?;
    let (size, if_absent) = (request.size, request.if_absent.unwrap_or_default());
    if size > OBJECT_BYTES_MAX {
        return Err(EngineError::PayloadTooLarge.into());
    }
    let (name, key) = (bucket_name(&request.bucket)?, object_key(&request.key)?);
    // The completion asks again, and keeps an object if that is all that is allowed.
    let _ = call.authorize_object(Action::PutObject, &name, &key)?;
    let bucket = call.store()?.bucket(&name).ok_or(AdminError::BucketNotFound)?;
    let mut attributes = Attributes::default();
    if let Some(content_type) = request.content_type.filter(|text| !text.is_empty()) {
        if content_type.len() > STORED_HEADER_BYTES_MAX || !is_field_value(content_type.as_bytes()) {
            return Err(AdminError::invalid("content_type is not a valid value of a header"));
        }
        attributes.headers.push(("content-type".to_owned(), content_type.into_bytes()));
    }
    let engine = Rc::clone(call.engine()?);
    if if_absent && engine.head_object(&bucket, &key, None).is_ok() {
        // The completion decides. This check only avoids the transfer of a file that would be refused.
        return Err(AdminError::PreconditionFailed);
    }
    engine.check_quota(&bucket, &key, bucket.settings().quota, size).map_err(write_error)?;
    let new = NewUpload { attributes, ..NewUpload::default() };
    let begun = engine.create_upload(&bucket, &key, new).await.map_err(write_error)?;
    let resource = format!("{}/{key}", bucket.name);
    let upload = BrowserUpload {
        bucket: request.bucket,
        key: request.key,
        upload: begun.id.to_string(),
        size,
        if_absent,
    };
    let body = Created { id: upload.encode(), part_bytes: upload.part_bytes() };
    let detail = format!("upload {}, {size} bytes", upload.upload);
    Ok(Reply::json(StatusCode::CREATED, &body)?.resource(resource).detail(detail))
}

#[derive(Serialize)]
struct PartBody {
    number: u16,
    size: u64,
    etag: String,
}

impl From<&PartInfo> for PartBody {
    fn from(part: &PartInfo) -> Self {
        Self { number: part.number, size: part.size, etag: part.etag().to_string() }
    }
}

/// `PUT /uploads/{id}/{number}`: writes a part. A part that is sent again replaces the earlier one.
pub(crate) async fn put_part(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (found, _) = call.browser_upload(Action::PutObject)?;
    let number =
        call.segment("number")?.parse().ok().and_then(|number| Some((number, found.upload.size_of(number)?)));
    let (number, expected) = number.ok_or_else(|| {
        AdminError::invalid(format!("the upload has the parts 1 to {}", found.upload.part_count()))
    })?;
    let size = declared_size(call.head)?;
    if size != expected {
        return Err(AdminError::invalid(format!("part {number} of this upload must have {expected} bytes")));
    }
    let engine = Rc::clone(call.engine()?);
    engine.upload(&found.bucket, &found.key, found.id)?;
    // Only tests have no connection.
    let body = call.body.take().ok_or(AdminError::Internal)?;
    let payload = receive(&engine, body, (&found.bucket, &found.key), size, false).await?;
    call.authenticate_again()?;
    let _ = call.authorize_object(Action::PutObject, &found.bucket.name, &found.key)?;
    let Found { bucket, key, id, .. } = found;
    let part = engine.put_part(PutPart { bucket, key, upload: id, number, payload, checksum: None }).await?;
    Reply::json(StatusCode::OK, &PartBody::from(&part))
}

#[derive(Serialize)]
struct Parts<'u> {
    bucket: &'u str,
    key: &'u str,
    size: u64,
    part_bytes: u64,
    parts: Vec<PartBody>,
}

/// `GET /uploads/{id}`: the parts that were uploaded.
pub(crate) async fn parts(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (found, _) = call.browser_upload(Action::GetObject)?;
    let parts = found.parts(&call)?.iter().map(PartBody::from).collect();
    let BrowserUpload { bucket, key, size, .. } = &found.upload;
    let body = Parts { bucket, key, size: *size, part_bytes: found.upload.part_bytes(), parts };
    Reply::json(StatusCode::OK, &body)
}

/// `POST /uploads/{id}/complete`: makes the object. All parts must have been uploaded.
pub(crate) async fn complete(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (found, permission) = call.browser_upload(Action::PutObject)?;
    let resource = found.resource();
    let parts = match found.parts(&call) {
        Err(AdminError::UploadNotFound) => {
            // A completion may be repeated, because its response was lost.
            let info = call.engine()?.completed_upload(&found.bucket, &found.key, found.id)?;
            return Ok(completed(&found.bucket, &found.key, &info)?.without_change());
        }
        parts => parts?,
    };
    let missing = (1..=found.upload.part_count())
        .find(|number| !parts.iter().any(|part| u64::from(part.number) == *number));
    if let Some(number) = missing {
        return Err(AdminError::invalid(format!("part {number} of the upload is missing: send it first")));
    }
    let condition =
        if found.upload.if_absent { WriteCondition::if_absent() } else { WriteCondition::default() };
    let Found { bucket, key, id, .. } = found;
    let complete = CompleteUpload {
        bucket: Arc::clone(&bucket),
        key: key.clone(),
        upload: id,
        parts: parts.iter().map(|part| (part.number, part.md5)).collect(),
        checksums: Vec::new(),
        condition: WriteCondition { must_be_absent: permission.must_be_absent(), ..condition },
        origin: call.origin(Cause::Request),
    };
    let engine = Rc::clone(call.engine()?);
    engine.complete_upload(complete).await.map_err(write_error)?;
    let info =
        engine.completed_upload(&bucket, &key, id).or_else(|_| engine.head_object(&bucket, &key, None))?;
    let detail = format!("upload {id}, {} parts, {} bytes", u64_of(parts.len()), info.size);
    Ok(completed(&bucket, &key, &info)?.resource(resource).detail(detail))
}

/// `DELETE /uploads/{id}`: removes the upload with its parts.
pub(crate) async fn abort(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (found, _) = call.browser_upload(Action::DeleteObject)?;
    let origin = call.origin(Cause::Request);
    call.engine()?.abort_upload(&found.bucket, &found.key, found.id, origin).await?;
    Ok(Reply::no_content().resource(found.resource()).detail(format!("upload {}", found.id)))
}
