//! The routes of verifications: of an object, of a bucket, of an import, and the progress.
//!
//! A verification is cancelled when its client disconnects. The number of running ones is limited.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_api::{
    BucketVerification, CorruptVersion, ObjectVerification, Proof, SignBackupManifest, SignImportReport,
    SignedImportReport, VerificationProgress, VerifiedBucket, VerifiedObject, VerifyBucket,
};
use cairn_engine::{Engine, EngineError, VerificationStatus, VerifiedVersion, VerifyPosition};
use cairn_http1::iso8601_millis;
use cairn_model::{Clock, SystemClock};
use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::verification::{RunningVerification, VerificationPermit, signed_proof};

/// `POST /api/v1/verify/objects/{bucket}/{key}[?version_id=]`.
pub(crate) async fn object(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (bucket, key, version) = (call.bucket()?, call.key()?, call.version()?);
    let engine = call.engine()?;
    let permit = call.context.verifications.admit(&bucket, Some(&key))?;
    let work = async {
        let verified = engine.verify_object(&bucket, &key, version, &permit.running.progress).await;
        verified.map_err(|error| match error {
            EngineError::NoSuchVersion => AdminError::VersionNotFound,
            error => error.into(),
        })
    };
    let verified = call.wait_for_read(work).await?;
    let found = VerifiedObject {
        bucket: bucket.name.to_string(),
        key: verified.key,
        version_id: verified.version.to_string(),
        size: verified.size,
        status: status_text(verified.status).into(),
        blocks_checked: verified.blocks_checked,
        detail: verified.detail,
    };
    let proof = proof(engine, "object", &permit, &found)?;
    reply(&ObjectVerification { found, proof })
}

/// `POST /api/v1/verify/buckets/{bucket}`.
pub(crate) async fn bucket(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let request: VerifyBucket = call.optional_json().await?;
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
    let verified = call.wait_for_read(work).await?;
    let found = VerifiedBucket {
        bucket: bucket.name.to_string(),
        complete: verified.next.is_none(),
        versions_verified: verified.versions_verified,
        bytes_verified: verified.bytes_verified,
        corrupt_count: verified.corrupt_versions,
        corrupt: verified.corrupt.into_iter().map(corrupt_version).collect(),
        next_continuation_token: verified.next.as_ref().map(encode_position),
        continuation_token: request.continuation_token,
    };
    let proof = proof(engine, "bucket", &permit, &found)?;
    reply(&BucketVerification { found, proof })
}

/// `POST /api/v1/verify/imports`: signs a report of `cairn import verify`. The signature says when this store got it.
pub(crate) async fn import_report(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let SignImportReport { report } = call.json().await?;
    let proof = signed(&call, report, "report", "import")?;
    // The console shows it until the service ends. The importer keeps it in a file.
    call.context.imports.keep_report(proof.clone());
    reply(&SignedImportReport { proof })
}

/// `POST /api/v1/verify/backups`: signs the manifest of `cairn backup to`.
pub(crate) async fn backup_manifest(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let SignBackupManifest { manifest } = call.json().await?;
    reply(&SignedImportReport { proof: signed(&call, manifest, "manifest", "backup")? })
}

/// Signs what a client has found, as a proof of this kind.
fn signed(
    call: &Call<'_, '_>,
    mut payload: Map<String, Value>,
    member: &str,
    kind: &str,
) -> Result<Proof, AdminError> {
    if payload.values().any(has_fraction) {
        return Err(AdminError::invalid(format!("{member}: numbers must be whole")));
    }
    payload.insert("kind".to_owned(), kind.into());
    payload.insert("signed_at".to_owned(), iso8601_millis(SystemClock.now().0).into());
    Ok(signed_proof(call.engine()?.store(), payload))
}

/// Returns whether there is a number in a value that has no canonical form.
fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_fraction),
        Value::Object(members) => members.values().any(has_fraction),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

fn corrupt_version(version: VerifiedVersion) -> CorruptVersion {
    CorruptVersion {
        key: version.key,
        version_id: version.version.to_string(),
        status: status_text(version.status).into(),
        detail: version.detail,
    }
}

/// Returns the signed proof of findings. It adds what was verified, when, and by which store.
fn proof(
    engine: &Engine,
    kind: &str,
    permit: &VerificationPermit,
    found: &impl Serialize,
) -> Result<Proof, AdminError> {
    let Ok(Value::Object(mut payload)) = serde_json::to_value(found) else {
        return Err(AdminError::Internal);
    };
    payload.insert("kind".to_owned(), kind.into());
    payload.insert("started_at".to_owned(), iso8601_millis(permit.running.started_at.0).into());
    payload.insert("completed_at".to_owned(), iso8601_millis(SystemClock.now().0).into());
    Ok(signed_proof(engine.store(), payload))
}

/// Returns a reply with members in the order of their names, as in the payload of the proof.
fn reply(body: &impl Serialize) -> Result<Reply, AdminError> {
    Reply::json(StatusCode::OK, &serde_json::to_value(body).map_err(|_| AdminError::Internal)?)
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

/// `GET /api/v1/verify/progress`: the running verifications.
pub(crate) async fn progress(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let one = |running: &Arc<RunningVerification>| cairn_api::RunningVerification {
        bucket: running.bucket.clone(),
        key: running.key.clone(),
        started_at: running.started_at.into(),
        versions_verified: running.progress.versions(),
        versions_expected: running.versions_expected,
        bytes_verified: running.progress.bytes(),
        bytes_expected: running.bytes_expected,
        corrupt_versions: running.progress.corrupt(),
    };
    let verifications = call.context.verifications.all().iter().map(one).collect();
    Reply::json(StatusCode::OK, &VerificationProgress { verifications })
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
