//! The shutdown signal: given once, seen by all executors.
//!
//! It consists of atomics. [`Drain::begin`] may be called on any thread, and a check costs one load. Connections notice
//! within a quarter of a second.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const RUNNING: u8 = 0;
const DRAINING: u8 = 1;
const ABORTED: u8 = 2;

/// The shutdown signal and the end of its grace period. Clones share one signal.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: AtomicU8,
    /// Set once, before `state` leaves [`RUNNING`].
    deadline: OnceLock<Instant>,
}

impl Drain {
    /// Makes a signal that has not been given.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a graceful shutdown: stops accepting, closes idle connections and lets open requests finish with
    /// `Connection: close`. Whatever is left after `grace` is aborted. Only the first call has an effect.
    pub fn begin(&self, grace: Duration) {
        // An `Instant` has an upper bound, so longer grace periods are cut to a day.
        let grace = grace.min(Duration::from_secs(24 * 3600));
        let _ = self.shared.deadline.set(Instant::now() + grace);
        let _ = self.shared.state.compare_exchange(RUNNING, DRAINING, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Aborts everything now, as a second signal does.
    pub fn abort(&self) {
        self.shared.state.store(ABORTED, Ordering::Release);
    }

    /// Returns whether the shutdown has begun. Readiness answers 503 from then on.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.shared.state.load(Ordering::Acquire) != RUNNING
    }

    /// Returns whether the grace period is over or was cut short.
    #[must_use]
    pub fn is_over(&self, now: Instant) -> bool {
        match self.shared.state.load(Ordering::Acquire) {
            RUNNING => false,
            DRAINING => now >= self.deadline(),
            _ => true,
        }
    }

    /// Returns what is left of the grace period, zero when it was cut short, and `None` before the shutdown.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        match self.shared.state.load(Ordering::Acquire) {
            RUNNING => None,
            DRAINING => Some(self.deadline().saturating_duration_since(Instant::now())),
            _ => Some(Duration::ZERO),
        }
    }

    fn deadline(&self) -> Instant {
        *self.shared.deadline.get().expect("the deadline is set before the state becomes DRAINING")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grace_period_ends_by_time_or_by_abort() {
        let drain = Drain::new();
        let now = Instant::now();
        assert!(!drain.is_begun() && !drain.is_over(now) && drain.time_left().is_none());
        drain.begin(Duration::from_secs(3600));
        assert!(drain.time_left().is_some_and(|left| left > Duration::from_secs(3500)));
        assert!(drain.clone().is_begun() && !drain.is_over(now));
        drain.begin(Duration::ZERO);
        assert!(!drain.is_over(Instant::now()), "a second begin must not shorten the grace period");
        assert!(drain.is_over(now + Duration::from_secs(3601)));
        drain.abort();
        assert!(drain.is_over(now));
        assert_eq!(drain.time_left(), Some(Duration::ZERO));
    }

    #[test]
    fn an_endless_grace_period_is_harmless() {
        let drain = Drain::new();
        drain.begin(Duration::MAX);
        assert!(!drain.is_over(Instant::now()));
    }
}
