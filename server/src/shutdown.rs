//! The order in which the planes end: the data planes first, then the management plane.
//!
//! While requests on the data plane are given their time to finish, the management plane answers: `/ready` with 503, so
//! that whoever spreads the load looks elsewhere, and `/health` with 200, so that whoever watches the process does not
//! kill it. Invariant: management ends when no executor serves data any more, which is at the latest when the grace
//! period is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cairn_net::Drain;

/// The signals to stop of both planes, shared by all executors.
#[derive(Clone)]
pub(crate) struct Shutdown {
    /// Given to the data planes; readiness looks at it too.
    pub(crate) data: Drain,
    /// Given to the management planes, by the last data plane that has ended.
    pub(crate) management: Drain,
    data_planes: Arc<AtomicUsize>,
}

impl Shutdown {
    /// For so many executors, each of which serves both planes.
    pub(crate) fn new(executors: usize) -> Self {
        Self {
            data: Drain::new(),
            management: Drain::new(),
            data_planes: Arc::new(AtomicUsize::new(executors)),
        }
    }

    /// This executor's data plane has ended. What is left of the grace period goes to requests on the management plane.
    pub(crate) fn data_plane_ended(&self) {
        if self.data_planes.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.management.begin(self.data.time_left().unwrap_or(Duration::ZERO));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn management_ends_after_the_last_data_plane() {
        let shutdown = Shutdown::new(2);
        shutdown.data.begin(Duration::from_secs(3600));
        shutdown.data_plane_ended();
        assert!(!shutdown.management.is_begun());
        shutdown.clone().data_plane_ended();
        assert!(shutdown.management.is_begun() && !shutdown.management.is_over(Instant::now()));
    }

    #[test]
    fn management_gets_no_grace_period_of_its_own() {
        let shutdown = Shutdown::new(1);
        shutdown.data.begin(Duration::ZERO);
        shutdown.data_plane_ended();
        assert!(shutdown.management.is_over(Instant::now()));
    }
}
