//! DeleteObject: idempotent, with conditions, of the object or of one version. Source: API Reference, DeleteObject.

use crate::call::Call;
use crate::conditions;
use crate::errors::S3Result;
use crate::lock_headers;
use crate::reply::Reply;
use crate::version::{self, MARKER_HEADER, VERSION_HEADER};
use cairn_engine::{DeleteOptions, EngineError};
use cairn_http1::StatusCode;

pub(crate) async fn delete_object(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let version = version::asked(call.query)?;
    let bypass_governance = lock_headers::bypasses_governance(call, &bucket.settings())?;
    let condition = conditions::of_delete(call.fields)?;
    let conditional = condition != Default::default();
    let mut reply = Reply::empty(StatusCode::NO_CONTENT);
    let deleted = match call
        .engine
        .delete_object(&bucket, &key, DeleteOptions { version, condition, bypass_governance })
        .await
    {
        Ok(outcome) => outcome.version.or(version).map(|name| (name, outcome.is_delete_marker)),
        // What is not there need not be deleted, whatever it was expected to be.
        Err(EngineError::NoSuchKey | EngineError::NoSuchVersion) => version.map(|name| (name, false)),
        Err(error) => return Err(conditions::write_error(error, conditional)),
    };
    if let Some((name, is_delete_marker)) = deleted {
        if is_delete_marker {
            reply.head.header(MARKER_HEADER, "true");
        }
        reply.head.header(VERSION_HEADER, name.to_string());
    }
    Ok(reply)
}
