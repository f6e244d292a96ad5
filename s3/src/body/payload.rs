//! Streams bodies into the engine and computes their digests.

use crate::body::digests::{BodyDigests, CheckedChecksum};
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::limits::REQUEST_PAYLOAD_BYTES_MAX;
use cairn_engine::{Bucket, StagedPayload};
use cairn_http1::BodyFraming;
use cairn_model::ObjectKey;
use cairn_net::RequestBody;
use cairn_transfer::ReceiveError;
use std::sync::Arc;

/// Returns the declared size of the body.
///
/// # Errors
/// `MissingContentLength`, `EntityTooLarge`; `NotImplemented` for `Content-Range`.
pub(crate) fn declared_size(call: &Call<'_>) -> S3Result<u64> {
    if call.fields.get("content-range").is_some() {
        return Err(S3Error::not_implemented(
            "Writing a part of an object is not implemented: put the complete object without Content-Range.",
        ));
    }
    match call.head.framing() {
        BodyFraming::Length(size) if size <= REQUEST_PAYLOAD_BYTES_MAX => Ok(size),
        BodyFraming::Length(size) => Err(S3Error::new(ErrorCode::EntityTooLarge)
            .element("ProposedSize", size.to_string())
            .element("MaxSizeAllowed", REQUEST_PAYLOAD_BYTES_MAX.to_string())),
        BodyFraming::None | BodyFraming::Chunked => Err(ErrorCode::MissingContentLength.into()),
    }
}

/// Reads the whole body into a payload of `size` bytes for `key`, and checks its digests. Then checks that the client may
/// still write it.
///
/// # Errors
/// Those of the digests, the connection, the engine and [`Call::authorize_again`].
pub(crate) async fn receive_payload(
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
    object: (&Arc<Bucket>, &ObjectKey),
    size: u64,
    mut digests: BodyDigests,
) -> S3Result<(StagedPayload, CheckedChecksum)> {
    let received =
        cairn_transfer::receive_payload(call.engine, body, object, size, |bytes| digests.update(bytes));
    let payload = received.await.map_err(receive_error)?;
    let checksum = digests.check(payload.md5())?;
    call.authorize_again()?;
    Ok((payload, checksum))
}

fn receive_error(error: ReceiveError) -> S3Error {
    match error {
        ReceiveError::Engine(error) => error.into(),
        ReceiveError::Body(error) => error.into(),
        ReceiveError::TooSlow => {
            let message = "The body arrived too slowly while other uploads waited for memory; try again.";
            S3Error::with_message(ErrorCode::RequestTimeout, message).closing()
        }
    }
}
