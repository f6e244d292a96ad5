//! The failed flushes of a device.

use crate::error::is_no_space;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the failed flushes of a device. Clones count together.
///
/// A device that fails a flush may have dropped its cache, with completed writes to any of its files. A later flush succeeds and
/// proves nothing about them. So whoever relies on a flush notes the number before the first of the flushed writes, and compares
/// it after the flush.
#[derive(Clone, Debug, Default)]
pub struct FlushFailures(Arc<AtomicU64>);

impl FlushFailures {
    /// Returns how many flushes have failed.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Counts a failed flush.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a failed flush, or a failed write that is flushed at once, and returns its result. A full disk is no failure.
    ///
    /// # Errors
    /// That of `result`.
    pub fn counted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.as_ref().is_err_and(|error| !is_no_space(error)) {
            self.add();
        }
        result
    }

    /// Checks that no flush has failed since there were `before` failures.
    ///
    /// # Errors
    /// If one has: what was written since then may be lost.
    pub fn check_none_since(&self, before: u64) -> io::Result<()> {
        if self.count() == before {
            return Ok(());
        }
        Err(io::Error::other(
            "a flush of the device has failed: it may have lost writes that no flush has confirmed",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::FlushFailures;
    use std::io;

    #[test]
    fn failures_count_for_all_clones_and_a_full_disk_is_none() {
        let failures = FlushFailures::default();
        let before = failures.count();
        for full in [27, 28, 122] {
            failures.counted::<()>(Err(io::Error::from_raw_os_error(full))).expect_err("as it was");
        }
        assert!(failures.counted(Ok(1)).is_ok_and(|value| value == 1));
        failures.check_none_since(before).expect("no flush has failed");
        assert!(failures.clone().counted::<()>(Err(io::Error::other("lost"))).is_err());
        failures.check_none_since(before).expect_err("one has failed");
        failures.check_none_since(failures.count()).expect("none since then");
    }
}
