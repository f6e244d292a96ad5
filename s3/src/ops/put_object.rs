//! PutObject: a body of known length streams into the engine. Source: API Reference, PutObject.
//!
//! Every refusal that does not need the body comes before the first byte of it is read, which is also before a
//! waiting client is told to continue. Bytes go from the socket into the engine's buffer and are digested there. What
//! was staged is dropped, and its space given back, on every way out but the last.

use crate::attributes;
use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::body::turns::Turns;
use crate::call::Call;
use crate::conditions;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::lock_headers;
use crate::reply::Reply;
use crate::version::VERSION_HEADER;
use cairn_engine::{Attributes, PutObject, Recall};
use cairn_http1::{BodyFraming, StatusCode};
use cairn_model::Etag;
use cairn_net::RequestBody;

/// Largest object of one request: 5 GiB (AWS: "Uploading objects").
const SIZE_MAX: u64 = 5 << 30;

pub(crate) async fn put_object(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let size = size(call)?;
    let condition = conditions::of_put(call.fields)?;
    let attributes = attributes::from_request(call.fields)?;
    let lock = lock_headers::from_request(call.fields, &bucket.settings(), call.now)?;
    lock_headers::check_declared_digest(call.fields)?;
    let declared = declared::from_request(call.fields, call.authentication.payload)?;
    let conditional = condition != Default::default();
    if conditional {
        // The commit decides; this only spares a body that would be refused in the end.
        conditions::check_early(&condition, call.engine.head_object(&bucket, &key, None))?;
    }

    let mut writer = call.engine.write_payload(&bucket, &key, size).await?;
    let recall = writer.recall();
    let mut digests = BodyDigests::new(declared);
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

    let etag = Etag::single(payload.md5());
    let attributes = Attributes { checksums: checksum.into_iter().collect(), ..attributes };
    let mut reply = Reply::empty(StatusCode::OK);
    reply.head.header("etag", etag.quoted());
    attributes::write_checksums(&mut reply.head, &attributes);
    let put = PutObject { bucket, key, payload, etag, attributes, condition, lock };
    let put = call.engine.put_object(put).await;
    let outcome = put.map_err(|error| conditions::write_error(error, conditional))?;
    if !outcome.is_null {
        reply.head.header(VERSION_HEADER, outcome.version.to_string());
    }
    Ok(reply)
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

/// The declared size of the body.
fn size(call: &Call<'_>) -> S3Result<u64> {
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
