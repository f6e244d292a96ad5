//! `DELETE /api/v1/buckets/{bucket}/object-versions/{key}?version_id=`: removes one version, or one delete marker, for good.
//! Nobody removes a locked one here, and governance is not bypassed.

use cairn_engine::DeleteOptions;

use super::named::NamedObject;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

pub(crate) async fn delete_version(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let NamedObject { bucket, key, version } = NamedObject::of(&call)?;
    let version = version.ok_or_else(|| AdminError::invalid("the parameter version_id is needed"))?;
    call.no_body().await?;
    let options = DeleteOptions { version: Some(version), ..DeleteOptions::default() };
    let deleted = call.engine()?.delete_object(&bucket, &key, options).await?;
    if !deleted.existed {
        return Err(AdminError::VersionNotFound);
    }
    let what = if deleted.is_delete_marker { "delete marker" } else { "version" };
    Ok(Reply::no_content().detail(format!("{what} {version}")))
}
