//! Starts the executors: one glommio executor per core, each pinned and on a thread of its own.
//!
//! Invariant: no executor sleeps for long. On a busy machine, it may fall asleep although tasks are ready to run; see
//! `heartbeat.rs`. If it does before it has run its first task, nothing can wake it. So an executor that has not begun after
//! [`BEGIN_PATIENCE`] gets a second thread, and the first of them that runs a task is the executor.
//!
//! Invariant: an executor that panics is reported at once, because all its connections and tasks are lost. The caller
//! of [`Executors::join`] then ends the process.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use cairn_model::{u64_of, usize_of};
use glommio::{CpuSet, LocalExecutorBuilder, Placement};

use super::heartbeat::Heartbeats;
use crate::host::allocator::tune_allocator;
use crate::host::check::{StartError, check_host, memlock_limit};
use crate::limits::{
    BEGIN_ATTEMPTS_MAX, BEGIN_PATIENCE, IO_MEMORY_BYTES_MAX, IO_MEMORY_BYTES_MIN, PREEMPT_AFTER, RING_DEPTH,
    RINGS_PER_EXECUTOR,
};

const STATUS: &str = "/proc/self/status";
const ALLOWED_CPUS: &str = "Cpus_allowed_list:";

/// The number of an executor, from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExecutorIndex(pub usize);

/// An executor that panicked. The process cannot continue.
#[derive(Debug)]
pub struct ExecutorFailure {
    /// The executor.
    pub executor: ExecutorIndex,
    /// The message of the panic.
    pub reason: String,
}

impl std::fmt::Display for ExecutorFailure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "executor {} panicked: {}", self.executor.0, self.reason)
    }
}

impl std::error::Error for ExecutorFailure {}

/// Running executors.
#[derive(Debug)]
#[must_use = "the panic of an executor is only noticed by joining"]
pub struct Executors {
    running: usize,
    ended: Receiver<(ExecutorIndex, Result<(), String>)>,
}

impl Executors {
    /// Blocks until all executors have finished or one has panicked. In the second case, the others still run.
    ///
    /// # Errors
    /// [`ExecutorFailure`]; the caller must end the process.
    pub fn join(self) -> Result<(), ExecutorFailure> {
        for _ in 0..self.running {
            match self.ended.recv() {
                Ok((_, Ok(()))) => {}
                Ok((executor, Err(reason))) => return Err(ExecutorFailure { executor, reason }),
                // Every executor reports before it drops its sender, so all have reported.
                Err(_) => break,
            }
        }
        Ok(())
    }
}

/// Starts `count` executors and runs on each the future that `work` makes there. Each is pinned to a core of its own if
/// there are enough cores. An unprivileged process with the usual 8 MiB of lockable memory suffices.
///
/// Returns when all of them run.
///
/// # Errors
/// [`StartError`] with cause and remedy when the host cannot run them. Executors that have already started end with the
/// process.
pub fn start<W, F>(count: usize, work: W) -> Result<Executors, StartError>
where
    W: Fn(ExecutorIndex) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + 'static,
{
    start_attempts(count, work, BEGIN_PATIENCE, |_| PREEMPT_AFTER)
}

/// As [`start`]. `preempt_after` gives the time slice of tasks by the number of the attempt, from 1, to start an executor.
fn start_attempts<W, F>(
    count: usize,
    work: W,
    patience: Duration,
    preempt_after: impl Fn(usize) -> Duration,
) -> Result<Executors, StartError>
where
    W: Fn(ExecutorIndex) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + 'static,
{
    check_host()?;
    if count == 0 {
        return Err(StartError::NoExecutors);
    }
    tune_allocator();
    let cores = if knows_cores() { allowed_cores() } else { Vec::new() };
    let io_memory = io_memory(count, memlock_limit());
    let heartbeats =
        Heartbeats::start().map_err(|error| StartError::Executor { index: 0, reason: error.to_string() })?;
    let (begun_sender, begun) = channel();
    let (ended_sender, ended) = channel();
    let claims: Vec<Claim> = (0..count).map(|_| Claim::default()).collect();
    let spawn = |index: usize, attempt: usize| {
        // With more executors than cores, the kernel places them.
        let core = if count <= cores.len() { cores.get(index).copied() } else { None };
        let (begun_sender, ended_sender, work) = (begun_sender.clone(), ended_sender.clone(), work.clone());
        let (heartbeats, claim) = (heartbeats.clone(), claims[index].clone());
        let preempt_after = preempt_after(attempt);
        thread::Builder::new()
            .name(format!("executor-{index}"))
            .spawn(move || {
                let placed = Placed { executor: ExecutorIndex(index), core, io_memory, preempt_after };
                run(placed, claim, work, heartbeats, &begun_sender, &ended_sender)
            })
            .map(drop)
            .map_err(|error| StartError::Executor { index, reason: error.to_string() })
    };
    begin_all(count, &begun, patience, spawn)?;
    Ok(Executors { running: count, ended })
}

