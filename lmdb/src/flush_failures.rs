//! The failed flushes of a device.

use crate::error::is_no_space;
use cairn_sync::Mutex;
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the failed flushes of a device. Clones count together.
///
/// A device that fails a flush may have dropped its cache, with completed writes to any of its files. A later flush succeeds
/// and proves nothing about them. So whoever relies on a flush notes the number before the first of the flushed writes, and
/// compares it after the flush.
#[derive(Clone, Debug, Default)]
pub struct FlushFailures(Arc<Failures>);

#[derive(Debug, Default)]
struct Failures {
    count: AtomicU64,
    /// The error of the last one.
    last: Mutex<String>,
}

impl FlushFailures {
    /// Returns how many flushes have failed.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.count.load(Ordering::SeqCst)
    }

    /// Counts a failed flush. Later errors name its `cause`.
    pub fn add(&self, cause: impl Display) {
        *self.0.last.lock() = cause.to_string();
        self.0.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a failed flush, or a failed write that is flushed at once, and returns its result. A full disk is no failure.
    ///
    /// # Errors
    /// That of `result`.
    pub fn counted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let Some(cause) = result.as_ref().err().filter(|error| !is_no_space(error)) {
            self.add(cause);
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
        let cause = self.0.last.lock().clone();
        Err(io::Error::other(format!(
            "a flush of the device has failed ({cause}): it may have lost writes that no flush has confirmed"
        )))
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
        let error = failures.check_none_since(before).expect_err("one has failed");
        assert!(error.to_string().contains("(lost)"), "{error}");
        failures.check_none_since(failures.count()).expect("none since then");
    }
}
