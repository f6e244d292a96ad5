//! `POST /api/v1/restore/{bucket}/{key}`: restores an older version by writing a new version with its content.
//!
//! No existing version changes. A bucket that never had versioning has only the `null` version, which is current, so a
//! restore is refused with 409. While versioning is suspended, the restored content becomes the `null` version, as
//! every write does, and replaces the previous `null` version.

use cairn_api::RestoreObject;
use cairn_engine::{Cause, Versioning, WriteCondition};
use cairn_identity::policy::Action;

use super::copy::{copy_version, taken};
use super::headers::{CONDITIONS, refuse_conditions};
use super::new_version::Destination;
use super::object_ref::ObjectRef;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::request::names::version_name;

pub(crate) async fn restore(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (name, key) = (call.bucket_name()?, call.key()?);
    let _ = call.authorize_object(Action::PutObject, &name, &key)?;
    let bucket = call.bucket()?;
    refuse_conditions(call.head, &CONDITIONS)?;
    let request: RestoreObject = call.json().await?;
    let version = Some(version_name(&request.version_id)?);
    let source = ObjectRef { bucket, key, version };
    if source.bucket.versioning() == Versioning::Unversioned {
        let found = call.engine()?.head_object(&source.bucket, &source.key, version);
        found.map_err(|error| source.source_error(error))?;
        return Err(AdminError::InvalidBucketState(
            "the bucket has no versioning: there is no older version to restore",
        ));
    }
    let condition = WriteCondition::default();
    let destination = Destination { bucket: source.bucket.clone(), key: source.key.clone(), condition };
    let copied = copy_version(&call, &source, destination, Cause::Restore).await;
    let mut reply = copied.map_err(taken)?;
    reply.record.detail = format!("version {} as {}", request.version_id, reply.record.detail);
    Ok(reply)
}
