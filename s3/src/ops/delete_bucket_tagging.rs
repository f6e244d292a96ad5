//! DeleteBucketTagging: succeeds even without tags to delete. Source: API Reference, DeleteBucketTagging.

use crate::call::Call;
use crate::errors::S3Result;
use crate::reply::Reply;
use cairn_engine::{BucketChange, Tags};
use cairn_http1::StatusCode;

pub(crate) async fn delete_bucket_tagging(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    call.engine.store().change_bucket(&bucket, BucketChange::Tags(Tags::default())).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
