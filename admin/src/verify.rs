//! The verification routes: an object, a bucket, and how far those that run are.
//!
//! A verification lives as long as its client waits for it. At most [`VERIFICATIONS_MAX`] run at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_engine::{
    Bucket, Engine, EngineError, VerificationStatus, VerifiedVersion, VerifyPosition, VerifyProgress,
};
use cairn_http1::iso8601_millis;
use cairn_model::{Clock, ObjectKey, SystemClock};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::error::AdminError;
use crate::limits::VERIFICATIONS_MAX;
use crate::proof;
use crate::reply::Reply;

/// The verifications that run, shared by all executors.
#[derive(Clone, Default)]
pub struct Verifications(Arc<Mutex<Vec<Arc<Running>>>>);

struct Running {
    bucket: String,
    key: Option<String>,
    started_at: String,
    versions_expected: u64,
    bytes_expected: u64,
    progress: Arc<VerifyProgress>,
}

/// A place among the running ones; free again when dropped.
struct Admitted {
    among: Verifications,
    running: Arc<Running>,
}

impl Verifications {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Running>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, bucket: &Bucket, key: Option<&ObjectKey>) -> Result<Admitted, AdminError> {
        let mut all = self.lock();
        if all.len() >= VERIFICATIONS_MAX {
            return Err(AdminError::TooManyRequests("as many verifications as may run at once are running"));
        }
        let usage = bucket.usage();
        let running = Arc::new(Running {
            bucket: bucket.name.to_string(),
            key: key.map(ToString::to_string),
            started_at: now(),
            versions_expected: if key.is_some() { 1 } else { usage.versions },
            bytes_expected: if key.is_some() { 0 } else { usage.version_bytes },
            progress: Arc::default(),
        });
        all.push(Arc::clone(&running));
        Ok(Admitted { among: self.clone(), running })
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.among.lock().retain(|other| !Arc::ptr_eq(other, &self.running));
    }
}

fn now() -> String {
    iso8601_millis(SystemClock.now().0)
}

/// `POST /api/v1/verify/objects/{bucket}/{key}[?version_id=]`.
pub(crate) async fn object(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (bucket, key, version) = (call.bucket()?, call.key()?, call.version()?);
    call.no_body().await?;
    let engine = call.engine()?;
    let admitted = call.service.options.verifications.admit(&bucket, Some(&key))?;
    let work = async {
        let verified = engine.verify_object(&bucket, &key, version, &admitted.running.progress).await;
        verified.map_err(|error| match error {
            EngineError::NoSuchVersion => AdminError::VersionNotFound,
            error => error.into(),
        })
    };
    let verified = call.while_wanted(work).await?;
    let mut found = Map::new();
    found.insert("bucket".to_owned(), bucket.name.as_str().into());
    found.insert("key".to_owned(), verified.key.into());
    found.insert("version_id".to_owned(), verified.version.to_string().into());
    found.insert("size".to_owned(), verified.size.into());
    found.insert("status".to_owned(), status_text(verified.status).into());
    found.insert("blocks_checked".to_owned(), verified.blocks_checked.into());
    found.insert("detail".to_owned(), verified.detail.into());
    reply(engine, "object", &admitted, found)
}

/// The body of a bucket's verification; all of it may be left out.
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
        return Err(AdminError::invalid("maximum_versions must be 1 or more"));
    }
    let from = match &request.continuation_token {
        Some(token) => position(token)
            .ok_or_else(|| AdminError::invalid("continuation_token is not one that was given here"))?,
        None => VerifyPosition::START,
    };
    let engine = call.engine()?;
    let admitted = call.service.options.verifications.admit(&bucket, None)?;
    let work = async {
        let progress = &admitted.running.progress;
        Ok(engine.verify_bucket(&bucket, from, versions_max, progress).await?)
    };
    let verified = call.while_wanted(work).await?;
    let mut found = Map::new();
    found.insert("bucket".to_owned(), bucket.name.as_str().into());
    found.insert("complete".to_owned(), verified.next.is_none().into());
    found.insert("versions_verified".to_owned(), verified.versions_verified.into());
    found.insert("bytes_verified".to_owned(), verified.bytes_verified.into());
    found.insert("corrupt_count".to_owned(), verified.corrupt_versions.into());
    found.insert("corrupt".to_owned(), verified.corrupt.iter().map(corrupt_version).collect());
    let next = verified.next.as_ref().map(token);
    found.insert("next_continuation_token".to_owned(), next.into());
    if let Some(began) = request.continuation_token {
        found.insert("continuation_token".to_owned(), began.into());
    }
    reply(engine, "bucket", &admitted, found)
}

fn corrupt_version(version: &VerifiedVersion) -> Value {
    json!({
        "key": version.key,
        "version_id": version.version.to_string(),
        "status": status_text(version.status),
        "detail": version.detail,
    })
}

/// The answer: what was found, and the same signed with what was verified, when and by which store.
fn reply(
    engine: &Engine,
    kind: &str,
    admitted: &Admitted,
    found: Map<String, Value>,
) -> Result<Reply, AdminError> {
    let mut payload = found.clone();
    payload.insert("kind".to_owned(), kind.into());
    payload.insert("started_at".to_owned(), admitted.running.started_at.as_str().into());
    payload.insert("completed_at".to_owned(), now().into());
    let mut body = found;
    body.insert("proof".to_owned(), proof::bundle(engine.store(), payload));
    Reply::json(StatusCode::OK, &body)
}

const fn status_text(status: VerificationStatus) -> &'static str {
    match status {
        VerificationStatus::Ok => "ok",
        VerificationStatus::Corrupt => "corrupt",
        VerificationStatus::Missing => "missing",
    }
}

/// A position as clients carry it: opaque to them.
fn token(position: &VerifyPosition) -> String {
    URL_SAFE_NO_PAD.encode([&position.slice.to_be_bytes(), position.after.as_slice()].concat())
}

fn position(token: &str) -> Option<VerifyPosition> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (slice, after) = bytes.split_first_chunk::<2>()?;
    Some(VerifyPosition { slice: u16::from_be_bytes(*slice), after: after.to_vec() })
}

#[derive(Serialize)]
struct Progress {
    verifications: Vec<ProgressOfOne>,
}

#[derive(Serialize)]
struct ProgressOfOne {
    bucket: String,
    key: Option<String>,
    started_at: String,
    versions_verified: u64,
    versions_expected: u64,
    bytes_verified: u64,
    bytes_expected: u64,
    corrupt_versions: u64,
}

/// `GET /api/v1/verify/progress`: the verifications that run now.
pub(crate) async fn progress(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let one = |running: &Arc<Running>| ProgressOfOne {
        bucket: running.bucket.clone(),
        key: running.key.clone(),
        started_at: running.started_at.clone(),
        versions_verified: running.progress.versions(),
        versions_expected: running.versions_expected,
        bytes_verified: running.progress.bytes(),
        bytes_expected: running.bytes_expected,
        corrupt_versions: running.progress.corrupt(),
    };
    let verifications = call.service.options.verifications.lock().iter().map(one).collect();
    Reply::json(StatusCode::OK, &Progress { verifications })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_back_to_its_position_and_nothing_else_is_one() {
        for place in [VerifyPosition::START, VerifyPosition { slice: 63, after: vec![0, 255, 7] }] {
            assert_eq!(position(&token(&place)), Some(place));
        }
        for wrong in ["", "A", "?", "AA=="] {
            assert_eq!(position(wrong), None, "{wrong}");
        }
    }
}
