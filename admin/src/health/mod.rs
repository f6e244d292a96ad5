//! Readiness probes of subsystems, each on its own thread.
//!
//! No executor waits for a device.

mod coalesced_query;
mod readiness;

pub(crate) use coalesced_query::CoalescedQuery;
pub use readiness::{ProbeFuture, Readiness, SubsystemProbes, SubsystemProbesBuilder, SubsystemState};
