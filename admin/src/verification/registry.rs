//! Registry of the running verifications, with a limit on their number.

use std::sync::Arc;

use cairn_engine::{Bucket, VerifyProgress};
use cairn_model::{Clock, ObjectKey, SystemClock, Timestamp};
use cairn_sync::Mutex;

use crate::error::AdminError;
use crate::limits::VERIFICATIONS_MAX;

/// The running verifications. Shared by all executors.
#[derive(Clone, Default)]
pub struct Verifications(Arc<Mutex<Vec<Arc<RunningVerification>>>>);

/// A verification that runs.
pub(crate) struct RunningVerification {
    pub(crate) bucket: String,
    /// `None` when the whole bucket is verified.
    pub(crate) key: Option<String>,
    pub(crate) started_at: Timestamp,
    pub(crate) versions_expected: u64,
    pub(crate) bytes_expected: u64,
    pub(crate) progress: Arc<VerifyProgress>,
}

/// Permission to run one verification. Dropping it removes the verification from the registry.
pub(crate) struct VerificationPermit {
    registry: Verifications,
    pub(crate) running: Arc<RunningVerification>,
}

impl Verifications {
    /// Registers a verification of a bucket, or of one object of it.
    ///
    /// # Errors
    /// `TOO_MANY_REQUESTS` when [`VERIFICATIONS_MAX`] are running.
    pub(crate) fn admit(
        &self,
        bucket: &Bucket,
        key: Option<&ObjectKey>,
    ) -> Result<VerificationPermit, AdminError> {
        let mut all = self.0.lock();
        if all.len() >= VERIFICATIONS_MAX {
            return Err(AdminError::TooManyRequests(
                "the maximum number of verifications is already running".into(),
            ));
        }
        let usage = bucket.usage();
        let running = Arc::new(RunningVerification {
            bucket: bucket.name.to_string(),
            key: key.map(ToString::to_string),
            started_at: SystemClock.now(),
            versions_expected: if key.is_some() { 1 } else { usage.versions },
            bytes_expected: if key.is_some() { 0 } else { usage.version_bytes },
            progress: Arc::default(),
        });
        all.push(Arc::clone(&running));
        Ok(VerificationPermit { registry: self.clone(), running })
    }

    /// Returns the running verifications, in the order in which they began.
    pub(crate) fn all(&self) -> Vec<Arc<RunningVerification>> {
        self.0.lock().clone()
    }
}

impl Drop for VerificationPermit {
    fn drop(&mut self) {
        self.registry.0.lock().retain(|other| !Arc::ptr_eq(other, &self.running));
    }
}
