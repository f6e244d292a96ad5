//! Verification on demand: reads objects from the device and compares them with their checks.
//!
//! Verification uses the same reads as clients ([`crate::read::pinned_payload::PinnedPayload::read_blocks`]), but bypasses
//! the cache, because a cached block says nothing about the device. It has lower priority than all requests of its executor,
//! reads one run at a time, and is throttled (`throttle.rs`). It pins what it reads, so that concurrent changes do not look
//! like damage. Dropping the future cancels it.
//!
//! The verifier is the only one to report this damage: once per finding, with bucket, key, version and block.

use crate::api::engine::Engine;
use crate::check::verifier::{VerifiedVersion, Verifier};
use crate::check::version_walk::VersionWalk;
use crate::error::EngineError;
use crate::format::keys;
use crate::format::scrub_record::VerifyPosition;
use crate::limits::CORRUPT_VERSIONS_MAX;
use crate::slice::Slice;
use crate::slice::lookup::named_sequence;
use crate::store::verify_progress::{VerificationStatus, VerifyProgress};
use crate::types::bucket::Bucket;
use cairn_model::{ObjectKey, VersionName};
use std::rc::Rc;
use std::sync::Arc;

/// The result of verifying a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketVerification {
    /// Versions verified.
    pub versions_verified: u64,
    /// Bytes of payloads read from the device.
    pub bytes_verified: u64,
    /// Versions found corrupt or missing.
    pub corrupt_versions: u64,
    /// The first [`CORRUPT_VERSIONS_MAX`] of them.
    pub corrupt: Vec<VerifiedVersion>,
    /// The position at which to continue; `None` when every version was verified.
    pub next: Option<VerifyPosition>,
}

impl Engine {
    /// Verifies one version of an object, by default the current one.
    ///
    /// # Errors
    /// [`EngineError::NoSuchKey`] or [`EngineError::NoSuchVersion`], also for a delete marker, and failures that say
    /// nothing about the object.
    pub async fn verify_object(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: Option<VersionName>,
        progress: &Arc<VerifyProgress>,
    ) -> Result<VerifiedVersion, EngineError> {
        let slice = Arc::clone(self.store().slice_of(bucket, key)?);
        let versions = keys::versions_of(bucket.id, key.as_bytes()).ok_or(EngineError::NoSuchKey)?;
        let missing = if version.is_some() { EngineError::NoSuchVersion } else { EngineError::NoSuchKey };
        let encoded = match version {
            Some(name) => named_key(&slice, &versions, name)?,
            None => newest_key(&slice, &versions)?,
        };
        let (engine, name) = (Rc::clone(self), bucket.name.to_string());
        let progress = Arc::clone(progress);
        self.in_background(async move {
            let verifier = Verifier::on_demand(engine, progress).await;
            verifier.verify(&slice, &name, &encoded).await?.ok_or(missing)
        })
        .await
    }

    /// Verifies the versions in a bucket after `from`, at most `versions_max`.
    ///
    /// # Errors
    /// Failures that say nothing about the stored data. Damage is part of the result.
    pub async fn verify_bucket(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        from: VerifyPosition,
        versions_max: u64,
        progress: &Arc<VerifyProgress>,
    ) -> Result<BucketVerification, EngineError> {
        let (engine, bucket, progress) = (Rc::clone(self), Arc::clone(bucket), Arc::clone(progress));
        self.in_background(async move {
            let bytes_before = progress.bytes();
            let mut walk = VersionWalk::new(Rc::clone(&engine), keys::prefix_of(bucket.id, &[]), from);
            let verifier = Verifier::on_demand(engine, Arc::clone(&progress)).await;
            let mut found = BucketVerification::default();
            while let Some(version) = walk.next()? {
                // `None`: the version was removed in the meantime.
                if let Some(verified) = verifier.verify_walked(&version, bucket.name.as_str()).await? {
                    found.add(verified);
                }
                if found.versions_verified >= versions_max {
                    found.next = Some(walk.position().clone());
                    break;
                }
            }
            found.bytes_verified = progress.bytes() - bytes_before;
            Ok(found)
        })
        .await
    }
}

impl BucketVerification {
    fn add(&mut self, verified: VerifiedVersion) {
        self.versions_verified += 1;
        if verified.status == VerificationStatus::Ok {
            return;
        }
        self.corrupt_versions += 1;
        if self.corrupt.len() < CORRUPT_VERSIONS_MAX {
            self.corrupt.push(verified);
        }
    }
}

/// Returns the encoded key of an object's newest version.
fn newest_key(slice: &Slice, versions: &[u8]) -> Result<Vec<u8>, EngineError> {
    let txn = slice.environment.read()?;
    let first = txn.keys(slice.tables.objects, versions)?.next().transpose()?;
    let found = first.filter(|key| key.starts_with(versions));
    found.map(<[u8]>::to_vec).ok_or(EngineError::NoSuchKey)
}

/// Returns the encoded key of the version that a client names.
fn named_key(slice: &Slice, versions: &[u8], name: VersionName) -> Result<Vec<u8>, EngineError> {
    let txn = slice.environment.read()?;
    let sequence = named_sequence(&txn, &slice.tables, versions, name)?;
    sequence.map(|sequence| keys::with_sequence(versions, sequence)).ok_or(EngineError::NoSuchVersion)
}