/// Starts a thread for each executor, and another one for each that has not begun after `patience`, until all have begun.
///
/// # Errors
/// Those of `spawn`, and of executors that cannot be made.
fn begin_all(
    count: usize,
    begun: &Receiver<Begun>,
    patience: Duration,
    spawn: impl Fn(usize, usize) -> Result<(), StartError>,
) -> Result<(), StartError> {
    let mut waiting: Vec<usize> = (0..count).collect();
    let mut attempts = 1;
    for &index in &waiting {
        spawn(index, attempts)?;
    }
    while !waiting.is_empty() {
        match begun.recv_timeout(patience) {
            Ok((index, Ok(()))) => waiting.retain(|other| *other != index),
            // A further thread of an executor that has begun meanwhile is not needed.
            Ok((index, Err(reason))) if waiting.contains(&index) => {
                return Err(StartError::Executor { index, reason });
            }
            Ok((_, Err(_))) => {}
            Err(RecvTimeoutError::Timeout) if attempts < BEGIN_ATTEMPTS_MAX => {
                attempts += 1;
                tracing::warn!(target: "service", executors = ?waiting, "executors have not begun in time and get another thread");
                for &index in &waiting {
                    spawn(index, attempts)?;
                }
            }
            // The machine is slow. One of the threads will begin.
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("`spawn` has a sender"),
        }
    }
    Ok(())
}

/// The claim to be the executor, among the threads of an executor: the first that asks gets it.
#[derive(Clone, Default)]
struct Claim(Arc<AtomicBool>);

impl Claim {
    /// Returns whether nobody has asked before.
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// The number of an executor, and whether its first task runs or why it cannot be made.
type Begun = (usize, Result<(), String>);
type Ended = Sender<(ExecutorIndex, Result<(), String>)>;

/// An executor's number, core and registered memory.
struct Placed {
    executor: ExecutorIndex,
    /// `None`: the kernel places it.
    core: Option<usize>,
    io_memory: usize,
    /// The time slice of tasks.
    preempt_after: Duration,
}

/// Runs one executor on its thread, unless another thread has become that executor.
fn run<W, F>(
    placed: Placed,
    claim: Claim,
    work: W,
    heartbeats: Heartbeats,
    begun: &Sender<Begun>,
    ended: &Ended,
) where
    W: Fn(ExecutorIndex) -> F,
    F: Future<Output = ()> + 'static,
{
    let Placed { executor, core, io_memory, preempt_after } = placed;
    let builder = |placement| {
        LocalExecutorBuilder::new(placement)
            .io_memory(io_memory)
            .ring_depth(RING_DEPTH)
            .preempt_timer(preempt_after)
    };
    let made = catch_unwind(|| {
        let pinned = core.and_then(|core| match builder(Placement::Fixed(core)).make() {
            Ok(pinned) => Some(pinned),
            Err(error) => {
                tracing::warn!(target: "service", core, %error, "an executor cannot be pinned to its core and runs unpinned");
                None
            }
        });
        pinned.map_or_else(|| builder(Placement::Unbound).make().map_err(|error| error.to_string()), Ok)
    });
    let local = match made.unwrap_or_else(|panic| Err(panic_text(panic.as_ref()))) {
        Ok(local) => local,
        Err(reason) => {
            let _ = begun.send((executor.0, Err(reason)));
            return;
        }
    };
    let first_task = async {
        let is_executor = claim.take();
        if is_executor {
            // `start` waits for this. If it has failed meanwhile, the process is about to end.
            let _ = begun.send((executor.0, Ok(())));
            heartbeats.during(work(executor)).await;
        }
        is_executor
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| local.run(first_task)));
    let outcome = match outcome {
        Ok(false) => return,
        Ok(true) => Ok(()),
        Err(panic) => Err(panic_text(panic.as_ref())),
    };
    let _ = ended.send((executor, outcome));
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Returns how many bytes each executor registers for direct I/O. All rings of all executors together register half of
/// the lockable memory, so that a second process of the same user can start too.
fn io_memory(executors: usize, limit: Option<u64>) -> usize {
    assert!(executors > 0, "there is at least one executor");
    let shares = RINGS_PER_EXECUTOR * u64_of(executors);
    let share = limit.map_or(IO_MEMORY_BYTES_MAX, |limit| limit / 2 / shares);
    let whole =
        share.clamp(IO_MEMORY_BYTES_MIN, IO_MEMORY_BYTES_MAX) / IO_MEMORY_BYTES_MIN * IO_MEMORY_BYTES_MIN;
    usize_of(whole)
}

/// Returns whether the system describes its cores. Without `/sys`, glommio panics when it pins an executor to one.
fn knows_cores() -> bool {
    let cores = CpuSet::online();
    if let Err(error) = &cores {
        tracing::warn!(target: "service", %error, "the cores cannot be read from /sys: the executors are not pinned to them");
    }
    cores.is_ok()
}

/// Returns the numbers of the cores that this process may use, or none when they cannot be determined.
fn allowed_cores() -> Vec<usize> {
    let status = std::fs::read_to_string(STATUS).unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix(ALLOWED_CPUS)).unwrap_or_default();
    parse_cores(list).unwrap_or_default()
}

