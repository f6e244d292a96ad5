//! Runs a plan: threads, measured window, samples, and the report.

mod arrivals;
pub(crate) mod chooser;
mod connection_loop;
mod exchange;
mod progress;
mod shared;
mod worker;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::failure::{LoadError, while_doing};
use crate::http::request::{Auth, PREPARED_KEYS_MAX, PreparedHeads};
use crate::measure::process::{Memory, cpu_seconds, machine_cpu_seconds, resident_kib};
use crate::measure::statistics::{Live, Statistics, Window};
use crate::objects::content::Content;
use crate::plan::Plan;
use crate::report::{Observed, Report, ServerProcess};
use crate::workload::Operation;
use crate::workload::Workload;
use arrivals::Arrivals;
use progress::{Progress, sum};
use shared::Shared;
use worker::work;

/// A worker's buffers are on the heap, so it needs little stack.
const STACK_BYTES: usize = 128 * 1024;
/// The interval at which the progress is shown and a watched process sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// Carries out a plan.
///
/// # Errors
/// [`LoadError::Io`] if threads cannot be started. Failed requests are part of the report.
///
/// # Panics
/// If a thread of the run has panicked.
pub fn run(plan: Plan) -> Result<Report, LoadError> {
    let content = Content::new(plan.seed);
    let prepared = match &plan.urls {
        Some(urls) => Some(PreparedHeads::of_urls(&plan.target, urls)),
        None => uses_prepared_heads(&plan).then(|| PreparedHeads::of(&plan.target, &plan.keys)),
    };
    let connections = plan.connections;
    let shared = Arc::new(Shared {
        content,
        prepared,
        tickets: AtomicU64::new(0),
        requests: AtomicU64::new(0),
        arrivals: plan.rate.map(Arrivals::new),
        live: (0..connections).map(|_| Live::default()).collect(),
        barrier: Barrier::new(plan.threads + 1),
        window: OnceLock::new(),
        plan,
    });
    let workers = start(&shared)?;
    shared.barrier.wait();
    let begun = Instant::now();
    let from = begun + shared.plan.warm_up;
    let window = Window { begun, from, until: shared.plan.duration.map(|duration| from + duration) };
    shared.window.set(window).expect("nobody else sets it");
    shared.barrier.wait();
    let observed = observe(&shared, &window, &workers);
    let mut statistics = Statistics::default();
    for worker in workers {
        statistics.merge(worker.join().expect("a thread of the run does not panic"));
    }
    Ok(Report::new(&shared.plan, &statistics, &window, observed))
}

/// Presigned GETs of few keys are signed before the run, so that only the server spends time on signatures during it.
fn uses_prepared_heads(plan: &Plan) -> bool {
    let reads =
        matches!(plan.workload, Workload::Repeat(Operation::Get | Operation::RangeGet) | Workload::Mixed);
    plan.target.auth == Auth::Presigned && reads && plan.keys.count <= PREPARED_KEYS_MAX
}

fn start(shared: &Arc<Shared>) -> Result<Vec<JoinHandle<Statistics>>, LoadError> {
    let (connections, threads) = (shared.plan.connections, shared.plan.threads);
    (0..threads)
        .map(|thread| {
            let shared = Arc::clone(shared);
            thread::Builder::new()
                .name(format!("load {thread}"))
                .stack_size(STACK_BYTES)
                .spawn(move || work(&shared, (thread..connections).step_by(threads)))
                .map_err(while_doing("starting the threads of the run"))
        })
        .collect()
}

/// CPU times at one instant.
#[derive(Clone, Copy)]
struct CpuSample {
    own: Option<f64>,
    machine: Option<f64>,
    server: Option<f64>,
}

impl CpuSample {
    fn take(server_pid: Option<u32>) -> Self {
        Self {
            own: cpu_seconds(None),
            machine: machine_cpu_seconds(),
            server: server_pid.and_then(|pid| cpu_seconds(Some(pid))),
        }
    }
}

/// Shows progress and samples CPU times and memory until the end of the run.
fn observe(shared: &Shared, window: &Window, workers: &[JoinHandle<Statistics>]) -> Observed {
    let plan = &shared.plan;
    let begun = Instant::now();
    let whole = window.until.map(|until| until - begun);
    let mut progress = Progress::new(plan.name, whole, plan.requests.unwrap_or(plan.keys.count));
    let mut memory = None;
    let (mut first, mut last) = (None, None);
    loop {
        let now = Instant::now();
        if first.is_none() && now >= window.from {
            first = Some(CpuSample::take(plan.server_pid));
        }
        let over = workers.iter().all(JoinHandle::is_finished);
        if last.is_none() && (over || window.until.is_some_and(|until| now >= until)) {
            last = Some(CpuSample::take(plan.server_pid));
        }
        if let Some(kib) = plan.server_pid.and_then(resident_kib) {
            memory = Some(Memory::sample(memory, kib));
        }
        progress.show(now - begun, whole.is_some(), sum(shared.live.iter().map(Live::read)));
        if over {
            break;
        }
        let next =
            [Some(window.from), window.until].into_iter().flatten().filter(|instant| *instant > now).min();
        rest(next.map_or(SAMPLE_INTERVAL, |next| (next - now).min(SAMPLE_INTERVAL)));
    }
    progress.finish();
    let spent = |of: fn(&CpuSample) -> Option<f64>| Some(of(&last?)? - of(&first?)?);
    Observed {
        generator_cpu_seconds: spent(|sample| sample.own),
        machine_cpu_seconds: spent(|sample| sample.machine),
        server: memory
            .map(|memory| ServerProcess { cpu_seconds: spent(|sample| sample.server), resident: memory }),
    }
}

#[expect(clippy::disallowed_methods, reason = "the main thread of a tool, no executor")]
fn rest(duration: Duration) {
    thread::sleep(duration);
}
