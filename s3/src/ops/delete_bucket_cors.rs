//! DeleteBucketCors: succeeds even without rules to delete. Source: API Reference, DeleteBucketCors.

use crate::call::Call;
use crate::errors::S3Result;
use crate::reply::Reply;
use cairn_engine::BucketChange;
use cairn_http1::StatusCode;

pub(crate) async fn delete_bucket_cors(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    call.engine.store().change_bucket(&bucket, BucketChange::Cors(None)).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
