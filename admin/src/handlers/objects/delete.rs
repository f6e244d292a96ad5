//! `DELETE /api/v1/buckets/{bucket}/object/{key}`: deletes the current object.
//!
//! In a bucket with versioning, that adds a delete marker.
//! Unlike on the data plane, a missing object is an error (404) and gets no delete marker.

use cairn_engine::{Cause, DeleteOptions, EtagMatch, WriteCondition};

use super::headers::{CONDITIONS, refuse_conditions};
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

pub(crate) async fn delete(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (bucket, key) = (call.bucket()?, call.key()?);
    refuse_conditions(call.head, &CONDITIONS)?;
    let condition = WriteCondition { if_match: Some(EtagMatch::Any), ..WriteCondition::default() };
    let options =
        DeleteOptions { condition, origin: call.origin(Cause::Request), ..DeleteOptions::default() };
    let deleted = call.engine()?.delete_object(&bucket, &key, options).await?;
    let detail = deleted.version.filter(|_| deleted.is_delete_marker);
    let detail = detail.map(|marker| format!("delete marker {marker}")).unwrap_or_default();
    Ok(Reply::no_content().detail(detail))
}
