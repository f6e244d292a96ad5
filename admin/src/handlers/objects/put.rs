//! `PUT /api/v1/buckets/{bucket}/object/{key}`: streams the body into the engine as the object's content.
//!
//! Every check that does not need the body comes before its first byte is read, and therefore before a waiting client
//! is told to continue.

use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_engine::limits::PAYLOAD_BYTES_MAX;
use cairn_engine::{
    Bucket, Cause, ChecksumAlgorithm, Engine, EngineError, ObjectLock, PutObject, StagedPayload,
    WriteCondition,
};
use cairn_http1::{BodyFraming, RequestHead};
use cairn_model::{ObjectKey, u64_of, usize_of};
use cairn_net::RequestBody;
use cairn_transfer::checksum::RunningChecksum;
use cairn_transfer::{BodyReader, ReceiveError};
use http::StatusCode;

use super::headers;
use super::new_version::{commit, condition_at_commit, write_error};
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::request::body::body_error;

pub(crate) async fn put(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (bucket, key) = (call.bucket()?, call.key()?);
    let is_chunked = call.head.framing() == BodyFraming::Chunked;
    let size = if is_chunked { None } else { Some(declared_size(call.head)?) };
    let attributes = headers::from_request(call.head)?;
    let condition = condition(call.head)?;
    let declared_md5 = declared_md5(call.head)?;
    let engine = Rc::clone(call.engine()?);
    if condition != WriteCondition::default() && engine.head_object(&bucket, &key, None).is_ok() {
        // The commit decides. This check only avoids the transfer of a body that would be refused.
        return Err(AdminError::PreconditionFailed);
    }
    // The commit checks the quota again, with the size that is known then.
    engine.check_quota(&bucket, &key, bucket.settings().quota, size.unwrap_or(0)).map_err(write_error)?;
    // Only tests have no connection.
    let body = call.body.take().ok_or(AdminError::Internal)?;
    let (object, wants_md5) = ((&bucket, &key), declared_md5.is_some());
    let payload = match size {
        Some(size) => receive(&engine, body, object, size, wants_md5).await?,
        None => receive_chunked(&engine, body, object, wants_md5).await?,
    };
    if declared_md5.is_some() && declared_md5 != payload.md5() {
        return Err(AdminError::invalid("the body does not match Content-MD5"));
    }
    let condition = condition_at_commit(&call, &bucket, &key, condition)?;
    let etag = payload.etag();
    let (lock, origin) = (ObjectLock::default(), call.origin(Cause::Request));
    let put = PutObject { bucket, key, payload, etag, attributes, condition, lock, origin };
    commit(&engine, put).await
}

/// Returns the declared length of the body.
pub(crate) fn declared_size(head: &RequestHead) -> Result<u64, AdminError> {
    if head.header("content-range").is_some() {
        return Err(AdminError::invalid(
            "an object must be written as a whole: Content-Range is not supported",
        ));
    }
    match head.framing() {
        BodyFraming::Length(size) if size <= PAYLOAD_BYTES_MAX => Ok(size),
        BodyFraming::Length(_) => Err(EngineError::PayloadTooLarge.into()),
        BodyFraming::None | BodyFraming::Chunked => Err(AdminError::Invalid(
            StatusCode::LENGTH_REQUIRED,
            "this upload must have a Content-Length".to_owned(),
        )),
    }
}

/// Parses the write condition: `If-None-Match: *` does not overwrite. Any other condition is refused, not ignored.
fn condition(head: &RequestHead) -> Result<WriteCondition, AdminError> {
    headers::refuse_conditions(head, &["if-match", "if-modified-since", "if-unmodified-since"])?;
    match head.header("if-none-match") {
        None => Ok(WriteCondition::default()),
        Some(b"*") => Ok(WriteCondition::if_absent()),
        Some(_) => Err(AdminError::invalid("If-None-Match must be *")),
    }
}

