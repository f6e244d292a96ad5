//! DeleteBucket: only an empty one. Source: API Reference, DeleteBucket.

use crate::call::Call;
use crate::errors::S3Result;
use crate::reply::Reply;
use cairn_http1::StatusCode;

pub(crate) async fn delete_bucket(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    call.engine.store().delete_bucket(&bucket.name).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
