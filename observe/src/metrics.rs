//! The metrics of the process: one table of counters and gauges with fixed names, each an atomic of its own.
//!
//! Each value has a cache line to itself, so that two executors counting different things do not slow each other.

use std::sync::atomic::{AtomicU64, Ordering};

/// A value that only grows.
#[derive(Debug)]
#[repr(align(64))]
pub struct Counter {
    name: &'static str,
    label: Option<(&'static str, &'static str)>,
    help: &'static str,
    value: AtomicU64,
}

impl Counter {
    const fn new(
        name: &'static str,
        label: Option<(&'static str, &'static str)>,
        help: &'static str,
    ) -> Self {
        Self { name, label, help, value: AtomicU64::new(0) }
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.value.fetch_add(count, Ordering::Relaxed);
    }

    /// The value now.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    /// The metric's name, as scrapers see it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The label that tells metrics of the same name apart: its name and value.
    #[must_use]
    pub const fn label(&self) -> Option<(&'static str, &'static str)> {
        self.label
    }

    /// One sentence on what is counted.
    #[must_use]
    pub const fn help(&self) -> &'static str {
        self.help
    }
}

const DATA: Option<(&str, &str)> = Some(("plane", "data"));
const MANAGEMENT: Option<(&str, &str)> = Some(("plane", "management"));

const REQUESTS_HELP: &str = "Requests answered or given up.";
const BYTES_IN_HELP: &str = "Bytes of request bodies received.";
const BYTES_OUT_HELP: &str = "Bytes of response bodies sent.";

/// Requests that the service failed: answered with a status of 500 or above, other than 501, 503 and 505.
pub static ERRORS: Counter =
    Counter::new("service_errors_total", None, "Requests that failed for a reason inside the service.");
/// Requests on the data plane.
pub static REQUESTS_DATA: Counter = Counter::new("service_requests_total", DATA, REQUESTS_HELP);
/// Requests on the management plane.
pub static REQUESTS_MANAGEMENT: Counter = Counter::new("service_requests_total", MANAGEMENT, REQUESTS_HELP);
/// Body bytes received on the data plane.
pub static BYTES_IN_DATA: Counter = Counter::new("service_request_bytes_total", DATA, BYTES_IN_HELP);
/// Body bytes received on the management plane.
pub static BYTES_IN_MANAGEMENT: Counter =
    Counter::new("service_request_bytes_total", MANAGEMENT, BYTES_IN_HELP);
/// Body bytes sent on the data plane.
pub static BYTES_OUT_DATA: Counter = Counter::new("service_response_bytes_total", DATA, BYTES_OUT_HELP);
/// Body bytes sent on the management plane.
pub static BYTES_OUT_MANAGEMENT: Counter =
    Counter::new("service_response_bytes_total", MANAGEMENT, BYTES_OUT_HELP);
/// Requests whose response did not end as it should: client gone, body failed, deadline passed.
pub static REQUESTS_CUT_SHORT: Counter =
    Counter::new("service_requests_cut_short_total", None, "Requests whose exchange ended before its time.");
/// Panics caught or not.
pub static PANICS: Counter = Counter::new("service_panics_total", None, "Panics of any thread.");
/// Log lines lost to a slow output.
pub static LOG_LINES_DROPPED: Counter = Counter::new(
    "service_log_lines_dropped_total",
    None,
    "Log lines dropped because the log output was too slow.",
);
/// Failed writes of log lines.
pub static LOG_WRITES_FAILED: Counter =
    Counter::new("service_log_writes_failed_total", None, "Writes to the log output that failed.");
/// Audit records made durable.
pub static AUDIT_RECORDS: Counter =
    Counter::new("service_audit_records_total", None, "Audit records made durable.");
/// Audit records that could not be written, on a full disk or after a failure.
pub static AUDIT_RECORDS_FAILED: Counter =
    Counter::new("service_audit_records_failed_total", None, "Audit records that could not be written.");
/// Audit records left out because their source caused too many.
pub static AUDIT_RECORDS_LEFT_OUT: Counter = Counter::new(
    "service_audit_records_left_out_total",
    None,
    "Audit records left out because one source caused too many.",
);

/// Every metric, in the order in which they are shown.
pub static ALL: [&Counter; 14] = [
    &ERRORS,
    &REQUESTS_DATA,
    &REQUESTS_MANAGEMENT,
    &BYTES_IN_DATA,
    &BYTES_IN_MANAGEMENT,
    &BYTES_OUT_DATA,
    &BYTES_OUT_MANAGEMENT,
    &REQUESTS_CUT_SHORT,
    &PANICS,
    &LOG_LINES_DROPPED,
    &LOG_WRITES_FAILED,
    &AUDIT_RECORDS,
    &AUDIT_RECORDS_FAILED,
    &AUDIT_RECORDS_LEFT_OUT,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_tell_all_metrics_apart() {
        for (index, counter) in ALL.iter().enumerate() {
            assert!(counter.name().starts_with("service_"));
            assert!(counter.help().ends_with('.'));
            let twin = ALL[..index]
                .iter()
                .any(|other| (other.name(), other.label()) == (counter.name(), counter.label()));
            assert!(!twin, "{} twice", counter.name());
        }
    }
}
