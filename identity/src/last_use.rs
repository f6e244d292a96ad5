//! The time of a credential's last use.

use cairn_model::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shortest time between two recorded uses, in milliseconds. A busy credential then writes to memory that all cores read
/// once a second instead of with every request.
const USE_INTERVAL_MILLIS: u64 = 1000;

/// The time of a credential's last use, in milliseconds since the Unix epoch; 0 if never.
///
/// Executors set it. The directory's thread writes it to disk.
#[derive(Debug, Default)]
pub struct LastUse(AtomicU64);

impl LastUse {
    /// Records a use, unless one was recorded less than a second ago.
    pub fn record(&self, now: Timestamp) {
        let last = self.0.load(Ordering::Relaxed);
        // A recorded time in the future came from a clock that was wrong; `abs_diff` replaces it.
        if now.0.abs_diff(last) >= USE_INTERVAL_MILLIS {
            // If two executors compete, either time is good enough.
            let _ = self.0.compare_exchange(last, now.0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> Option<Timestamp> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&time| time > 0).map(Timestamp)
    }

    pub(crate) fn set(&self, time: Timestamp) {
        self.0.store(time.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_recorded_at_most_once_a_second() {
        let last = LastUse::default();
        assert_eq!(last.get(), None);
        for (now, expected) in [(5000, 5000), (5999, 5000), (6000, 6000), (5001, 6000), (2000, 2000)] {
            last.record(Timestamp(now));
            assert_eq!(last.get(), Some(Timestamp(expected)), "{now}");
        }
    }
}
