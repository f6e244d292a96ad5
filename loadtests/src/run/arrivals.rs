//! Arrivals of an open loop: when each request is due, whatever the server does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const NANOSECONDS: u128 = 1_000_000_000;

/// Requests that become due at even intervals. Each free connection takes the next one.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// Requests per second.
    rate: u32,
    next: AtomicU64,
}

impl Arrivals {
    /// # Panics
    /// If the rate is 0.
    pub(crate) fn new(rate: u32) -> Self {
        assert!(rate > 0, "the plan was checked");
        Self { rate, next: AtomicU64::new(0) }
    }

    /// Takes the next request, and returns when it is due in a run that began at `begun`.
    pub(crate) fn take(&self, begun: Instant) -> Instant {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let after = u128::from(number) * NANOSECONDS / u128::from(self.rate);
        begun + Duration::from_nanos(u64::try_from(after).expect("a run ends within centuries"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_due_at_even_intervals() {
        let (arrivals, begun) = (Arrivals::new(3), Instant::now());
        let due: Vec<Duration> = (0..4).map(|_| arrivals.take(begun) - begun).collect();
        assert_eq!(due[3], Duration::from_secs(1));
        assert_eq!(due[..2], [Duration::ZERO, Duration::from_nanos(333_333_333)]);
    }
}
