//! `GET /api/v1/buckets/{bucket}/object/{key}[?version_id=]`: all that is known of an object but its content.

use http::StatusCode;

use super::named::NamedObject;
use super::record::ObjectRecord;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

pub(crate) async fn metadata(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let named = NamedObject::of(&call)?;
    let found = call.engine()?.head_object(&named.bucket, &named.key, named.version);
    let info = found.map_err(|error| named.read_error(&call, error))?;
    Reply::json(StatusCode::OK, &ObjectRecord::new(&named.bucket, named.key.to_string(), &info))
}
