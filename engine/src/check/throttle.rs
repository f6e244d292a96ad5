//! Throttle for background reads.
//!
//! In an idle store, background work reads at full speed or at a configured rate. While requests arrive, it reads one block
//! at a time and then rests for a multiple of the time that the read took, so that a slow device gets longer rests. Each
//! executor counts its requests, and a [`Throttle`] compares the total between two reads.

use crate::limits::{
    BACKGROUND_BUSY, BACKGROUND_REST_FACTOR, BACKGROUND_REST_MAX, BACKGROUND_REST_MIN, BACKGROUND_RUN_BLOCKS,
};
use crate::store::activity::Activities;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The throttle of one background reader.
pub(crate) struct Throttle {
    activities: Arc<Activities>,
    /// Total number of requests at the last comparison.
    requests_seen: u64,
    busy_until: Option<Instant>,
    /// Most bytes per second; `None` means no limit in an idle store.
    bytes_per_second: Option<u64>,
}

impl Throttle {
    pub(crate) fn new(activities: &Arc<Activities>, bytes_per_second: Option<u64>) -> Self {
        let requests_seen = activities.total();
        Self { activities: Arc::clone(activities), requests_seen, busy_until: None, bytes_per_second }
    }

    /// Whether requests began recently.
    fn is_busy(&mut self, now: Instant) -> bool {
        let total = self.activities.total();
        if total != self.requests_seen {
            self.requests_seen = total;
            self.busy_until = Some(now + BACKGROUND_BUSY);
        }
        self.busy_until.is_some_and(|until| now < until)
    }

    /// Whether requests began recently.
    pub(crate) fn is_store_busy(&mut self) -> bool {
        self.is_busy(Instant::now())
    }

    /// Most blocks of the next read.
    pub(crate) fn run_blocks(&mut self) -> u64 {
        if self.is_busy(Instant::now()) { 1 } else { BACKGROUND_RUN_BLOCKS }
    }

    /// Rests after a read of `bytes` bytes that began at `begun`.
    pub(crate) async fn rest(&mut self, begun: Instant, bytes: u64) {
        let now = Instant::now();
        let took = now.saturating_duration_since(begun);
        let mut rest = Duration::ZERO;
        if self.is_busy(now) {
            rest = (took * BACKGROUND_REST_FACTOR).max(BACKGROUND_REST_MIN);
        }
        if let Some(rate) = self.bytes_per_second {
            let share = Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / rate.max(1));
            rest = rest.max(share.saturating_sub(took));
        }
        if rest.is_zero() {
            glommio::yield_if_needed().await;
        } else {
            glommio::timer::sleep(rest.min(BACKGROUND_REST_MAX)).await;
        }
    }
}
