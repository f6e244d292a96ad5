//! `DELETE /api/v1/buckets/{bucket}/object/{key}`: removes the object, or puts a delete marker in front of its versions where
//! the bucket keeps them. What is not there is not deleted, and gets no marker: 404.

use cairn_engine::{DeleteOptions, EtagMatch, WriteCondition};

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

pub(crate) async fn delete(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let (bucket, key) = (call.bucket()?, call.key()?);
    call.no_body().await?;
    let condition = WriteCondition { if_match: Some(EtagMatch::Any), ..WriteCondition::default() };
    let options = DeleteOptions { condition, ..DeleteOptions::default() };
    let deleted = call.engine()?.delete_object(&bucket, &key, options).await?;
    let detail = deleted.version.filter(|_| deleted.is_delete_marker);
    let detail = detail.map(|marker| format!("delete marker {marker}")).unwrap_or_default();
    Ok(Reply::no_content().detail(detail))
}
