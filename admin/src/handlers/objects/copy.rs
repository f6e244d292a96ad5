//! `POST /api/v1/buckets/{bucket}/object-copy/{key}`: copies an object or a version of it.
//!
//! The data does not leave the engine. The copy has the headers, the metadata and the parts of its source. The default
//! retention of its own bucket applies. The engine admits copies, bounded for each caller. The copy is cancelled if the
//! client disconnects before the commit.

use std::rc::Rc;
use std::sync::Arc;

use cairn_api::CopyObject;
use cairn_engine::{Bucket, Cause, ObjectLock, PutObject, WriteCondition};
use cairn_model::ObjectKey;

use super::copy_parts::copy_multipart;
use super::headers::{CONDITIONS, refuse_conditions};
use super::new_version;
use super::object_ref::ObjectRef;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::request::names::{bucket_name, object_key, version_name};

pub(crate) async fn copy(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let (bucket, key) = (call.bucket()?, call.key()?);
    refuse_conditions(call.head, &CONDITIONS)?;
    let request: CopyObject = call.json().await?;
    let version = request.version_id.as_deref().map(version_name).transpose()?;
    let to_key = object_key(&request.destination_key)?;
    let to_name = bucket_name(&request.destination_bucket)?;
    let to_bucket = call.store()?.bucket(&to_name).ok_or(AdminError::BucketNotFound)?;
    let source = ObjectRef { bucket, key, version };
    let mut reply = copy_version(&call, &source, (to_bucket, to_key.clone()), Cause::Copy).await?;
    reply.record.detail = format!("to {to_name}/{to_key}, {}", reply.record.detail);
    Ok(reply)
}

/// Writes a new version of a key with the content of another version.
///
/// # Errors
/// Those of reading the source and of writing the copy.
pub(crate) async fn copy_version(
    call: &Call<'_, '_>,
    source: &ObjectRef,
    (bucket, key): (Arc<Bucket>, ObjectKey),
    cause: Cause,
) -> Result<Reply, AdminError> {
    let engine = Rc::clone(call.engine()?);
    let opened = engine.open_object(&source.bucket, &source.key, source.version, |info| {
        (if info.parts.is_empty() { 0..info.size } else { 0..0 }, info.clone())
    });
    let (object, info) = opened.map_err(|error| source.source_error(error))?;
    let client = &call.caller()?.principal;
    let admitted =
        async { engine.admit_copy(client, &bucket, &key, info.size).await.map_err(new_version::write_error) };
    let mut permit = call.until_disconnect(admitted).await?;
    if !info.parts.is_empty() {
        return copy_multipart(call, permit, source, &info, (bucket, key), cause).await;
    }
    let copied = engine.copy_payload(&mut permit, object, &bucket, &key);
    let payload = call.until_disconnect(async { copied.await.map_err(new_version::write_error) }).await?;
    // The commit needs no turn: it goes to the committer's queue, as that of a put.
    drop(permit);
    call.authenticate_again()?;
    let (etag, attributes) = (payload.etag(), info.attributes);
    let (condition, lock) = (WriteCondition::default(), ObjectLock::default());
    let origin = call.origin(cause);
    let put = PutObject { bucket, key, payload, etag, attributes, condition, lock, origin };
    new_version::commit(&engine, put).await
}
