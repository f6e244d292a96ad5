//! The signal to stop: given once by whoever handles signals, seen by all executors.
//!
//! Only atomics: [`Drain::begin`] may be called from any thread, and looking costs a load. Connections notice within
//! a quarter of a second.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const RUNNING: u8 = 0;
const DRAINING: u8 = 1;
const ABORTED: u8 = 2;

/// The signal to stop, shared by all executors; also says when the grace period is over.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: AtomicU8,
    /// Written once, before `state` leaves [`RUNNING`].
    deadline: OnceLock<Instant>,
}

impl Drain {
    /// A signal that has not been given.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stop accepting, close idle connections, let requests in flight finish with `Connection: close`; after `grace`
    /// shut down what is left. Only the first call counts.
    pub fn begin(&self, grace: Duration) {
        // Instants cannot be added to without bound; a grace period of a day stands for all longer ones.
        let grace = grace.min(Duration::from_secs(24 * 3600));
        let _ = self.shared.deadline.set(Instant::now() + grace);
        let _ = self.shared.state.compare_exchange(RUNNING, DRAINING, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Shut everything down now, as for a second signal.
    pub fn abort(&self) {
        self.shared.state.store(ABORTED, Ordering::Release);
    }

    /// Whether the end has begun: readiness answers 503 from here on.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.shared.state.load(Ordering::Acquire) != RUNNING
    }

    /// Whether the grace period is over, or was cut short.
    #[must_use]
    pub fn is_over(&self, now: Instant) -> bool {
        match self.shared.state.load(Ordering::Acquire) {
            RUNNING => false,
            DRAINING => self.shared.deadline.get().is_none_or(|deadline| now >= *deadline),
            _ => true,
        }
    }

    /// What is left of the grace period, which is nothing when it was cut short; None while the signal was not given.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        match self.shared.state.load(Ordering::Acquire) {
            RUNNING => None,
            DRAINING => {
                self.shared.deadline.get().map(|deadline| deadline.saturating_duration_since(Instant::now()))
            }
            _ => Some(Duration::ZERO),
        }
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
