//! DeleteObject: idempotent, with conditions, of the object or of one version. Source: API Reference, DeleteObject.

use crate::call::Call;
use crate::errors::S3Result;
use crate::headers::version::{self, MARKER_HEADER, VERSION_HEADER};
use crate::headers::write_conditions;
use crate::reply::Reply;
use cairn_engine::{Cause, DeleteOptions, EngineError};
use cairn_http1::StatusCode;

pub(crate) async fn delete_object(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let version = version::requested(call.query)?;
    let bypass_governance = call.bypasses_governance(&bucket.settings())?;
    let condition = write_conditions::of_delete(call.fields)?;
    let conditions = condition.clone();
    let origin = call.origin(Cause::Request);
    let options = DeleteOptions { version, condition, bypass_governance, origin, ..DeleteOptions::default() };
    let mut reply = Reply::empty(StatusCode::NO_CONTENT);
    let deleted = match call.engine.delete_object(&bucket, &key, options).await {
        Ok(outcome) if !outcome.existed && version.is_some_and(|name| !name.is_expected()) => {
            return Err(version::read_error(EngineError::NoSuchVersion, version, call.head.method()));
        }
        Ok(outcome) => outcome.version.or(version).map(|name| (name, outcome.is_delete_marker)),
        // A missing object need not be deleted, whatever the conditions.
        Err(EngineError::NoSuchKey | EngineError::NoSuchVersion) => version.map(|name| (name, false)),
        Err(error) => return Err(write_conditions::write_error(error, &conditions)),
    };
    if let Some((name, is_delete_marker)) = deleted {
        if is_delete_marker {
            reply.head.header(MARKER_HEADER, "true");
        }
        reply.head.header(VERSION_HEADER, name.to_string());
    }
    Ok(reply)
}
