//! How fast background reading goes: at full speed (or a given rate) in an idle store, in small steps with long rests
//! while requests are being served.
//!
//! Each executor counts its requests; a [`Pace`] looks at all of them between two reads. A step beside requests reads one
//! block and then rests for a multiple of the time that the read took, so that a slow device is left alone for longer.

use crate::limits::{
    BACKGROUND_BUSY, BACKGROUND_REST_FACTOR, BACKGROUND_REST_MAX, BACKGROUND_REST_MIN, BACKGROUND_RUN_BLOCKS,
};
use crate::store::Store;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests that one executor has begun; on a cache line of its own, for only that executor writes it.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Activity(AtomicU64);

impl Activity {
    /// Notes a request.
    pub(crate) fn note(&self) {
        // Only one thread writes, so nothing is lost without an atomic addition.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// The activities of all executors.
#[derive(Debug, Default)]
pub(crate) struct Activities(Mutex<Vec<Arc<Activity>>>);

impl Activities {
    /// A counter for one more executor.
    pub(crate) fn add(&self) -> Arc<Activity> {
        let activity = Arc::<Activity>::default();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&activity));
        activity
    }

    /// Requests begun on all executors.
    fn total(&self) -> u64 {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().fold(0, |total, one| total.wrapping_add(one.0.load(Ordering::Relaxed)))
    }
}

/// The pace of one background reader.
pub(crate) struct Pace {
    store: Arc<Store>,
    seen: u64,
    busy_until: Option<Instant>,
    /// Most bytes in a second; `None`: as fast as an idle store gives them.
    bytes_per_second: Option<u64>,
}

impl Pace {
    pub(crate) fn new(store: &Arc<Store>, bytes_per_second: Option<u64>) -> Self {
        let seen = store.activities.total();
        Self { store: Arc::clone(store), seen, busy_until: None, bytes_per_second }
    }

    /// Whether requests were begun a moment ago.
    fn is_busy(&mut self, now: Instant) -> bool {
        let total = self.store.activities.total();
        if total != self.seen {
            self.seen = total;
            self.busy_until = Some(now + BACKGROUND_BUSY);
        }
        self.busy_until.is_some_and(|until| now < until)
    }

    /// Most blocks that the next read may fetch.
    pub(crate) fn run_blocks(&mut self) -> u64 {
        if self.is_busy(Instant::now()) { 1 } else { BACKGROUND_RUN_BLOCKS }
    }

    /// Rests after a step that began at `begun` and read `bytes` bytes.
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
