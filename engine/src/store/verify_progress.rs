//! Progress of a verification.

use std::sync::atomic::{AtomicU64, Ordering};

/// The result of the verification of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerificationStatus {
    /// Record and payload are as they were written.
    Ok,
    /// A check does not match its bytes, or the device cannot read them.
    Corrupt,
    /// The record is valid, but it names extents that its volume does not have.
    Missing,
}

/// Progress of a verification, shared with observers.
#[derive(Debug, Default)]
pub struct VerifyProgress {
    versions: AtomicU64,
    pub(crate) bytes: AtomicU64,
    corrupt: AtomicU64,
}

impl VerifyProgress {
    /// Returns the number of verified versions.
    #[must_use]
    pub fn versions(&self) -> u64 {
        self.versions.load(Ordering::Relaxed)
    }

    /// Returns the payload bytes read from the device.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of versions found corrupt or missing.
    #[must_use]
    pub fn corrupt(&self) -> u64 {
        self.corrupt.load(Ordering::Relaxed)
    }

    /// Counts one verified version.
    pub(crate) fn count(&self, status: VerificationStatus) {
        self.versions.fetch_add(1, Ordering::Relaxed);
        if status != VerificationStatus::Ok {
            self.corrupt.fetch_add(1, Ordering::Relaxed);
        }
    }
}
