//! Counters of requests, which throttle background work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_sync::Mutex;

/// Requests that one executor has begun; on a cache line of its own, for only that executor writes it.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Activity(AtomicU64);

impl Activity {
    /// Notes a request.
    pub(crate) fn note(&self) {
        // Only one thread writes, so nothing is lost without an atomic addition.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// The activities of all executors.
#[derive(Debug, Default)]
pub(crate) struct Activities(Mutex<Vec<Arc<Activity>>>);

impl Activities {
    /// A counter for one more executor.
    pub(crate) fn add(&self) -> Arc<Activity> {
        let activity = Arc::<Activity>::default();
        self.0.lock().push(Arc::clone(&activity));
        activity
    }

    /// Requests begun on all executors.
    pub(crate) fn total(&self) -> u64 {
        let all = self.0.lock();
        all.iter().fold(0, |total, one| total.wrapping_add(one.0.load(Ordering::Relaxed)))
    }
}
