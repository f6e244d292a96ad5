//! The pace of background reads: whether requests arrive, and when the next read may begin.

use crate::limits::{BACKGROUND_BUSY, BACKGROUND_REST_MAX};
use crate::store::activity::Activities;
use cairn_sync::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pace of one or several background readers: what they remember between their reads. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    activities: Arc<Activities>,
    state: Arc<Mutex<PaceState>>,
}

#[derive(Debug)]
struct PaceState {
    /// Total number of requests at the last comparison.
    requests_seen: u64,
    busy_until: Option<Instant>,
    /// No read begins before this time.
    rest_until: Option<Instant>,
}

impl Pace {
    pub(crate) fn new(activities: &Arc<Activities>) -> Self {
        let state = PaceState { requests_seen: activities.total(), busy_until: None, rest_until: None };
        Self { activities: Arc::clone(activities), state: Arc::new(Mutex::new(state)) }
    }

    /// Returns whether requests began recently, or at an unknown time since the last comparison.
    pub(crate) fn is_busy(&self, now: Instant) -> bool {
        let total = self.activities.total();
        let mut state = self.state.lock();
        if total != state.requests_seen {
            state.requests_seen = total;
            state.busy_until = Some(now + BACKGROUND_BUSY);
        }
        state.busy_until.is_some_and(|until| now < until)
    }

    /// Adds a rest to those of all readers. The sum is limited, like each rest.
    pub(crate) fn add_rest(&self, now: Instant, rest: Duration) {
        let mut state = self.state.lock();
        let begins = state.rest_until.map_or(now, |until| until.max(now));
        state.rest_until = Some((begins + rest).min(now + BACKGROUND_REST_MAX));
    }

    /// Returns how long the rests of all readers last from `now` on.
    pub(crate) fn remaining_rest(&self, now: Instant) -> Duration {
        self.state.lock().rest_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }
}
