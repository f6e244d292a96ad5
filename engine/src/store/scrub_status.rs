//! The state of the scrub of an open store.

use crate::format::scrub_record::ScrubRecord;
use crate::store::verify_progress::VerifyProgress;
use cairn_sync::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Progress and results of the scrub.
#[derive(Debug, Default)]
pub struct ScrubStatus {
    record: Mutex<ScrubRecord>,
    pub(crate) running: AtomicBool,
    /// The progress of verification since the process started.
    pub(crate) total: Arc<VerifyProgress>,
}

impl ScrubStatus {
    pub(crate) fn new(record: ScrubRecord) -> Self {
        Self { record: Mutex::new(record), ..Self::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ScrubRecord> {
        self.record.lock()
    }

    /// Returns the progress of the scrub.
    #[must_use]
    pub fn record(&self) -> ScrubRecord {
        self.lock().clone()
    }

    /// Returns whether a pass is in progress in this process.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    /// Returns what has been verified since the process started.
    #[must_use]
    pub fn total(&self) -> &VerifyProgress {
        &self.total
    }
}
