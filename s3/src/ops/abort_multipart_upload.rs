//! AbortMultipartUpload. Source: API Reference, AbortMultipartUpload.

use crate::call::Call;
use crate::conditions;
use crate::errors::S3Result;
use crate::multipart::named_upload;
use crate::reply::Reply;
use cairn_http1::StatusCode;

pub(crate) async fn abort_multipart_upload(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key, id) = named_upload(call)?;
    conditions::refuse_on_step(call.fields, call.operation)?;
    call.engine.abort_upload(&bucket, &key, id).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
