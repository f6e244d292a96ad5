//! Wall-clock time in milliseconds, clocks, and limits of age.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Returns whole seconds since the Unix epoch.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0 / 1000
    }
}

/// A source of the current time. Tests replace it.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The age beyond which data are removed.
#[derive(Clone)]
pub struct AgeLimit {
    /// The time for which data are kept.
    pub age_max: Duration,
    /// A clock that does not jump ahead. With a wrong date, everything would be too old at once.
    pub clock: Arc<dyn Clock>,
}

impl AgeLimit {
    /// Returns the time before which data are removed.
    #[must_use]
    pub fn oldest_kept(&self) -> Timestamp {
        let age = u64::try_from(self.age_max.as_millis()).unwrap_or(u64::MAX);
        Timestamp(self.clock.now().0.saturating_sub(age))
    }
}

/// The clock of the host.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}
