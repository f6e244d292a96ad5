//! The result of a run, as a value and as JSON. `text` writes it for people.
//!
//! The field names of the JSON are an interface: scripts and `cairn-load table` read them.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::operation::Operation;
use crate::plan::Plan;
use crate::process::Memory;
use crate::tally::{OperationTally, Tally, Window};

/// Why latencies under a closed loop say less than they seem to.
const CLOSED_LOOP: &str = "closed loop: each connection sends its next request when the last is answered, so a stall \
                           delays requests that an open load would have sent; latencies are not corrected for that";

/// Everything that one run found out.
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
    /// Number of keys.
    pub keys: u64,
    /// Object sizes.
    pub sizes: String,
    /// Seed of content, sizes and choices.
    pub seed: u64,
    /// Length of the measured window.
    pub window_seconds: f64,
    /// What the latencies mean.
    pub load_model: String,
    /// All operations together.
    pub total: Summary,
    /// Each operation that occurred.
    pub operations: BTreeMap<String, Summary>,
    /// Failed requests by S3 code, HTTP status or kind of breakage.
    pub errors: BTreeMap<String, u64>,
    /// Sum of `errors`.
    pub error_count: u64,
    /// Mixed runs: reads of keys of which nobody knew whether they existed, and they did not.
    pub absent: u64,
    /// Connections opened again after the server closed one or it broke.
    pub reconnects: u64,
    /// What `--verify` found; none if it was not asked for.
    pub verification: Option<Verification>,
    /// CPU time that this process used within the window.
    pub generator_cpu_seconds: Option<f64>,
    /// The same for each request, failed ones included: what the generator itself costs.
    pub generator_cpu_us_per_request: Option<f64>,
    /// CPU time that the whole machine used within the window, this process included.
    pub machine_cpu_seconds: Option<f64>,
    /// CPUs of the machine.
    pub machine_cpus: usize,
    /// The process of `--server-pid`.
    pub server: Option<ServerProcess>,
    /// Figures of every second of the window, with `--time-series`.
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
    /// Latencies, absent if nothing succeeded.
    pub latency_us: Option<Latency>,
}

/// Microseconds from the first byte sent to the last byte received.
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

/// What `--verify` found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verification {
    /// Bytes that were compared and are right.
    pub verified_bytes: u64,
    /// Responses that were not right.
    pub failures: u64,
    /// Some of them.
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

/// What was seen from outside the connections.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(crate) generator_cpu_seconds: Option<f64>,
    pub(crate) machine_cpu_seconds: Option<f64>,
    pub(crate) server: Option<ServerProcess>,
}

/// How a run ends for the shell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Exit code 0.
    Good,
    /// Exit code 2: something came back wrong.
    Corrupt,
    /// Exit code 3: requests failed and that was asked to matter, or not one succeeded in the window.
    Errors,
}

impl Report {
    pub(crate) fn new(plan: &Plan, tally: &Tally, window: &Window, observed: Observed) -> Self {
        // A run that ends by itself (all keys done, all requests made) is measured to its last request.
        let measured = tally.last_end.map_or(Duration::ZERO, |end| end - window.from);
        let seconds = plan.duration.unwrap_or(measured).as_secs_f64();
        let operations =
            Operation::ALL.into_iter().zip(&tally.operations).filter_map(|(operation, tally)| {
                Some((operation.name().to_owned(), Summary::new(tally.as_ref()?, seconds)))
            });
        let total = Summary::new(&tally.total(), seconds);
        let error_count = tally.errors.values().sum();
        let ended = total.requests + error_count;
        let own_cpu = observed.generator_cpu_seconds;
        Self {
            workload: plan.name.to_owned(),
            endpoint: plan.endpoint.clone(),
            auth: format!("{:?}", plan.target.auth).to_lowercase(),
            connections: plan.connections,
            threads: plan.threads,
            keys: plan.keys.count,
            sizes: plan.keys.sizes.to_string(),
            seed: plan.seed,
            window_seconds: seconds,
            load_model: CLOSED_LOOP.to_owned(),
            total,
            operations: operations.collect(),
            errors: tally.errors.clone(),
            error_count,
            absent: tally.absent,
            reconnects: tally.reconnects,
            verification: (plan.verify || tally.verification_failures > 0).then(|| Verification {
                verified_bytes: tally.verified_bytes,
                failures: tally.verification_failures,
                examples: tally.verification_examples.clone(),
            }),
            generator_cpu_seconds: own_cpu,
            generator_cpu_us_per_request: own_cpu.filter(|_| ended > 0).map(|cpu| cpu * 1e6 / real(ended)),
            machine_cpu_seconds: observed.machine_cpu_seconds,
            machine_cpus: std::thread::available_parallelism().map_or(1, usize::from),
            server: observed.server,
            per_second: plan.time_series.then(|| {
                let figures = |second: &crate::tally::Second| SecondFigures {
                    requests: second.requests,
                    bytes: second.bytes,
                    errors: second.errors,
                };
                tally.seconds.iter().map(figures).collect()
            }),
        }
    }

    /// How the run ends for the shell.
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

#[expect(clippy::cast_precision_loss, reason = "figures for people; 53 bits are more than enough")]
fn real(count: u64) -> f64 {
    count as f64
}

impl Summary {
    fn new(tally: &OperationTally, seconds: f64) -> Self {
        let rate = |count: u64| if seconds > 0.0 { real(count) / seconds } else { 0.0 };
        let requests = tally.latency.len();
        Self {
            requests,
            requests_per_second: rate(requests),
            bytes: tally.bytes,
            bytes_per_second: rate(tally.bytes),
            latency_us: (requests > 0).then(|| Latency::new(&tally.latency)),
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
