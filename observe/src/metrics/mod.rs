//! Metrics of this crate: the process, the log, the audit trail and requests.

mod family;
mod plane_totals;
mod process_counters;
mod request_metrics;

pub use family::{Family, MetricKind, MetricName, MetricValue, Sample};
pub use plane_totals::{PlaneTotals, plane_totals};
pub(crate) use process_counters::record_cut_short;
pub use process_counters::{
    AUDIT_RECORDS, AUDIT_RECORDS_FAILED, AUDIT_RECORDS_LEFT_OUT, ERRORS, LOG_LINES_DROPPED,
    LOG_WRITES_FAILED, PANICS, PUBLIC_REQUESTS, ProcessCounter,
};
pub(crate) use request_metrics::record_request;

/// Returns every metric of this crate with its current values.
#[must_use]
pub fn families() -> Vec<Family> {
    request_metrics::families().into_iter().chain(process_counters::families()).collect()
}
