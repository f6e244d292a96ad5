//! `POST /api/v1/restore/{bucket}/{key}`: an older version becomes the current one, by a new version with its content. No other
//! version is touched; the one that was current stays behind it.
//!
//! A bucket that never had versioning has only the `null` version, which is the current one: there is nothing to restore,
//! 409. With versioning suspended the restored content becomes the `null` version, as every write does there, in the place of
//! the `null` version that was.

use cairn_engine::Versioning;
use serde::Deserialize;

use super::copy;
use super::named::NamedObject;
use crate::call::{Call, version_name};
use crate::error::AdminError;
use crate::reply::Reply;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RestoreRequest {
    version_id: String,
}

pub(crate) async fn restore(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let (bucket, key) = (call.bucket()?, call.key()?);
    let request: RestoreRequest = call.json().await?;
    let version = Some(version_name(&request.version_id)?);
    let source = NamedObject { bucket, key, version };
    if source.bucket.versioning() == Versioning::Unversioned {
        let found = call.engine()?.head_object(&source.bucket, &source.key, version);
        found.map_err(|error| source.missing(error))?;
        return Err(AdminError::InvalidBucketState(
            "the bucket keeps no versions: there is nothing to restore",
        ));
    }
    let target = (source.bucket.clone(), source.key.clone());
    let mut reply = copy::carry_out(&call, &source, target).await?;
    reply.record.detail = format!("version {} as {}", request.version_id, reply.record.detail);
    Ok(reply)
}
