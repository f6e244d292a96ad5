//! DeleteBucketEncryption: succeeds even without a configuration to delete. Source: API Reference, DeleteBucketEncryption.

use crate::call::Call;
use crate::errors::S3Result;
use crate::reply::Reply;
use cairn_engine::BucketChange;
use cairn_http1::StatusCode;

pub(crate) async fn delete_bucket_encryption(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    call.engine.store().change_bucket(&bucket, BucketChange::Encryption(None)).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
