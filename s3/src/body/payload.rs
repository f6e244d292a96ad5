//! Streams bodies into the engine and computes their digests.

use crate::body::chunked::{ChunkedSource, Decoder, decoded_size};
use crate::body::digests::{BodyDigests, CheckedChecksum};
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::forms::Form;
use crate::limits::REQUEST_PAYLOAD_BYTES_MAX;
use cairn_engine::{Bucket, StagedPayload};
use cairn_http1::BodyFraming;
use cairn_identity::PayloadDigest;
use cairn_model::ObjectKey;
use cairn_net::RequestBody;
use cairn_transfer::{BodyReader, ReceiveError};
use std::sync::Arc;

/// Returns the declared size of the payload: of the body, or of the content of an `aws-chunked` body.
///
/// # Errors
/// `MissingContentLength`, `EntityTooLarge`; `NotImplemented` for `Content-Range`; those of [`decoded_size`].
pub(crate) fn declared_size(call: &Call<'_>) -> S3Result<u64> {
    if call.fields.get("content-range").is_some() {
        return Err(S3Error::not_implemented(
            "Writing a part of an object is not implemented: put the complete object without Content-Range.",
        ));
    }
    let size = match (call.authentication.payload, call.head.framing()) {
        (PayloadDigest::Chunked(_), framing) => decoded_size(call.fields, framing)?,
        (_, BodyFraming::Length(size)) => size,
        (_, BodyFraming::None | BodyFraming::Chunked) => return Err(ErrorCode::MissingContentLength.into()),
    };
    if size > REQUEST_PAYLOAD_BYTES_MAX {
        return Err(S3Error::new(ErrorCode::EntityTooLarge)
            .element("ProposedSize", size.to_string())
            .element("MaxSizeAllowed", REQUEST_PAYLOAD_BYTES_MAX.to_string()));
    }
    Ok(size)
}

/// Reads the whole body into a payload of `size` bytes for `key`, and checks its signatures and digests. Then checks that
/// the client may still write it.
///
/// # Errors
/// Those of the framing, the digests, the connection, the engine and [`Call::authorize_again`].
pub(crate) async fn receive_payload(
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
    object: (&Arc<Bucket>, &ObjectKey),
    size: u64,
    mut digests: BodyDigests,
) -> S3Result<(StagedPayload, CheckedChecksum)> {
    let payload = if let PayloadDigest::Chunked(_) = call.authentication.payload {
        // Boxed, so that other requests hold no room for the decoder.
        Box::pin(receive_chunked(call, body, object, size, &mut digests)).await?
    } else {
        assert_eq!(body.remaining(), size, "the payload is the whole body");
        receive(call, body, object, size, &mut digests).await?
    };
    let checksum = digests.check(payload.md5())?;
    call.authorize_again()?;
    Ok((payload, checksum))
}

/// Reads the content of an `aws-chunked` body, and its trailer.
async fn receive_chunked(
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
    object: (&Arc<Bucket>, &ObjectKey),
    size: u64,
    digests: &mut BodyDigests,
) -> S3Result<StagedPayload> {
    let signatures = call.authentication.chunk_signatures.clone();
    let decoder = Decoder::new(size, signatures, digests.trailing());
    let mut source = ChunkedSource::new(body, decoder);
    let payload = receive(call, &mut source, object, size, digests).await?;
    if let Some(checksum) = source.finish().await? {
        digests.declare_trailing(checksum);
    }
    Ok(payload)
}

/// Reads the file of a form into a payload for `key`, and checks its digests. Then checks that the client may still write it.
///
/// # Errors
/// Those of the form, the digests, the connection, the engine and [`Call::authorize_again`].
pub(crate) async fn receive_file(
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
    form: &Form,
    object: (&Arc<Bucket>, &ObjectKey),
    mut digests: BodyDigests,
) -> S3Result<(StagedPayload, CheckedChecksum)> {
    let mut source = form.source(body);
    let (size_max, wants_md5) = (form.size_max(), digests.wants_md5());
    let observe = |bytes: &[u8]| digests.update(bytes);
    let received = cairn_transfer::receive_payload_to_end(
        call.engine,
        &mut source,
        object,
        size_max,
        wants_md5,
        observe,
    );
    let payload = received.await.map_err(receive_error)?;
    source.finish().await?;
    let checksum = digests.check(payload.md5())?;
    call.authorize_again()?;
    Ok((payload, checksum))
}

async fn receive<S: BodyReader>(
    call: &Call<'_>,
    source: &mut S,
    object: (&Arc<Bucket>, &ObjectKey),
    size: u64,
    digests: &mut BodyDigests,
) -> S3Result<StagedPayload>
where
    S3Error: From<S::Error>,
{
    let wants_md5 = digests.wants_md5();
    let observe = |bytes: &[u8]| digests.update(bytes);
    let received = cairn_transfer::receive_payload(call.engine, source, object, size, wants_md5, observe);
    received.await.map_err(receive_error)
}

fn receive_error<E>(error: ReceiveError<E>) -> S3Error
where
    S3Error: From<E>,
{
    match error {
        ReceiveError::Engine(error) => error.into(),
        ReceiveError::Body(error) => error.into(),
        ReceiveError::TooSlow => {
            let message = "The body arrived too slowly while other uploads waited for memory; try again.";
            S3Error::with_message(ErrorCode::RequestTimeout, message).closing()
        }
    }
}
