//! DeleteObject: idempotent, with conditions. Source: API Reference, DeleteObject.

use crate::call::Call;
use crate::conditions;
use crate::errors::S3Result;
use crate::reply::Reply;
use cairn_engine::{DeleteOptions, EngineError};
use cairn_http1::StatusCode;

pub(crate) async fn delete_object(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let condition = conditions::of_delete(call.fields)?;
    let conditional = condition != Default::default();
    let options = DeleteOptions { condition, ..DeleteOptions::default() };
    match call.engine.delete_object(&bucket, &key, options).await {
        // What is not there need not be deleted, whatever it was expected to be.
        Ok(_) | Err(EngineError::NoSuchKey) => Ok(Reply::empty(StatusCode::NO_CONTENT)),
        Err(error) => Err(conditions::write_error(error, conditional)),
    }
}
