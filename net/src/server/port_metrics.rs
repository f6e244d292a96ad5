//! The metrics of one port, summed over all executors.

use std::sync::Arc;

use cairn_model::{DURATION_BOUNDS, HistogramSnapshot, u64_of};

use crate::metrics::{ExecutorMetrics, HandshakeOutcome, TimeoutPhase};
use crate::server::listener_group::{AcceptedConnection, ListenerGroup};

/// The metrics of one port on all executors. May be read on any thread.
#[derive(Clone, Debug)]
pub struct PortMetrics {
    group: Arc<ListenerGroup<AcceptedConnection>>,
}

/// The values of [`PortMetrics`] at one time. Totals are since the start.
#[derive(Clone, Debug)]
pub struct PortSnapshot {
    /// Connections that are open.
    pub connections_open: u64,
    /// Connections accepted, including those refused afterwards.
    pub accepted: u64,
    /// Connections refused: beyond a limit, or for lack of descriptors.
    pub refused: u64,
    /// Idle connections closed to make room for others.
    pub evicted: u64,
    /// Unsigned requests that were ended to make room for others.
    pub unsigned_ended: u64,
    /// Requests that are open.
    pub requests_open: u64,
    /// Clients that exceeded a timeout, in the order of [`TimeoutPhase::ALL`].
    pub timeouts: [u64; TimeoutPhase::ALL.len()],
    /// Starts of TLS connections by outcome, in the order of [`HandshakeOutcome::ALL`]; all 0 without TLS.
    pub handshakes: [u64; HandshakeOutcome::ALL.len()],
    /// The delay in nanoseconds with which the executors ran a task that is due four times a second.
    pub delay: HistogramSnapshot,
}

impl PortMetrics {
    pub(crate) const fn of(group: Arc<ListenerGroup<AcceptedConnection>>) -> Self {
        Self { group }
    }

    /// Returns the current values.
    #[must_use]
    pub fn snapshot(&self) -> PortSnapshot {
        let executors = || self.group.metrics();
        let sum = |value: fn(&ExecutorMetrics) -> u64| executors().map(|metrics| value(metrics)).sum::<u64>();
        // Ended requests are read first. A request that ends between the two reads then counts as open, and the
        // difference is never negative.
        let requests_ended = sum(|metrics| metrics.requests_ended.value());
        let requests_started = sum(|metrics| metrics.requests_started.value());
        PortSnapshot {
            connections_open: u64_of(self.group.connections()),
            accepted: sum(|metrics| metrics.accepted.value()),
            refused: sum(|metrics| metrics.refused.value()),
            evicted: sum(|metrics| metrics.evicted.value()),
            unsigned_ended: sum(|metrics| metrics.unsigned_ended.value()),
            // Counters are relaxed atomics: another core may still see the end of a request before its start.
            requests_open: requests_started.saturating_sub(requests_ended),
            timeouts: TimeoutPhase::ALL
                .map(|phase| executors().map(|metrics| metrics.timeouts[phase as usize].value()).sum()),
            handshakes: HandshakeOutcome::ALL
                .map(|outcome| executors().map(|metrics| metrics.handshakes[outcome as usize].value()).sum()),
            delay: HistogramSnapshot::sum_of(
                &DURATION_BOUNDS,
                executors().map(|metrics| metrics.delay.snapshot()),
            ),
        }
    }
}
