//! The content of an object as the body of a response.

use cairn_engine::OpenObject;
use cairn_net::ResponseBody;
use cairn_transfer::StartedPayload;

use super::object_ref::ObjectRef;
use crate::call::Call;
use crate::error::AdminError;

/// Returns a response body with the `length` bytes that `object` was opened for.
///
/// The first chunk is read and checked here, so that damage at the beginning becomes an error response. Damage after it
/// closes the connection.
///
/// # Errors
/// `INTERNAL_ERROR` for damage and failures of the device, which are logged and audited.
pub(crate) async fn stream(
    call: &Call<'_, '_>,
    source: &ObjectRef,
    object: OpenObject,
    length: u64,
) -> Result<ResponseBody, AdminError> {
    if length == 0 {
        return Ok(ResponseBody::Full(Vec::new()));
    }
    if *call.head.method() == http::Method::HEAD {
        return Ok(ResponseBody::Omitted { length: Some(length) });
    }
    let payload = StartedPayload::start(object).await.map_err(|error| source.read_error(call, error))?;
    let audit = call.read_audit();
    Ok(ResponseBody::Stream { length, source: payload.into_source(move |cause| audit.failed(cause)) })
}
