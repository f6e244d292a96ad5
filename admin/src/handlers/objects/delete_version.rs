//! `DELETE /api/v1/buckets/{bucket}/object-versions/{key}?version_id=`: permanently deletes one version or delete
//! marker.
//!
//! Locked versions are refused. Governance mode cannot be bypassed here.

use cairn_engine::{Cause, DeleteOptions};

use super::object_ref::ObjectRef;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

pub(crate) async fn delete_version(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let ObjectRef { bucket, key, version } = ObjectRef::of(&call)?;
    let version = version.ok_or_else(|| AdminError::invalid("the parameter version_id is required"))?;
    call.no_body().await?;
    let origin = call.origin(Cause::Request);
    let options = DeleteOptions { version: Some(version), origin, ..DeleteOptions::default() };
    let deleted = call.engine()?.delete_object(&bucket, &key, options).await?;
    if !deleted.existed {
        return Err(AdminError::VersionNotFound);
    }
    let kind = if deleted.is_delete_marker { "delete marker" } else { "version" };
    Ok(Reply::no_content().detail(format!("{kind} {version}")))
}
