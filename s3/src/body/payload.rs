//! Bodies that become payloads: those of PutObject and UploadPart.
//!
//! Bytes go from the socket into the engine's buffer and are digested there. What was staged is dropped, and its space
//! given back, on every way out but the last.

use crate::body::digests::{BodyDigests, CheckedChecksum};
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use cairn_engine::{Bucket, Recall, StagedPayload};
use cairn_http1::BodyFraming;
use cairn_model::ObjectKey;
use cairn_net::{RequestBody, Turns};
use std::sync::Arc;

/// Largest object or part that one request makes: 5 GiB (AWS: "Uploading objects", "Multipart upload limits", "Copying
/// objects").
pub(crate) const SIZE_MAX: u64 = 5 << 30;

/// The declared size of the body.
///
/// # Errors
/// `MissingContentLength`, `EntityTooLarge`; `NotImplemented` for a part of an object by `Content-Range`.
pub(crate) fn declared_size(call: &Call<'_>) -> S3Result<u64> {
    if call.fields.get("content-range").is_some() {
        return Err(S3Error::not_implemented(
            "Writing a part of an object is not implemented: put the whole object without Content-Range.",
        ));
    }
    match call.head.framing() {
        BodyFraming::Length(size) if size <= SIZE_MAX => Ok(size),
        BodyFraming::Length(size) => Err(S3Error::new(ErrorCode::EntityTooLarge)
            .element("ProposedSize", size.to_string())
            .element("MaxSizeAllowed", SIZE_MAX.to_string())),
        BodyFraming::None | BodyFraming::Chunked => Err(ErrorCode::MissingContentLength.into()),
    }
}

/// Reads the whole body into a payload of `size` bytes for `key`, and holds it against `digests`.
///
/// # Errors
/// What the digests, the connection or the engine give.
pub(crate) async fn receive_payload(
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
    (bucket, key): (&Arc<Bucket>, &ObjectKey),
    size: u64,
    mut digests: BodyDigests,
) -> S3Result<(StagedPayload, CheckedChecksum)> {
    let mut writer = call.engine.write_payload(bucket, key, size).await?;
    let recall = writer.recall();
    let mut turns = Turns::default();
    while body.remaining() > 0 {
        let buffer = writer.buffer().await?;
        let count = read_unless_recalled(body, buffer, &recall).await?;
        if count == 0 {
            return Err(S3Error::new(ErrorCode::IncompleteBody).closing());
        }
        digests.update(&buffer[..count]);
        writer.advance(count)?;
        turns.took(count).await;
    }
    let payload = writer.finish().await?;
    let checksum = digests.check(payload.md5())?;
    Ok((payload, checksum))
}

/// Reads from the body; ends the upload when it is too slow for the memory that it holds.
async fn read_unless_recalled(
    body: &mut RequestBody<'_>,
    buffer: &mut [u8],
    recall: &Recall,
) -> S3Result<usize> {
    let recalled = async {
        recall.asked().await;
        let message = "The body arrived too slowly while other uploads waited for memory; try again.";
        Err(S3Error::with_message(ErrorCode::RequestTimeout, message).closing())
    };
    futures_lite::future::or(async { Ok(body.read(buffer).await?) }, recalled).await
}
