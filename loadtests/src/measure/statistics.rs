//! Statistics of one connection: latencies, bytes and errors within the measured window. They are merged at the end of a run.
//!
//! A request counts if it *ends* within the window. Verification failures always count.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::failure::Failure;
use crate::units::index;
use crate::workload::Operation;

/// Latencies are recorded in nanoseconds with three significant digits, from 0.1 us to an hour.
const LATENCY_MIN_NS: u64 = 100;
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;
const SIGNIFICANT_FIGURES: u8 = 3;
/// Maximum number of verification failures that are described.
const EXAMPLES_MAX: usize = 5;

/// The measured window of a run: its start, and its end if it has a time limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The start of the run, before its warm-up.
    pub(crate) begun: Instant,
    pub(crate) from: Instant,
    pub(crate) until: Option<Instant>,
}

impl Window {
    fn contains(&self, instant: Instant) -> bool {
        instant >= self.from && self.until.is_none_or(|until| instant < until)
    }
}

/// The result of a successful request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Done {
    /// Payload bytes that were sent or received, and how many of them were verified.
    Transferred { bytes: u64, verified: u64 },
    /// A GET of a key of unknown presence: it did not exist.
    Absent,
}

/// Latencies and bytes of one operation.
#[derive(Clone, Debug)]
pub(crate) struct OperationStatistics {
    pub(crate) latency: Histogram<u64>,
    pub(crate) bytes: u64,
}

impl OperationStatistics {
    fn new() -> Self {
        let latency = Histogram::new_with_bounds(LATENCY_MIN_NS, LATENCY_MAX_NS, SIGNIFICANT_FIGURES)
            .expect("the bounds are in order");
        Self { latency, bytes: 0 }
    }

    fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency).expect("all histograms have the same bounds");
        self.bytes += other.bytes;
    }
}

/// One second of the window.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Second {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) errors: u64,
}

/// Statistics of one connection, or of all.
#[derive(Default, Debug)]
pub(crate) struct Statistics {
    pub(crate) operations: [Option<OperationStatistics>; Operation::COUNT],
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) seconds: Vec<Second>,
    pub(crate) absent: u64,
    pub(crate) verified_bytes: u64,
    pub(crate) verification_failures: u64,
    pub(crate) verification_examples: Vec<String>,
    pub(crate) reconnects: u64,
    pub(crate) last_end: Option<Instant>,
}

impl Statistics {
    pub(crate) fn record(
        &mut self,
        operation: Operation,
        (started, ended): (Instant, Instant),
        outcome: &Result<Done, Failure>,
        window: &Window,
    ) {
        if let Err(Failure::Verification(detail)) = outcome {
            self.verification_failures += 1;
            if self.verification_examples.len() < EXAMPLES_MAX {
                self.verification_examples.push(detail.clone());
            }
        }
        if !window.contains(ended) {
            return;
        }
        self.last_end = Some(ended);
        let second = index((ended - window.from).as_secs());
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, Second::default());
        }
        let second = &mut self.seconds[second];
        match outcome {
            Ok(done) => {
                let entry = self.operations[operation as usize].get_or_insert_with(OperationStatistics::new);
                entry.latency.saturating_record(nanoseconds(ended - started));
                second.requests += 1;
                match *done {
                    Done::Transferred { bytes, verified } => {
                        entry.bytes += bytes;
                        second.bytes += bytes;
                        self.verified_bytes += verified;
                    }
                    Done::Absent => self.absent += 1,
                }
            }
            Err(failure) => {
                *self.errors.entry(failure.label()).or_default() += 1;
                second.errors += 1;
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (mine, theirs) in self.operations.iter_mut().zip(other.operations) {
            match (mine.as_mut(), theirs) {
                (Some(mine), Some(theirs)) => mine.add(&theirs),
                (None, theirs) => *mine = theirs,
                (Some(_), None) => {}
            }
        }
        for (label, count) in other.errors {
            *self.errors.entry(label).or_default() += count;
        }
        if self.seconds.len() < other.seconds.len() {
            self.seconds.resize(other.seconds.len(), Second::default());
        }
        for (mine, theirs) in self.seconds.iter_mut().zip(other.seconds) {
            mine.requests += theirs.requests;
            mine.bytes += theirs.bytes;
            mine.errors += theirs.errors;
        }
        self.absent += other.absent;
        self.verified_bytes += other.verified_bytes;
        self.verification_failures += other.verification_failures;
        self.verification_examples.extend(other.verification_examples);
        self.verification_examples.truncate(EXAMPLES_MAX);
        self.reconnects += other.reconnects;
        self.last_end = self.last_end.max(other.last_end);
    }

    /// Returns the sum of all operations.
    pub(crate) fn total(&self) -> OperationStatistics {
        let mut total = OperationStatistics::new();
        for operation in self.operations.iter().flatten() {
            total.add(operation);
        }
        total
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Counts of a connection that the progress bar shows. Aligned to its own cache line, because every request writes to it.
#[derive(Default, Debug)]
#[repr(align(128))]
pub(crate) struct Live {
    requests: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
}

impl Live {
    /// Counts a request. Only the connection's own thread calls this, so plain loads and stores suffice.
    pub(crate) fn record(&self, outcome: &Result<Done, Failure>) {
        let add = |counter: &AtomicU64, count| {
            counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Relaxed);
        };
        match outcome {
            Ok(Done::Transferred { bytes, .. }) => {
                add(&self.requests, 1);
                add(&self.bytes, *bytes);
            }
            Ok(Done::Absent) => add(&self.requests, 1),
            Err(_) => add(&self.errors, 1),
        }
    }

    pub(crate) fn read(&self) -> Second {
        Second {
            requests: self.requests.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transferred(bytes: u64) -> Result<Done, Failure> {
        Ok(Done::Transferred { bytes, verified: bytes })
    }

    #[test]
    fn only_requests_that_end_in_the_window_count_but_all_corruption() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let window = Window { begun: at(0), from: at(1_000), until: Some(at(3_000)) };
        let mut statistics = Statistics::default();
        for ended in [999, 1_000, 2_500, 2_999, 3_000] {
            statistics.record(Operation::Get, (at(500), at(ended)), &transferred(10), &window);
        }
        let corrupt = Err(Failure::Verification("key x".into()));
        statistics.record(Operation::Get, (at(0), at(1)), &corrupt, &window);
        assert_eq!(statistics.total().latency.len(), 3);
        assert_eq!(statistics.total().bytes, 30);
        assert_eq!(statistics.seconds.iter().map(|second| second.requests).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(statistics.verification_failures, 1);
        assert_eq!(statistics.errors.len(), 0);
    }

    #[test]
    fn merging_adds_all_counts() {
        let start = Instant::now();
        let window = Window { begun: start, from: start, until: None };
        let mut sum = Statistics::default();
        for connection in 0..3_u64 {
            let mut statistics = Statistics::default();
            let ended = start + Duration::from_secs(connection);
            statistics.record(Operation::Put, (start, ended), &transferred(5), &window);
            statistics.record(Operation::List, (start, ended), &Ok(Done::Absent), &window);
            statistics.record(Operation::Get, (start, ended), &Err(Failure::Status(503, None)), &window);
            sum.merge(statistics);
        }
        assert_eq!(sum.total().latency.len(), 6);
        assert_eq!(sum.errors.get("HTTP 503"), Some(&3));
        assert_eq!(sum.seconds, [Second { requests: 2, bytes: 5, errors: 1 }; 3]);
        assert_eq!((sum.absent, sum.verified_bytes), (3, 15));
        assert_eq!(sum.last_end, Some(start + Duration::from_secs(2)));
    }
}
