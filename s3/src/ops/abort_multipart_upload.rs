//! AbortMultipartUpload. Source: API Reference, AbortMultipartUpload.

use crate::call::Call;
use crate::errors::S3Result;
use crate::headers::write_conditions;
use crate::multipart::named_upload;
use crate::reply::Reply;
use cairn_engine::Cause;
use cairn_http1::StatusCode;

pub(crate) async fn abort_multipart_upload(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key, id) = named_upload(call)?;
    write_conditions::refuse_on_upload_step(call.fields, call.operation)?;
    call.engine.abort_upload(&bucket, &key, id, call.origin(Cause::Request)).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
