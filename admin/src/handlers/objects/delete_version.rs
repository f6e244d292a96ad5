//! `DELETE /api/v1/buckets/{bucket}/object-versions/{key}?version_id=`: permanently deletes one version or delete
//! marker; with `only_imported=true` only if an import has brought it.
//!
//! Locked versions are refused. Governance mode cannot be bypassed here.

use cairn_engine::{Cause, DeleteOptions};

use crate::call::{Call, VERSION_ID};
use crate::error::AdminError;
use crate::reply::Reply;
use crate::request::names::version_name;

pub(crate) async fn delete_version(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let parameters = &call.parameters;
    let only_imported = parameters.flag("only_imported")?;
    let version = version_name(parameters.required(VERSION_ID)?)?;
    let (bucket, key) = (call.bucket()?, call.key()?);
    let origin = call.origin(Cause::Request);
    let options = DeleteOptions { version: Some(version), only_imported, origin, ..DeleteOptions::default() };
    let deleted = call.engine()?.delete_object(&bucket, &key, options).await?;
    if !deleted.existed {
        return Err(AdminError::VersionNotFound);
    }
    let kind = if deleted.is_delete_marker { "delete marker" } else { "version" };
    Ok(Reply::no_content().detail(format!("{kind} {version}")))
}
