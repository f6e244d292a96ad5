//! The routes of verifications: of an object, of a bucket, and the progress of the running ones.
//!
//! A verification is cancelled when its client disconnects. The number of running ones is limited.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_engine::{Engine, EngineError, VerificationStatus, VerifiedVersion, VerifyPosition};
use cairn_http1::iso8601_millis;
use cairn_model::{Clock, SystemClock, Timestamp};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::verification::{RunningVerification, VerificationPermit, signed_proof};

fn time_text(time: Timestamp) -> String {
    iso8601_millis(time.0)
}

/// `POST /api/v1/verify/objects/{bucket}/{key}[?version_id=]`.
pub(crate) async fn object(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (bucket, key, version) = (call.bucket()?, call.key()?, call.version()?);
    call.no_body().await?;
    let engine = call.engine()?;
    let permit = call.context.verifications.admit(&bucket, Some(&key))?;
    let work = async {
        let verified = engine.verify_object(&bucket, &key, version, &permit.running.progress).await;
        verified.map_err(|error| match error {
            EngineError::NoSuchVersion => AdminError::VersionNotFound,
            error => error.into(),
        })
    };
    let verified = call.until_disconnect(work).await?;
    let mut found = Map::new();
    found.insert("bucket".to_owned(), bucket.name.as_str().into());
    found.insert("key".to_owned(), verified.key.into());
    found.insert("version_id".to_owned(), verified.version.to_string().into());
    found.insert("size".to_owned(), verified.size.into());
    found.insert("status".to_owned(), status_text(verified.status).into());
    found.insert("blocks_checked".to_owned(), verified.blocks_checked.into());
    found.insert("detail".to_owned(), verified.detail.into());
    signed_reply(engine, "object", &permit, found)
}

/// The body of a bucket verification. All fields are optional.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct BucketRequest {
    maximum_versions: Option<u64>,
    continuation_token: Option<String>,
}

/// `POST /api/v1/verify/buckets/{bucket}`.
pub(crate) async fn bucket(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    call.no_parameters()?;
    let request: BucketRequest = call.optional_json().await?;
    let versions_max = request.maximum_versions.unwrap_or(u64::MAX);
    if versions_max == 0 {
        return Err(AdminError::invalid("maximum_versions must be at least 1"));
    }
    let from = match &request.continuation_token {
        Some(token) => decode_position(token).ok_or_else(|| {
            AdminError::invalid("continuation_token is invalid: it must come from a response of this route")
        })?,
        None => VerifyPosition::START,
    };
    let engine = call.engine()?;
    let permit = call.context.verifications.admit(&bucket, None)?;
    let work = async {
        let progress = &permit.running.progress;
        Ok(engine.verify_bucket(&bucket, from, versions_max, progress).await?)
    };
    let verified = call.until_disconnect(work).await?;
    let mut found = Map::new();
    found.insert("bucket".to_owned(), bucket.name.as_str().into());
    found.insert("complete".to_owned(), verified.next.is_none().into());
    found.insert("versions_verified".to_owned(), verified.versions_verified.into());
    found.insert("bytes_verified".to_owned(), verified.bytes_verified.into());
    found.insert("corrupt_count".to_owned(), verified.corrupt_versions.into());
    found.insert("corrupt".to_owned(), verified.corrupt.iter().map(corrupt_version).collect());
    let next = verified.next.as_ref().map(encode_position);
    found.insert("next_continuation_token".to_owned(), next.into());
    if let Some(token) = request.continuation_token {
        found.insert("continuation_token".to_owned(), token.into());
    }
    signed_reply(engine, "bucket", &permit, found)
}

fn corrupt_version(version: &VerifiedVersion) -> Value {
    json!({
        "key": version.key,
        "version_id": version.version.to_string(),
        "status": status_text(version.status),
        "detail": version.detail,
    })
}

/// Returns the findings, with a signed proof that adds what was verified, when, and by which store.
fn signed_reply(
    engine: &Engine,
    kind: &str,
    permit: &VerificationPermit,
    found: Map<String, Value>,
) -> Result<Reply, AdminError> {
    let mut payload = found.clone();
    payload.insert("kind".to_owned(), kind.into());
    payload.insert("started_at".to_owned(), time_text(permit.running.started_at).into());
    payload.insert("completed_at".to_owned(), time_text(SystemClock.now()).into());
    let mut body = found;
    body.insert("proof".to_owned(), signed_proof(engine.store(), payload));
    Reply::json(StatusCode::OK, &body)
}

const fn status_text(status: VerificationStatus) -> &'static str {
    match status {
        VerificationStatus::Ok => "ok",
        VerificationStatus::Corrupt => "corrupt",
        VerificationStatus::Missing => "missing",
    }
}

/// Returns the continuation token of a position: opaque to clients.
fn encode_position(position: &VerifyPosition) -> String {
    URL_SAFE_NO_PAD.encode([&position.slice.to_be_bytes(), position.after.as_slice()].concat())
}

/// Returns the position of a continuation token; `None` when the token is invalid.
fn decode_position(token: &str) -> Option<VerifyPosition> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (slice, after) = bytes.split_first_chunk::<2>()?;
    Some(VerifyPosition { slice: u16::from_be_bytes(*slice), after: after.to_vec() })
}

#[derive(Serialize)]
struct Progress {
    verifications: Vec<VerificationProgress>,
}

#[derive(Serialize)]
struct VerificationProgress {
    bucket: String,
    key: Option<String>,
    started_at: String,
    versions_verified: u64,
    versions_expected: u64,
    bytes_verified: u64,
    bytes_expected: u64,
    corrupt_versions: u64,
}

/// `GET /api/v1/verify/progress`: the running verifications.
pub(crate) async fn progress(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let one = |running: &Arc<RunningVerification>| VerificationProgress {
        bucket: running.bucket.clone(),
        key: running.key.clone(),
        started_at: time_text(running.started_at),
        versions_verified: running.progress.versions(),
        versions_expected: running.versions_expected,
        bytes_verified: running.progress.bytes(),
        bytes_expected: running.bytes_expected,
        corrupt_versions: running.progress.corrupt(),
    };
    let verifications = call.context.verifications.all().iter().map(one).collect();
    Reply::json(StatusCode::OK, &Progress { verifications })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_round_trips_and_invalid_tokens_are_refused() {
        for start in [VerifyPosition::START, VerifyPosition { slice: 63, after: vec![0, 255, 7] }] {
            assert_eq!(decode_position(&encode_position(&start)), Some(start));
        }
        for wrong in ["", "A", "?", "AA=="] {
            assert_eq!(decode_position(wrong), None, "{wrong}");
        }
    }
}