fn declared_md5(head: &RequestHead) -> Result<Option<[u8; 16]>, AdminError> {
    let Some(value) = head.header("content-md5") else { return Ok(None) };
    let digest = STANDARD.decode(value).ok().and_then(|digest| digest.try_into().ok());
    digest.map(Some).ok_or_else(|| AdminError::invalid("Content-MD5 must be 16 bytes in Base64"))
}

/// Receives the whole body into a staged payload. It has an MD5 if `wants_md5`.
pub(crate) async fn receive(
    engine: &Rc<Engine>,
    body: &mut RequestBody<'_>,
    object: (&Arc<Bucket>, &ObjectKey),
    size: u64,
    wants_md5: bool,
) -> Result<StagedPayload, AdminError> {
    assert_eq!(body.remaining(), size, "the payload is the whole body");
    let received =
        receive_and_check(engine, body, object, (size, wants_md5, None), |error| body_error(&error));
    received.await.map(|(payload, _)| payload)
}

/// As [`receive`], from any source. Also returns the digest of the content by an algorithm. `of_body` makes the refusal of a
/// source that fails.
pub(crate) async fn receive_and_check<S: BodyReader>(
    engine: &Rc<Engine>,
    source: &mut S,
    object: (&Arc<Bucket>, &ObjectKey),
    (size, wants_md5, algorithm): (u64, bool, Option<ChecksumAlgorithm>),
    of_body: impl FnOnce(S::Error) -> AdminError,
) -> Result<(StagedPayload, Option<(ChecksumAlgorithm, Vec<u8>)>), AdminError> {
    let mut running = algorithm.map(|algorithm| (algorithm, RunningChecksum::new(algorithm)));
    let observe = |bytes: &[u8]| {
        if let Some((_, running)) = &mut running {
            running.update(bytes);
        }
    };
    let received = cairn_transfer::receive_payload(engine, source, object, size, wants_md5, observe).await;
    let payload = received.map_err(|error| receive_error(error, of_body))?;
    Ok((payload, running.map(|(algorithm, running)| (algorithm, running.finish()))))
}

/// Receives a body with the chunked transfer coding (RFC 9112 section 7.1), whose size shows at its end.
async fn receive_chunked(
    engine: &Rc<Engine>,
    body: &mut RequestBody<'_>,
    object: (&Arc<Bucket>, &ObjectKey),
    wants_md5: bool,
) -> Result<StagedPayload, AdminError> {
    body.accept_chunked();
    let (mut source, max) = (LimitedBody { body, left: PAYLOAD_BYTES_MAX }, PAYLOAD_BYTES_MAX);
    let received =
        cairn_transfer::receive_payload_to_end(engine, &mut source, object, max, wants_md5, |_| {}).await;
    received.map_err(|error| receive_error(error, |error| error))
}

fn receive_error<E>(error: ReceiveError<E>, of_body: impl FnOnce(E) -> AdminError) -> AdminError {
    match error {
        ReceiveError::Engine(error) => write_error(error),
        ReceiveError::Body(error) => of_body(error),
        ReceiveError::TooSlow => {
            let message = "the body arrived too slowly while other uploads waited for memory; try again";
            AdminError::Invalid(StatusCode::REQUEST_TIMEOUT, message.to_owned())
        }
    }
}

/// A body that fails when it has more bytes than an object may have.
struct LimitedBody<'b, 'c> {
    body: &'b mut RequestBody<'c>,
    left: u64,
}

impl BodyReader for LimitedBody<'_, '_> {
    type Error = AdminError;

    async fn read(&mut self, out: &mut [u8]) -> Result<usize, AdminError> {
        // With nothing left, one byte more shows whether the body has ended.
        let most = usize_of(self.left.max(1)).min(out.len());
        let count = self.body.read(&mut out[..most]).await.map_err(|error| body_error(&error))?;
        self.left = self.left.checked_sub(u64_of(count)).ok_or(EngineError::PayloadTooLarge)?;
        Ok(count)
    }

    fn abandon(&mut self) {
        self.body.abandon();
    }
}
