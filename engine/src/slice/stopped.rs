//! The latch that refuses changes of a slice, with its reason.

use std::sync::atomic::{AtomicBool, Ordering};

use cairn_sync::Mutex;

/// Stops all changes of a slice, or of the bucket catalog, after a failure of the device.
#[derive(Debug, Default)]
pub(crate) struct Stopped {
    is_set: AtomicBool,
    reason: Mutex<Option<String>>,
}

impl Stopped {
    /// Returns the reason why no change is accepted, if there is one.
    pub(crate) fn get(&self) -> Option<String> {
        if self.is_set() { self.reason.lock().clone() } else { None }
    }

    /// Returns whether no change is accepted.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Stops all changes. Returns whether they were not stopped yet; otherwise the first reason is kept.
    pub(crate) fn set(&self, reason: String) -> bool {
        let mut first = self.reason.lock();
        let is_first = first.is_none();
        first.get_or_insert(reason);
        self.is_set.store(true, Ordering::Release);
        is_first
    }

    /// Accepts changes again.
    pub(crate) fn clear(&self) {
        let mut reason = self.reason.lock();
        self.is_set.store(false, Ordering::Release);
        *reason = None;
    }
}
