//! Commits and describes a new version, for uploads and copies.

use std::sync::Arc;

use cairn_engine::{Bucket, Engine, EngineError, ObjectInfo, PutObject, PutOutcome, WriteCondition};
use cairn_identity::policy::Action;
use cairn_model::{ObjectKey, Timestamp, VersionId};
use http::StatusCode;

use super::record::object_record;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

/// The destination of a copy or a restore: the new version's bucket, key and condition.
pub(crate) struct Destination {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) key: ObjectKey,
    /// The condition on the key's current object. The commit decides.
    pub(crate) condition: WriteCondition,
}

impl Destination {
    /// Returns the names of bucket and key, for an audit record.
    pub(crate) fn place(&self) -> String {
        format!("{}/{}", self.bucket.name, self.key)
    }
}

/// Checks before a commit that the caller may still make it. Returns the condition of the write: some may only write what is
/// not there.
///
/// # Errors
/// Those of [`Call::authenticate_again`] and [`Call::authorize_object`].
pub(crate) fn condition_at_commit(
    call: &Call<'_, '_>,
    bucket: &Bucket,
    key: &ObjectKey,
    condition: WriteCondition,
) -> Result<WriteCondition, AdminError> {
    call.authenticate_again()?;
    let must_be_absent = call.authorize_object(Action::PutObject, &bucket.name, key)?.must_be_absent();
    Ok(WriteCondition { must_be_absent, ..condition })
}

/// Commits a new version and describes it.
///
/// # Errors
/// Those of the commit.
pub(crate) async fn commit(engine: &Engine, put: PutObject) -> Result<Reply, AdminError> {
    let (bucket, key) = (Arc::clone(&put.bucket), put.key.clone());
    // The outcome of the commit replaces the time, the version and its name.
    let info = ObjectInfo {
        size: put.payload.size(),
        etag: put.etag,
        last_modified: Timestamp(0),
        version: VersionId(0),
        is_null: true,
        imported: None,
        attributes: put.attributes.clone(),
        encrypted: put.payload.is_encrypted(),
        lock: put.lock,
        parts: Vec::new(),
    };
    let outcome = engine.put_object(put).await.map_err(write_error)?;
    created(engine, (&bucket, &key), info, outcome)
}

/// Describes a new version. `info` is what is known of it in addition to the outcome.
pub(crate) fn created(
    engine: &Engine,
    (bucket, key): (&Arc<Bucket>, &ObjectKey),
    info: ObjectInfo,
    outcome: PutOutcome,
) -> Result<Reply, AdminError> {
    let PutOutcome { version, is_null, last_modified, .. } = outcome;
    let mut info = ObjectInfo { version, is_null, last_modified, ..info };
    // The committer applies the bucket's default retention. The version may already be deleted again.
    if let Ok(found) = engine.head_object(bucket, key, Some(info.version_name()))
        && found.version == info.version
    {
        info = found;
    }
    let body = object_record(bucket, key.to_string(), &info);
    let detail = format!("version {}, {} bytes", info.version_name(), info.size);
    Ok(Reply::json(StatusCode::CREATED, &body)?.header("etag", info.etag.quoted()).detail(detail))
}

/// Describes the version that an upload became.
pub(crate) fn completed(
    bucket: &Arc<Bucket>,
    key: &ObjectKey,
    info: &ObjectInfo,
) -> Result<Reply, AdminError> {
    let body = object_record(bucket, key.to_string(), info);
    Ok(Reply::json(StatusCode::CREATED, &body)?.header("etag", info.etag.quoted()))
}

/// Maps an error of a write.
pub(crate) fn write_error(error: EngineError) -> AdminError {
    match error {
        EngineError::KeyTooLong => AdminError::invalid("the key has too many NUL bytes to be stored"),
        error => error.into(),
    }
}
