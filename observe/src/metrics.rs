//! The metrics that this crate counts, in one table: what befalls the process, the log and the audit trail, and the requests
//! (`request_figures.rs`).
//!
//! Each counter has a cache line to itself, so that two executors counting different things do not slow each other. What every
//! request adds to is counted for each executor apart.

use cairn_model::Tally;

use crate::exposition::{Family, MetricKind, MetricName, MetricValue, Sample};
use crate::request_figures;
use crate::request_log::RequestOutcome;

const fn counter(name: &'static str, help: &'static str) -> MetricName {
    MetricName { name, kind: MetricKind::Counter, help }
}

/// Requests by everything that is known of them.
pub(crate) const REQUESTS: MetricName = counter(
    "service_requests_total",
    "Requests answered or given up, by plane, method, route pattern, operation and class of status.",
);
/// How long they took.
pub(crate) const REQUEST_DURATION: MetricName = MetricName {
    name: "service_request_duration_seconds",
    kind: MetricKind::Histogram,
    help: "Time from the last byte of a request's head until its response was handed to the socket.",
};
/// Bytes of request bodies.
pub(crate) const REQUEST_BYTES: MetricName =
    counter("service_request_bytes_total", "Bytes of request bodies received.");
/// Bytes of response bodies.
pub(crate) const RESPONSE_BYTES: MetricName =
    counter("service_response_bytes_total", "Bytes of response bodies sent.");

/// A counter of the process, for what happens too seldom for executors to get in each other's way.
#[derive(Debug)]
#[repr(align(64))]
pub struct Counter {
    metric: MetricName,
    tally: Tally,
}

impl Counter {
    const fn new(name: &'static str, help: &'static str) -> Self {
        Self { metric: counter(name, help), tally: Tally::new() }
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.tally.add(count);
    }

    /// The value now.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.tally.value()
    }
}

/// Requests that the service failed: answered with a status of 500 or above, other than 501, 503, 505 and 507, or cut off
/// because the response's body could not be produced to its end.
pub static ERRORS: Counter =
    Counter::new("service_errors_total", "Requests that failed for a reason inside the service.");
/// Panics caught or not.
pub static PANICS: Counter = Counter::new("service_panics_total", "Panics of any thread.");
/// Log lines lost to a slow output.
pub static LOG_LINES_DROPPED: Counter =
    Counter::new("service_log_lines_dropped_total", "Log lines dropped because the log output was too slow.");
/// Failed writes of log lines.
pub static LOG_WRITES_FAILED: Counter =
    Counter::new("service_log_writes_failed_total", "Writes to the log output that failed.");
/// Audit records made durable.
pub static AUDIT_RECORDS: Counter =
    Counter::new("service_audit_records_total", "Audit records made durable.");
/// Audit records that could not be written, on a full disk or after a failure.
pub static AUDIT_RECORDS_FAILED: Counter =
    Counter::new("service_audit_records_failed_total", "Audit records that could not be written.");
/// Audit records left out because their source caused too many.
pub static AUDIT_RECORDS_LEFT_OUT: Counter = Counter::new(
    "service_audit_records_left_out_total",
    "Audit records left out because one source caused too many.",
);

/// Requests whose response did not end as it should.
const REQUESTS_CUT_SHORT: MetricName = counter(
    "service_requests_cut_short_total",
    "Requests whose exchange ended before its time, by outcome: client_gone, body_failed, deadline_passed.",
);

/// How many had each of the outcomes that cut a request short.
static CUT_SHORT: [(RequestOutcome, CutShort); 3] = [
    (RequestOutcome::ClientGone, CutShort(Tally::new())),
    (RequestOutcome::BodyFailed, CutShort(Tally::new())),
    (RequestOutcome::DeadlinePassed, CutShort(Tally::new())),
];

/// On a cache line of its own.
#[repr(align(64))]
struct CutShort(Tally);

/// Counts a request that did not end as it should.
pub(crate) fn note_cut_short(outcome: RequestOutcome) {
    if let Some((_, tally)) = CUT_SHORT.iter().find(|(one, _)| *one == outcome) {
        tally.0.add(1);
    }
}

fn cut_short() -> Family {
    let sample = |(outcome, tally): &(RequestOutcome, CutShort)| {
        Sample::labelled("outcome", outcome.name(), MetricValue::Whole(tally.0.value()))
    };
    Family { metric: REQUESTS_CUT_SHORT, samples: CUT_SHORT.iter().map(sample).collect() }
}

/// Every counter of the process that has no labels, in the order in which they are shown.
static COUNTERS: [&Counter; 7] = [
    &ERRORS,
    &PANICS,
    &LOG_LINES_DROPPED,
    &LOG_WRITES_FAILED,
    &AUDIT_RECORDS,
    &AUDIT_RECORDS_FAILED,
    &AUDIT_RECORDS_LEFT_OUT,
];

/// Every metric of this crate, with its values now.
#[must_use]
pub fn families() -> Vec<Family> {
    let of_process = COUNTERS.iter().map(|counter| Family {
        metric: counter.metric,
        samples: vec![Sample::plain(MetricValue::Whole(counter.value()))],
    });
    request_figures::families().into_iter().chain([cut_short()]).chain(of_process).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They were one number, and whoever saw it rise could not tell impatient clients from failing devices.
    #[test]
    fn each_way_of_being_cut_short_is_counted_apart_and_a_whole_response_is_none() {
        let read = || cut_short().samples;
        let before = read();
        note_cut_short(RequestOutcome::Complete);
        assert_eq!(read(), before);
        note_cut_short(RequestOutcome::BodyFailed);
        let counts = |samples: &[Sample]| -> Vec<(String, u64)> {
            let count = |sample: &Sample| match sample.value {
                MetricValue::Whole(count) => (sample.labels[0].1.clone(), count),
                _ => unreachable!("a counter"),
            };
            samples.iter().map(count).collect()
        };
        let (before, mut after) = (counts(&before), counts(&read()));
        let names: Vec<&str> = after.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["client_gone", "body_failed", "deadline_passed"]);
        after[1].1 -= 1;
        assert_eq!(after, before);
    }
}
