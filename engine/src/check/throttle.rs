//! Throttle for background reads.
//!
//! In an idle store, background work reads at full speed or at a configured rate. While requests arrive, it reads one block
//! at a time and then rests for a multiple of the time that the read took, so that a slow device gets longer rests. Each
//! executor counts its requests, and a [`Throttle`] compares the total between two reads.
//!
//! Work that clients can start again and again has one [`Pace`] per store. So what one run has read, the next one rests for,
//! also if the first one was cancelled, and several runs at once rest for each other.

use crate::limits::{BACKGROUND_REST_FACTOR, BACKGROUND_REST_MIN, BACKGROUND_RUN_BLOCKS};
use crate::store::activity::Activities;
use crate::store::pace::Pace;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The throttle of one background reader.
pub(crate) struct Throttle {
    pace: Pace,
    /// Most bytes per second; `None` means no limit in an idle store.
    bytes_per_second: Option<u64>,
}

impl Throttle {
    /// The throttle of a reader that runs as long as the store is open.
    pub(crate) fn new(activities: &Arc<Activities>, bytes_per_second: Option<u64>) -> Self {
        Self { pace: Pace::new(activities), bytes_per_second }
    }

    /// The throttle of one of several readers with a common pace.
    pub(crate) fn at_pace(pace: &Pace) -> Self {
        Self { pace: pace.clone(), bytes_per_second: None }
    }

    /// Returns whether requests began recently.
    pub(crate) fn is_store_busy(&self) -> bool {
        self.pace.is_busy(Instant::now())
    }

    /// Most blocks of the next read.
    pub(crate) fn run_blocks(&self) -> u64 {
        if self.is_store_busy() { 1 } else { BACKGROUND_RUN_BLOCKS }
    }

    /// Waits for the rests of earlier reads, also those of other readers with the same pace, and begins a read.
    pub(crate) async fn begin(&self) -> BackgroundRead<'_> {
        self.wait_for_rest().await;
        BackgroundRead { throttle: self, begun: Instant::now(), bytes: 0 }
    }

    /// Rests after a read of `bytes` bytes that began at `begun`.
    pub(crate) async fn rest(&self, begun: Instant, bytes: u64) {
        self.note_read(begun, Instant::now(), bytes);
        self.wait_for_rest().await;
    }

    fn note_read(&self, begun: Instant, now: Instant, bytes: u64) {
        let took = now.saturating_duration_since(begun);
        let mut rest = Duration::ZERO;
        if self.pace.is_busy(now) {
            rest = (took * BACKGROUND_REST_FACTOR).max(BACKGROUND_REST_MIN);
        }
        if let Some(rate) = self.bytes_per_second {
            let share = Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / rate.max(1));
            rest = rest.max(share.saturating_sub(took));
        }
        self.pace.add_rest(now, rest);
    }

    async fn wait_for_rest(&self) {
        let rest = self.pace.remaining_rest(Instant::now());
        if rest.is_zero() {
            glommio::yield_if_needed().await;
        } else {
            glommio::timer::sleep(rest).await;
        }
    }
}

/// A read of a background reader. If it is dropped before its end, the next one rests for it.
pub(crate) struct BackgroundRead<'t> {
    throttle: &'t Throttle,
    begun: Instant,
    bytes: u64,
}

impl BackgroundRead<'_> {
    /// Ends the read, and rests.
    pub(crate) async fn end(mut self, bytes: u64) {
        self.bytes = bytes;
        let throttle = self.throttle;
        drop(self);
        throttle.wait_for_rest().await;
    }
}

impl Drop for BackgroundRead<'_> {
    fn drop(&mut self) {
        self.throttle.note_read(self.begun, Instant::now(), self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::BACKGROUND_REST_MAX;

    #[test]
    fn a_new_run_remembers_requests_and_rests_of_earlier_ones() {
        let activities = Arc::<Activities>::default();
        let pace = Pace::new(&activities);
        let requests = activities.add();
        let begun = Instant::now();
        assert!(!Throttle::at_pace(&pace).pace.is_busy(begun));
        requests.note();
        // A throttle of its own would take the request for an old one.
        let (first, second) = (Throttle::at_pace(&pace), Throttle::at_pace(&pace));
        assert!(first.pace.is_busy(begun) && !Throttle::new(&activities, None).pace.is_busy(begun));
        assert!(pace.remaining_rest(begun).is_zero());
        let took = Duration::from_millis(10);
        let ended = begun + took;
        first.note_read(begun, ended, 0);
        let once = took * BACKGROUND_REST_FACTOR;
        assert_eq!(pace.remaining_rest(ended), once);
        // Two readers at once rest for both.
        second.note_read(begun, ended, 0);
        assert_eq!(pace.remaining_rest(ended), 2 * once);
        let long_ago = begun.checked_sub(Duration::from_secs(60)).expect("the clock began earlier");
        second.note_read(long_ago, ended, 0);
        assert_eq!(pace.remaining_rest(ended), BACKGROUND_REST_MAX);
    }

    #[test]
    fn a_cancelled_read_is_rested_for() {
        let activities = Arc::<Activities>::default();
        let pace = Pace::new(&activities);
        activities.add().note();
        let (throttle, begun) = (Throttle::at_pace(&pace), Instant::now());
        drop(BackgroundRead { throttle: &throttle, begun, bytes: 0 });
        assert!(pace.remaining_rest(begun) >= BACKGROUND_REST_MIN);
    }
}
