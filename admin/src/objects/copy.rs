//! `POST /api/v1/buckets/{bucket}/object-copy/{key}`: copies a version inside the engine, with its headers and metadata.
//!
//! The copy has the parts of its source, if that has any, and is locked as its own bucket says. Made as long as the client waits
//! for it; once it goes to the commit it is carried out.

use std::rc::Rc;
use std::sync::Arc;

use cairn_engine::{Bucket, ObjectLock, PutObject, WriteCondition};
use cairn_model::{Etag, ObjectKey};
use serde::Deserialize;

use super::named::NamedObject;
use super::{copy_parts, put};
use crate::call::{Call, bucket_name, object_key, version_name};
use crate::error::AdminError;
use crate::reply::Reply;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CopyRequest {
    destination_bucket: String,
    destination_key: String,
    version_id: Option<String>,
}

pub(crate) async fn copy(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let (bucket, key) = (call.bucket()?, call.key()?);
    let request: CopyRequest = call.json().await?;
    let version = request.version_id.as_deref().map(version_name).transpose()?;
    let to_key = object_key(&request.destination_key)?;
    let to_name = bucket_name(&request.destination_bucket)?;
    let to_bucket = call.store()?.bucket(&to_name).ok_or(AdminError::BucketNotFound)?;
    let source = NamedObject { bucket, key, version };
    let mut reply = carry_out(&call, &source, (to_bucket, to_key.clone())).await?;
    reply.record.detail = format!("to {to_name}/{to_key}, {}", reply.record.detail);
    Ok(reply)
}

/// Makes a version's content the current content of a key.
///
/// # Errors
/// What keeps the source from being read, and the copy from being written.
pub(crate) async fn carry_out(
    call: &Call<'_, '_>,
    source: &NamedObject,
    (bucket, key): (Arc<Bucket>, ObjectKey),
) -> Result<Reply, AdminError> {
    let engine = Rc::clone(call.engine()?);
    let opened = engine.open_object(&source.bucket, &source.key, source.version, |info| {
        (if info.parts.is_empty() { 0..info.size } else { 0..0 }, info.clone())
    });
    let (object, info) = opened.map_err(|error| source.missing(error))?;
    if !info.parts.is_empty() {
        return copy_parts::carry_out(call, source, &info, (bucket, key)).await;
    }
    let staged = async { engine.copy_payload(object, &bucket, &key).await.map_err(put::write_error) };
    let payload = call.while_wanted(staged).await?;
    let (etag, attributes) = (Etag::single(payload.md5()), info.attributes);
    let (condition, lock) = (WriteCondition::default(), ObjectLock::default());
    put::commit(&engine, PutObject { bucket, key, payload, etag, attributes, condition, lock }).await
}