/// Parses a list of numbers such as `0-3,8`.
fn parse_cores(list: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cores.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(cores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::HEARTBEAT_INTERVAL;
    use std::future::{Ready, ready};

    #[test]
    fn registered_memory_is_at_most_half_the_limit() {
        const MEBIBYTE: u64 = 1024 * 1024;
        for executors in 1..=21 {
            let total =
                io_memory(executors, Some(8 * MEBIBYTE)) as u64 * RINGS_PER_EXECUTOR * executors as u64;
            assert!(total <= 4 * MEBIBYTE, "{executors} executors register {total} bytes");
        }
        assert_eq!(io_memory(2, None) as u64, IO_MEMORY_BYTES_MAX);
        assert_eq!(io_memory(64, Some(512 * 1024)) as u64, IO_MEMORY_BYTES_MIN);
    }

    #[test]
    fn lists_of_cores_are_parsed() {
        assert_eq!(parse_cores("\t0-1\n"), Some(vec![0, 1]));
        assert_eq!(parse_cores("3"), Some(vec![3]));
        assert_eq!(parse_cores("0-2,5,7-8"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(parse_cores(""), None);
        assert!(!allowed_cores().is_empty());
    }

    /// Work that reports the number of its executor, and ends.
    fn reported_work() -> (impl Fn(ExecutorIndex) -> Ready<()> + Clone + Send, Receiver<usize>) {
        let (sender, receiver) = channel();
        let work = move |executor: ExecutorIndex| {
            sender.send(executor.0).unwrap();
            ready(())
        };
        (work, receiver)
    }

    /// Seen on a busy machine: the time slice was over before the first task ran. The executor slept, and the server never
    /// became ready.
    #[test]
    fn an_executor_that_sleeps_before_its_first_task_gets_another_thread() {
        let (work, receiver) = reported_work();
        let slice = |attempt| if attempt == 1 { Duration::from_nanos(1) } else { PREEMPT_AFTER };
        start_attempts(2, work, Duration::from_millis(200), slice).unwrap().join().unwrap();
        let mut ran = [receiver.recv().unwrap(), receiver.recv().unwrap()];
        ran.sort_unstable();
        assert_eq!(ran, [0, 1]);
    }

    #[test]
    fn a_thread_that_fails_after_its_executor_has_begun_is_ignored() {
        let (sender, begun) = channel();
        let spawn = |index: usize, _| {
            sender.send((index, Ok(()))).unwrap();
            sender.send((index, Err("no memory for a second thread".to_owned()))).unwrap();
            Ok(())
        };
        begin_all(2, &begun, BEGIN_PATIENCE, spawn).unwrap();
    }

    #[test]
    fn one_thread_becomes_the_executor() {
        let claim = Claim::default();
        assert!(claim.clone().take());
        assert!(!claim.take());
    }

    #[test]
    fn executors_finish_their_work() {
        let (work, receiver) = reported_work();
        start(2, work).unwrap().join().unwrap();
        let mut ran: Vec<usize> = receiver.iter().collect();
        ran.sort_unstable();
        assert_eq!(ran, [0, 1]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test's own thread, not an executor")]
    fn an_executor_whose_work_waits_for_nothing_wakes_up_regularly() {
        let (sender, receiver) = channel();
        let work = move |_| {
            sender.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            std::future::pending::<()>()
        };
        let _running = start(1, work).unwrap();
        let status = std::path::Path::new("/proc").join(receiver.recv().unwrap()).join("status");
        let sleeps = || -> u64 {
            let status = std::fs::read_to_string(&status).unwrap();
            let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            sleeps.unwrap().trim().parse().unwrap()
        };
        // The switches of the start are over after this.
        thread::sleep(HEARTBEAT_INTERVAL * 4);
        let (before, deadline) = (sleeps(), std::time::Instant::now() + Duration::from_secs(120));
        while sleeps() < before + 3 {
            assert!(std::time::Instant::now() < deadline, "the executor does not wake up");
            thread::sleep(HEARTBEAT_INTERVAL);
        }
    }

    #[test]
    fn a_panicking_executor_is_reported_while_others_run() {
        let work = |executor: ExecutorIndex| async move {
            if executor.0 == 1 {
                panic!("on purpose");
            }
            std::future::pending::<()>().await;
        };
        let failure = start(2, work).unwrap().join().unwrap_err();
        assert_eq!(failure.executor, ExecutorIndex(1));
        assert!(failure.to_string().contains("on purpose"));
    }
}
