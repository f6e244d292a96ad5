//! DeleteBucketLifecycle: succeeds even without rules to delete. Source: API Reference, DeleteBucketLifecycle.

use crate::call::Call;
use crate::errors::S3Result;
use crate::reply::Reply;
use cairn_engine::{BucketChange, LifecycleChange};
use cairn_http1::StatusCode;

pub(crate) async fn delete_bucket_lifecycle(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let change = BucketChange::Lifecycle(LifecycleChange::ReplaceAll(Vec::new()));
    call.engine.store().change_bucket(&bucket, change).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
