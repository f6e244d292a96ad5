//! The order of a shutdown: the data plane and the console stop first, then the management plane.
//!
//! While requests on the data plane finish, the management plane still responds: `/ready` with 503, so that load balancers
//! send requests elsewhere, and `/health` with 200, so that the process is not killed. Invariant: the management plane stops
//! when no executor serves the data plane any more, which is at the latest at the end of the grace period.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cairn_net::Drain;

/// The drains of the planes, shared by all executors.
#[derive(Clone)]
pub(crate) struct Shutdown {
    /// The drain of the data plane and of the console. Readiness uses it too.
    pub(crate) data: Drain,
    /// The drain of the management plane. It begins when the data plane has ended on every executor.
    pub(crate) management: Drain,
    data_planes: Arc<AtomicUsize>,
}

impl Shutdown {
    /// Creates the drains for this number of executors, each of which serves all planes.
    pub(crate) fn new(executors: usize) -> Self {
        Self {
            data: Drain::new(),
            management: Drain::new(),
            data_planes: Arc::new(AtomicUsize::new(executors)),
        }
    }

    /// Reports that this executor's data plane and console have ended. After the last one, the management plane gets the rest
    /// of the grace period.
    ///
    /// # Panics
    /// If it is called more often than there are executors.
    pub(crate) fn data_plane_ended(&self) {
        let before = self.data_planes.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "the data plane ends once on each executor");
        if before == 1 {
            self.management.begin(self.data.time_left().unwrap_or(Duration::ZERO));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_management_plane_ends_after_the_last_data_plane() {
        let shutdown = Shutdown::new(2);
        shutdown.data.begin(Duration::from_secs(3600));
        shutdown.data_plane_ended();
        assert!(!shutdown.management.is_begun());
        shutdown.clone().data_plane_ended();
        assert!(shutdown.management.is_begun() && !shutdown.management.is_over(Instant::now()));
    }

    #[test]
    fn both_planes_share_one_grace_period() {
        let shutdown = Shutdown::new(1);
        shutdown.data.begin(Duration::ZERO);
        shutdown.data_plane_ended();
        assert!(shutdown.management.is_over(Instant::now()));
    }
}
