//! `POST /api/v1/buckets/{bucket}/delete`: deletes up to 1000 objects or versions.
//!
//! Each is deleted as by the route for one, but they share commits. What does not exist is skipped, so a request whose answer
//! was lost can be sent again.

use cairn_api::{DeleteObjects, DeletedObjects, FailedDeletion};
use cairn_engine::{Cause, DeleteOptions, DeleteOutcome, EngineError, EtagMatch, Origin, WriteCondition};
use cairn_model::{ObjectKey, VersionName, u64_of};
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::limits::LIST_ENTRIES_MAX;
use crate::reply::Reply;
use crate::request::names::{object_key, version_name};

/// Longest id of a version.
const VERSION_ID_CHARACTERS_MAX: usize = 64;

pub(crate) async fn delete_objects(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let DeleteObjects { objects } = call.json().await?;
    if objects.is_empty() || objects.len() > LIST_ENTRIES_MAX {
        return Err(AdminError::invalid(format!("objects: must name 1 to {LIST_ENTRIES_MAX} objects")));
    }
    let mut done = DeletedObjects { deleted: 0, skipped: 0, failed: Vec::new() };
    let (mut indices, mut deletes) = (Vec::with_capacity(objects.len()), Vec::with_capacity(objects.len()));
    for (index, object) in objects.iter().enumerate() {
        let key = object_key(&object.key)?;
        if object.version_id.as_ref().is_some_and(|id| id.chars().count() > VERSION_ID_CHARACTERS_MAX) {
            let message = format!("version_id: must have at most {VERSION_ID_CHARACTERS_MAX} characters");
            return Err(AdminError::invalid(message));
        }
        match object.version_id.as_deref().map(version_name).transpose() {
            Ok(version) => {
                indices.push(u64_of(index));
                deletes.push(deletion(key, version, call.origin(Cause::Request)));
            }
            // No version has such an id.
            Err(AdminError::VersionNotFound) => done.skipped += 1,
            Err(error) => return Err(error),
        }
    }
    let outcomes = call.engine()?.delete_objects(&bucket, deletes).await;
    for (index, outcome) in indices.into_iter().zip(outcomes) {
        match outcome {
            Ok(DeleteOutcome { existed: true, .. }) => done.deleted += 1,
            // It was deleted before, perhaps by this request.
            Ok(_) | Err(EngineError::NoSuchKey) => done.skipped += 1,
            Err(error) => {
                let error = AdminError::from(error);
                let (code, message) = (error.code().to_owned(), error.message());
                done.failed.push(FailedDeletion { index, code, message });
            }
        }
    }
    let DeletedObjects { deleted, skipped, failed } = &done;
    let detail = format!("{deleted} deleted, {skipped} skipped, {} failed", failed.len());
    Ok(Reply::json(StatusCode::OK, &done)?.detail(detail))
}

/// The deletion of a version, or of the current object if there is one.
fn deletion(key: ObjectKey, version: Option<VersionName>, origin: Origin) -> (ObjectKey, DeleteOptions) {
    let condition = match version {
        Some(_) => WriteCondition::default(),
        None => WriteCondition { if_match: Some(EtagMatch::Any), ..WriteCondition::default() },
    };
    (key, DeleteOptions { version, condition, origin, ..DeleteOptions::default() })
}
