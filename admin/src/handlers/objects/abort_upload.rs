//! `DELETE /api/v1/buckets/{bucket}/multipart-uploads/{key}?upload_id=`: aborts an upload and removes its parts.

use cairn_engine::Cause;
use cairn_model::UploadId;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

pub(crate) async fn abort_upload(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    const UPLOAD: &str = "upload_id";
    let (bucket, key) = (call.bucket()?, call.key()?);
    let id = UploadId::parse(call.parameters.required(UPLOAD)?).ok_or(AdminError::UploadNotFound)?;
    call.engine()?.abort_upload(&bucket, &key, id, call.origin(Cause::Request)).await?;
    Ok(Reply::no_content().detail(format!("upload {id}")))
}
