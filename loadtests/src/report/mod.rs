//! The report of a run, which is also its JSON. `text` formats it as text.
//!
//! The field names of the JSON are an interface for scripts and for `cairn-load table`.

pub mod table;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::measure::process::Memory;
use crate::measure::statistics::{OperationStatistics, Statistics, Window};
use crate::plan::Plan;
use crate::workload::Operation;

/// A note in every report on what its latencies mean.
const CLOSED_LOOP: &str = "closed loop: each connection sends its next request after the response to the previous one, so a \
                           stall delays requests that an open loop would have sent; latencies are not corrected for that";

/// The same for a run with `--rate`.
const OPEN_LOOP: &str = "open loop: requests are due at even intervals, whatever the server does; a latency runs from the time at \
                         which its request was due, so it contains the wait for a free connection";

/// The results of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The command.
    pub workload: String,
    /// The server.
    pub endpoint: String,
    /// header, presigned or none.
    pub auth: String,
    /// Connections, one request at a time on each.
    pub connections: usize,
    /// Threads that shared them.
    pub threads: usize,
    /// Requests per second that were due, in an open loop.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate: Option<u32>,
    /// Number of keys.
    pub keys: u64,
    /// Object sizes.
    pub sizes: String,
    /// Seed of content, sizes and choices.
    pub seed: u64,
    /// Length of the measured window.
    pub window_seconds: f64,
    /// A note on what the latencies mean.
    pub load_model: String,
    /// All operations together.
    pub total: Summary,
    /// Each operation that occurred.
    pub operations: BTreeMap<String, Summary>,
    /// Failed requests by S3 code, HTTP status or kind of failure.
    pub errors: BTreeMap<String, u64>,
    /// Sum of `errors`.
    pub error_count: u64,
    /// Mixed runs: reads of keys of unknown presence that did not exist.
    pub absent: u64,
    /// Connections that were reopened after the server closed one or it failed.
    pub reconnects: u64,
    /// The result of `--verify`, if it was given.
    pub verification: Option<Verification>,
    /// CPU time that this process used within the window.
    pub generator_cpu_seconds: Option<f64>,
    /// The same per request, including failed ones: the cost of the generator itself.
    pub generator_cpu_us_per_request: Option<f64>,
    /// CPU time that the whole machine used within the window, this process included.
    pub machine_cpu_seconds: Option<f64>,
    /// CPUs of the machine.
    pub machine_cpus: usize,
    /// The process of `--server-pid`.
    pub server: Option<ServerProcess>,
    /// Measurements of every second of the window, with `--time-series`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub per_second: Option<Vec<SecondFigures>>,
}

/// Throughput and latency of successful requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Successful requests.
    pub requests: u64,
    /// Successful requests per second.
    pub requests_per_second: f64,
    /// Payload bytes.
    pub bytes: u64,
    /// Payload bytes per second.
    pub bytes_per_second: f64,
    /// Latencies; `None` if no request succeeded.
    pub latency_us: Option<Latency>,
}

/// Microseconds from the first byte sent, or from when the request was due in an open loop, to the last byte received.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after what they are")]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

/// The result of `--verify`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verification {
    /// Bytes that were verified.
    pub verified_bytes: u64,
    /// Wrong responses.
    pub failures: u64,
    /// Descriptions of some of them.
    pub examples: Vec<String>,
}

/// A watched process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerProcess {
    /// CPU time within the window.
    pub cpu_seconds: Option<f64>,
    /// Resident memory over the whole run.
    pub resident: Memory,
}

/// One second of the window.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after what they are")]
pub struct SecondFigures {
    pub requests: u64,
    pub bytes: u64,
    pub errors: u64,
}

/// Measurements other than those of connections.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(crate) generator_cpu_seconds: Option<f64>,
    pub(crate) machine_cpu_seconds: Option<f64>,
    pub(crate) server: Option<ServerProcess>,
}

