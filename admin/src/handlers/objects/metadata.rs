//! `GET /api/v1/buckets/{bucket}/object/{key}[?version_id=|?at=]`: the metadata of an object.

use http::StatusCode;

use super::object_ref::ObjectRef;
use super::record::object_record;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

pub(crate) async fn metadata(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let source = ObjectRef::with_moment(&call)?;
    let found = call.engine()?.head_object(&source.bucket, &source.key, source.version);
    let info = found.map_err(|error| source.read_error(&call, error))?;
    Reply::json(StatusCode::OK, &object_record(&source.bucket, source.key.to_string(), &info))
}
