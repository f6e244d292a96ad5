//! `POST /api/v1/buckets/{bucket}/object-copy/{key}`: copies an object or a version of it.
//!
//! The data does not leave the engine. The copy has the headers, the metadata and the parts of its source. The default
//! retention of its own bucket applies. The engine admits copies, bounded for each caller. The copy is cancelled if the
//! client disconnects before the commit.

use std::ops::Range;
use std::rc::Rc;

use cairn_api::CopyObject;
use cairn_engine::{Cause, ObjectInfo, ObjectLock, OpenObject, PutObject, WriteCondition};
use cairn_identity::policy::Action;

use super::copy_parts::copy_multipart;
use super::headers::{CONDITIONS, refuse_conditions};
use super::new_version::{self, Destination};
use super::object_ref::ObjectRef;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::request::names::{bucket_name, object_key, version_name};

pub(crate) async fn copy(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (bucket, key) = (call.bucket()?, call.key()?);
    refuse_conditions(call.head, &CONDITIONS)?;
    let request: CopyObject = call.json().await?;
    let version = request.version_id.as_deref().map(version_name).transpose()?;
    let destination =
        destination(&call, &request.destination_bucket, &request.destination_key, request.if_absent)?;
    let place = destination.place();
    let source = ObjectRef { bucket, key, version };
    let copied = copy_version(&call, &source, destination, Cause::Copy).await;
    let mut reply = copied.map_err(taken)?;
    reply.record.detail = format!("to {place}, {}", reply.record.detail);
    Ok(reply)
}

/// Returns the destination that a request names, if the caller may write there.
///
/// # Errors
/// `INVALID_REQUEST`, `INVALID_BUCKET_NAME`, `FORBIDDEN`, `BUCKET_NOT_FOUND`.
pub(super) fn destination(
    call: &Call<'_, '_>,
    bucket: &str,
    key: &str,
    if_absent: bool,
) -> Result<Destination, AdminError> {
    let (name, key) = (bucket_name(bucket)?, object_key(key)?);
    let _ = call.authorize_object(Action::PutObject, &name, &key)?;
    let bucket = call.store()?.bucket(&name).ok_or(AdminError::BucketNotFound)?;
    Ok(Destination { bucket, key, condition: absence(if_absent) })
}

/// Returns the condition of a copy whose destination may have to be absent.
fn absence(if_absent: bool) -> WriteCondition {
    if if_absent { WriteCondition::if_absent() } else { WriteCondition::default() }
}

/// Maps the error of a copy with no other condition than [`absence`].
pub(super) fn taken(error: AdminError) -> AdminError {
    match error {
        AdminError::PreconditionFailed => AdminError::ObjectAlreadyExists,
        error => error,
    }
}

/// Returns what is opened of a version that is copied, and the version. Parts are opened one by one.
pub(super) fn copied_range(info: &ObjectInfo) -> (Range<u64>, ObjectInfo) {
    (if info.parts.is_empty() { 0..info.size } else { 0..0 }, info.clone())
}

/// Writes a new version of a key with the content of another version.
///
/// # Errors
/// Those of reading the source and of writing the copy.
pub(crate) async fn copy_version(
    call: &Call<'_, '_>,
    source: &ObjectRef,
    destination: Destination,
    cause: Cause,
) -> Result<Reply, AdminError> {
    copy_found(call, source, destination, cause).await.map(|(reply, _)| reply)
}

/// As [`copy_version`]. Also returns the condition that the source is still what was copied.
pub(super) async fn copy_found(
    call: &Call<'_, '_>,
    source: &ObjectRef,
    destination: Destination,
    cause: Cause,
) -> Result<(Reply, WriteCondition), AdminError> {
    let engine = Rc::clone(call.engine()?);
    let opened = engine.open_object(&source.bucket, &source.key, source.version, copied_range);
    let opened = opened.map_err(|error| source.source_error(error))?;
    let unchanged = WriteCondition::if_unchanged(&opened.1);
    Ok((copy_opened(call, source, opened, destination, cause).await?, unchanged))
}

/// As [`copy_found`], of a version that is open. The copy has the attributes of `info`.
pub(super) async fn copy_opened(
    call: &Call<'_, '_>,
    source: &ObjectRef,
    (object, info): (OpenObject, ObjectInfo),
    destination: Destination,
    cause: Cause,
) -> Result<Reply, AdminError> {
    let engine = Rc::clone(call.engine()?);
    let Destination { bucket, key, condition } = destination;
    if condition == WriteCondition::if_absent() && engine.head_object(&bucket, &key, None).is_ok() {
        // The commit decides. This check only avoids the copy of data that would be refused.
        return Err(AdminError::PreconditionFailed);
    }
    let client = &call.caller()?.principal;
    let admitted =
        async { engine.admit_copy(client, &bucket, &key, info.size).await.map_err(new_version::write_error) };
    let mut permit = call.until_disconnect(admitted).await?;
    if !info.parts.is_empty() {
        let destination = Destination { bucket, key, condition };
        return copy_multipart(call, permit, source, &info, destination, cause).await;
    }
    let copied = engine.copy_payload(&mut permit, object, &bucket, &key);
    let payload = call.until_disconnect(async { copied.await.map_err(new_version::write_error) }).await?;
    // The commit needs no turn: it goes to the committer's queue, as that of a put.
    drop(permit);
    let condition = new_version::condition_at_commit(call, &bucket, &key, condition)?;
    let (etag, attributes) = (payload.etag(), info.attributes);
    let (lock, origin) = (ObjectLock::default(), call.origin(cause));
    let put = PutObject { bucket, key, payload, etag, attributes, condition, lock, origin };
    new_version::commit(&engine, put).await
}
