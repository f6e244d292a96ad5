//! The highest time that a clock has shown.

use crate::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};

/// The highest time that a clock has shown. What has expired by it stays expired when the clock is set back.
///
/// It is accurate to [`Self::STEP_MILLIS`], because all cores read it for every request and each step is a write.
#[derive(Debug)]
pub struct HighestTime(AtomicU64);

impl HighestTime {
    /// Resolution in milliseconds.
    pub const STEP_MILLIS: u64 = 1000;

    /// Begins with the current time.
    #[must_use]
    pub const fn new(now: Timestamp) -> Self {
        Self(AtomicU64::new(now.0))
    }

    /// Takes note of the current time. Returns the later one of `now` and the highest time before it.
    pub fn observe(&self, now: Timestamp) -> Timestamp {
        let highest = self.0.load(Ordering::Acquire);
        if now.0 >= highest.saturating_add(Self::STEP_MILLIS) {
            self.0.fetch_max(now.0, Ordering::AcqRel);
        }
        Timestamp(now.0.max(highest))
    }

    /// Raises the highest time to `time`, without regard to the resolution.
    pub fn raise(&self, time: Timestamp) {
        self.0.fetch_max(time.0, Ordering::AcqRel);
    }

    /// Lowers the highest time to that of a clock that was set back.
    pub fn lower(&self, now: Timestamp) {
        self.0.store(now.0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::HighestTime;
    use crate::Timestamp;

    #[test]
    fn time_does_not_go_back_with_the_clock() {
        let highest = HighestTime::new(Timestamp(5000));
        assert_eq!(highest.observe(Timestamp(9000)), Timestamp(9000));
        assert_eq!(highest.observe(Timestamp(1)), Timestamp(9000));
        assert_eq!(highest.observe(Timestamp(10_000)), Timestamp(10_000));
    }

    #[test]
    fn steps_below_the_resolution_are_kept_only_when_raised() {
        let highest = HighestTime::new(Timestamp(5000));
        assert_eq!(highest.observe(Timestamp(5999)), Timestamp(5999));
        assert_eq!(highest.observe(Timestamp(1)), Timestamp(5000));
        highest.raise(Timestamp(5999));
        assert_eq!(highest.observe(Timestamp(1)), Timestamp(5999));
        highest.lower(Timestamp(2));
        assert_eq!(highest.observe(Timestamp(1)), Timestamp(2));
    }
}
