//! `PUT /api/v1/buckets/{bucket}/object/{key}`: the body streams into the engine as the object's content.
//!
//! All that can be refused without the body is refused before its first byte is read, which is also before a waiting client is
//! told to go on. What was staged is dropped, and its space given back, on every way out but the last.

use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_engine::limits::PAYLOAD_BYTES_MAX;
use cairn_engine::{
    Bucket, Engine, EngineError, ObjectInfo, ObjectLock, PutObject, PutOutcome, Recall, StagedPayload,
    WriteCondition,
};
use cairn_http1::{BodyFraming, RequestHead};
use cairn_model::{Etag, ObjectKey, Timestamp, VersionId};
use cairn_net::{RequestBody, Turns};
use http::StatusCode;

use super::headers;
use super::record::ObjectRecord;
use crate::call::{Call, unread};
use crate::error::AdminError;
use crate::reply::Reply;

pub(crate) async fn put(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let (bucket, key) = (call.bucket()?, call.key()?);
    let size = declared_size(call.head)?;
    let attributes = headers::from_request(call.head)?;
    let condition = condition(call.head)?;
    let declared_md5 = declared_md5(call.head)?;
    let engine = Rc::clone(call.engine()?);
    if condition.must_be_absent && engine.head_object(&bucket, &key, None).is_ok() {
        // The commit decides; this only spares a body that would be refused in the end.
        return Err(AdminError::PreconditionFailed);
    }
    let body = call.body.ok_or(AdminError::Internal)?;
    let payload = receive(&engine, body, (&bucket, &key), size).await?;
    if declared_md5.is_some_and(|md5| md5 != payload.md5()) {
        return Err(AdminError::invalid("the body does not have the digest that Content-MD5 declares"));
    }
    let etag = Etag::single(payload.md5());
    let put = PutObject { bucket, key, payload, etag, attributes, condition, lock: ObjectLock::default() };
    commit(&engine, put).await
}

/// Commits a new version and shows it.
pub(crate) async fn commit(engine: &Engine, put: PutObject) -> Result<Reply, AdminError> {
    let (bucket, key) = (Arc::clone(&put.bucket), put.key.clone());
    let info = ObjectInfo {
        size: put.payload.size(),
        etag: put.etag,
        last_modified: Timestamp(0),
        version: VersionId(0),
        is_null: true,
        attributes: put.attributes.clone(),
        encrypted: put.payload.is_encrypted(),
        lock: put.lock,
        parts: Vec::new(),
    };
    let outcome = engine.put_object(put).await.map_err(write_error)?;
    created(engine, (&bucket, &key), info, outcome)
}

/// Shows a new version, of which `info` is known beside the outcome.
pub(crate) fn created(
    engine: &Engine,
    (bucket, key): (&Arc<Bucket>, &ObjectKey),
    info: ObjectInfo,
    outcome: PutOutcome,
) -> Result<Reply, AdminError> {
    let PutOutcome { version, is_null, last_modified, .. } = outcome;
    let mut info = ObjectInfo { version, is_null, last_modified, ..info };
    // The bucket's default retention is the committer's to give; a version may be gone again by now.
    if let Ok(found) = engine.head_object(bucket, key, Some(info.version_name()))
        && found.version == info.version
    {
        info = found;
    }
    let body = ObjectRecord::new(bucket, key.to_string(), &info);
    let detail = format!("version {}, {} bytes", info.version_name(), info.size);
    Ok(Reply::json(StatusCode::CREATED, &body)?.header("etag", info.etag.quoted()).detail(detail))
}

/// What the engine refused of a write.
pub(crate) fn write_error(error: EngineError) -> AdminError {
    match error {
        EngineError::KeyTooLong => AdminError::invalid("the key has too many NUL bytes to be stored"),
        error => error.into(),
    }
}

/// The length of the body.
fn declared_size(head: &RequestHead) -> Result<u64, AdminError> {
    if head.header("content-range").is_some() {
        return Err(AdminError::invalid("an object is written whole: send no Content-Range"));
    }
    match head.framing() {
        BodyFraming::Length(size) if size <= PAYLOAD_BYTES_MAX => Ok(size),
        BodyFraming::Length(_) => Err(EngineError::PayloadTooLarge.into()),
        BodyFraming::None | BodyFraming::Chunked => Err(AdminError::Invalid(
            StatusCode::LENGTH_REQUIRED,
            "an upload must have a Content-Length".to_owned(),
        )),
    }
}

/// `If-None-Match: *` keeps what is there. Any other condition is refused rather than ignored.
fn condition(head: &RequestHead) -> Result<WriteCondition, AdminError> {
    for name in ["if-match", "if-modified-since", "if-unmodified-since"] {
        if head.header(name).is_some() {
            return Err(AdminError::invalid(format!("the route has no use for the header {name}")));
        }
    }
    match head.header("if-none-match") {
        None => Ok(WriteCondition::default()),
        Some(b"*") => Ok(WriteCondition { must_be_absent: true, ..WriteCondition::default() }),
        Some(_) => Err(AdminError::invalid("If-None-Match must be *")),
    }
}

fn declared_md5(head: &RequestHead) -> Result<Option<[u8; 16]>, AdminError> {
    let Some(value) = head.header("content-md5") else { return Ok(None) };
    let digest = STANDARD.decode(value).ok().and_then(|digest| digest.try_into().ok());
    digest.map(Some).ok_or_else(|| AdminError::invalid("Content-MD5 must be the Base64 of 16 bytes"))
}

/// Reads the whole body into a payload.
async fn receive(
    engine: &Rc<Engine>,
    body: &mut RequestBody<'_>,
    (bucket, key): (&Arc<Bucket>, &ObjectKey),
    size: u64,
) -> Result<StagedPayload, AdminError> {
    let mut writer = engine.write_payload(bucket, key, size).await.map_err(write_error)?;
    let recall = writer.recall();
    let mut turns = Turns::default();
    while body.remaining() > 0 {
        let buffer = writer.buffer().await?;
        let count = read_unless_recalled(body, buffer, &recall).await?;
        writer.advance(count)?;
        turns.took(count).await;
    }
    Ok(writer.finish().await?)
}

/// Reads from the body; ends the upload when it is too slow for the memory that it holds.
async fn read_unless_recalled(
    body: &mut RequestBody<'_>,
    buffer: &mut [u8],
    recall: &Recall,
) -> Result<usize, AdminError> {
    let recalled = async {
        recall.asked().await;
        let message = "the body arrived too slowly while other uploads waited for memory; try again";
        Err(AdminError::Invalid(StatusCode::REQUEST_TIMEOUT, message.to_owned()))
    };
    let read = async {
        match body.read(buffer).await {
            Ok(0) => Err(AdminError::invalid("the body could not be read to its end")),
            Ok(count) => Ok(count),
            Err(error) => Err(unread(&error)),
        }
    };
    futures_lite::future::or(read, recalled).await
}
