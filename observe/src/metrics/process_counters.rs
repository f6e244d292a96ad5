//! Counters of the whole process: failed requests, panics, the log and the audit trail.
//!
//! Each counter has its own cache line, so executors that count different things do not slow each other down. These
//! events are rare; what every request adds to is counted per thread (`request_metrics.rs`).

use cairn_model::Counter;

use super::family::{Family, MetricName, MetricValue, Sample};
use crate::request_record::RequestOutcome;

/// A counter of the process without labels.
#[derive(Debug)]
#[repr(align(64))]
pub struct ProcessCounter {
    metric: MetricName,
    count: Counter,
}

impl ProcessCounter {
    const fn new(name: &'static str, help: &'static str) -> Self {
        Self { metric: MetricName::counter(name, help), count: Counter::new() }
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.count.add(count);
    }

    /// Returns the current value.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.count.value()
    }
}

/// Requests that the service failed: answered with a status of 500 or above, other than 501, 503, 505 and 507, or cut off
/// because the response body could not be produced to its end.
pub static ERRORS: ProcessCounter =
    ProcessCounter::new("service_errors_total", "Requests that failed for a reason inside the service.");
/// Panics, caught or not.
pub static PANICS: ProcessCounter = ProcessCounter::new("service_panics_total", "Panics of any thread.");
/// Log lines lost because the output was too slow.
pub static LOG_LINES_DROPPED: ProcessCounter = ProcessCounter::new(
    "service_log_lines_dropped_total",
    "Log lines dropped because the log output was too slow.",
);
/// Failed writes of log lines.
pub static LOG_WRITES_FAILED: ProcessCounter =
    ProcessCounter::new("service_log_writes_failed_total", "Writes to the log output that failed.");
/// Audit records made durable.
pub static AUDIT_RECORDS: ProcessCounter =
    ProcessCounter::new("service_audit_records_total", "Audit records made durable.");
/// Audit records that could not be written because the disk was full or the device failed.
pub static AUDIT_RECORDS_FAILED: ProcessCounter =
    ProcessCounter::new("service_audit_records_failed_total", "Audit records that could not be written.");
/// Audit records left out because one source caused too many.
pub static AUDIT_RECORDS_LEFT_OUT: ProcessCounter = ProcessCounter::new(
    "service_audit_records_left_out_total",
    "Audit records left out because one source caused too many.",
);

/// Requests whose response did not end normally.
const REQUESTS_CUT_SHORT: MetricName = MetricName::counter(
    "service_requests_cut_short_total",
    "Requests whose exchange ended before its time, by outcome: client_gone, body_failed, deadline_passed.",
);

/// One counter for each outcome that cuts a request short.
static CUT_SHORT: [(RequestOutcome, PaddedCounter); 3] = [
    (RequestOutcome::ClientGone, PaddedCounter(Counter::new())),
    (RequestOutcome::BodyFailed, PaddedCounter(Counter::new())),
    (RequestOutcome::DeadlinePassed, PaddedCounter(Counter::new())),
];

/// A counter on its own cache line.
#[derive(Debug)]
#[repr(align(64))]
struct PaddedCounter(Counter);

/// Counts a request by its outcome. Does nothing for [`RequestOutcome::Complete`].
pub(crate) fn record_cut_short(outcome: RequestOutcome) {
    if let Some((_, count)) = CUT_SHORT.iter().find(|(counted, _)| *counted == outcome) {
        count.0.add(1);
    }
}

fn cut_short_family() -> Family {
    let sample = |(outcome, count): &(RequestOutcome, PaddedCounter)| {
        Sample::labelled("outcome", outcome.name(), MetricValue::Whole(count.0.value()))
    };
    Family { metric: REQUESTS_CUT_SHORT, samples: CUT_SHORT.iter().map(sample).collect() }
}

/// Unsigned requests that a rule of public access may allow, by result.
pub static PUBLIC_REQUESTS: PublicRequests =
    PublicRequests { allowed: PaddedCounter(Counter::new()), denied: PaddedCounter(Counter::new()) };

/// The counters of [`PUBLIC_REQUESTS`].
#[derive(Debug)]
pub struct PublicRequests {
    allowed: PaddedCounter,
    denied: PaddedCounter,
}

impl PublicRequests {
    /// Counts a request that a rule allows, or else one that none allows.
    pub fn count(&self, is_allowed: bool) {
        if is_allowed { &self.allowed } else { &self.denied }.0.add(1);
    }

    fn family(&self) -> Family {
        let results = [("allowed", &self.allowed), ("denied", &self.denied)];
        let sample = |(result, count): (&str, &PaddedCounter)| {
            Sample::labelled("result", result, MetricValue::Whole(count.0.value()))
        };
        Family { metric: PUBLIC, samples: results.map(sample).to_vec() }
    }
}

const PUBLIC: MetricName = MetricName::counter(
    "service_public_requests_total",
    "Unsigned GET, HEAD and list requests of the data plane, by result: allowed by a rule of public access, or denied.",
);

/// Every counter without labels, in the order in which a scrape shows them.
static COUNTERS: [&ProcessCounter; 7] = [
    &ERRORS,
    &PANICS,
    &LOG_LINES_DROPPED,
    &LOG_WRITES_FAILED,
    &AUDIT_RECORDS,
    &AUDIT_RECORDS_FAILED,
    &AUDIT_RECORDS_LEFT_OUT,
];

/// Returns the families of all counters of the process.
pub(super) fn families() -> impl Iterator<Item = Family> {
    let counters = COUNTERS.iter().map(|counter| Family {
        metric: counter.metric,
        samples: vec![Sample::plain(MetricValue::Whole(counter.value()))],
    });
    [cut_short_family(), PUBLIC_REQUESTS.family()].into_iter().chain(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: all outcomes were one number, so impatient clients could not be told from failing devices.
    #[test]
    fn outcomes_that_cut_requests_short_are_counted_separately() {
        let read = || cut_short_family().samples;
        let before = read();
        record_cut_short(RequestOutcome::Complete);
        assert_eq!(read(), before);
        record_cut_short(RequestOutcome::BodyFailed);
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
