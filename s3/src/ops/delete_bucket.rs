//! DeleteBucket: deletes an empty bucket. Source: API Reference, DeleteBucket.

use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::reply::Reply;
use cairn_engine::{Cause, EngineError};
use cairn_http1::StatusCode;

pub(crate) async fn delete_bucket(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    match call.engine.store().delete_bucket(&bucket.name, call.origin(Cause::Request)).await {
        Ok(()) => Ok(Reply::empty(StatusCode::NO_CONTENT)),
        Err(EngineError::BucketNotEmpty) => {
            let message =
                format!("The bucket you tried to delete is not empty: it holds {}.", bucket.usage());
            Err(S3Error::with_message(ErrorCode::BucketNotEmpty, message))
        }
        Err(error) => Err(error.into()),
    }
}