/// The outcome of a run, which determines the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Exit code 0.
    Good,
    /// Exit code 2: a response was wrong.
    Corrupt,
    /// Exit code 3: requests failed with `--fail-on-error`, or none succeeded in the window.
    Errors,
}

impl Report {
    pub(crate) fn new(plan: &Plan, statistics: &Statistics, window: &Window, observed: Observed) -> Self {
        // A run without a time limit is measured to its last request.
        let measured = statistics.last_end.map_or(Duration::ZERO, |end| end - window.from);
        let seconds = plan.duration.unwrap_or(measured).as_secs_f64();
        let operations =
            Operation::ALL.into_iter().zip(&statistics.operations).filter_map(|(operation, statistics)| {
                Some((operation.name().to_owned(), Summary::new(statistics.as_ref()?, seconds)))
            });
        let total = Summary::new(&statistics.total(), seconds);
        let error_count = statistics.errors.values().sum();
        let ended = total.requests + error_count;
        let own_cpu = observed.generator_cpu_seconds;
        Self {
            workload: plan.name.to_owned(),
            endpoint: plan.endpoint.clone(),
            auth: format!("{:?}", plan.target.auth).to_lowercase(),
            connections: plan.connections,
            threads: plan.threads,
            rate: plan.rate,
            keys: plan.keys.count,
            sizes: plan.keys.sizes.to_string(),
            seed: plan.seed,
            window_seconds: seconds,
            load_model: if plan.rate.is_some() { OPEN_LOOP } else { CLOSED_LOOP }.to_owned(),
            total,
            operations: operations.collect(),
            errors: statistics.errors.clone(),
            error_count,
            absent: statistics.absent,
            reconnects: statistics.reconnects,
            verification: (plan.verify || statistics.verification_failures > 0).then(|| Verification {
                verified_bytes: statistics.verified_bytes,
                failures: statistics.verification_failures,
                examples: statistics.verification_examples.clone(),
            }),
            generator_cpu_seconds: own_cpu,
            generator_cpu_us_per_request: own_cpu.filter(|_| ended > 0).map(|cpu| cpu * 1e6 / real(ended)),
            machine_cpu_seconds: observed.machine_cpu_seconds,
            machine_cpus: std::thread::available_parallelism().map_or(1, usize::from),
            server: observed.server,
            per_second: plan.time_series.then(|| {
                let figures = |second: &crate::measure::statistics::Second| SecondFigures {
                    requests: second.requests,
                    bytes: second.bytes,
                    errors: second.errors,
                };
                statistics.seconds.iter().map(figures).collect()
            }),
        }
    }

    /// Returns the outcome of the run.
    #[must_use]
    pub fn verdict(&self, fail_on_error: bool) -> Verdict {
        if self.verification.as_ref().is_some_and(|verification| verification.failures > 0) {
            Verdict::Corrupt
        } else if (fail_on_error && self.error_count > 0) || (self.keys > 0 && self.total.requests == 0) {
            Verdict::Errors
        } else {
            Verdict::Good
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "values for display; 53 bits are more than enough")]
fn real(count: u64) -> f64 {
    count as f64
}

impl Summary {
    fn new(statistics: &OperationStatistics, seconds: f64) -> Self {
        let rate = |count: u64| if seconds > 0.0 { real(count) / seconds } else { 0.0 };
        let requests = statistics.latency.len();
        Self {
            requests,
            requests_per_second: rate(requests),
            bytes: statistics.bytes,
            bytes_per_second: rate(statistics.bytes),
            latency_us: (requests > 0).then(|| Latency::new(&statistics.latency)),
        }
    }
}

impl Latency {
    fn new(histogram: &Histogram<u64>) -> Self {
        let quantile = |quantile| real(histogram.value_at_quantile(quantile)) / 1_000.0;
        Self {
            mean: histogram.mean() / 1_000.0,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            max: real(histogram.max()) / 1_000.0,
        }
    }
}
