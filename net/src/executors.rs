//! The executors: one glommio executor per core, each pinned, each on a thread of its own.
//!
//! Invariant: an executor that ends for any reason but the end of its work is reported at once, for every connection
//! and every wait on it is lost: whoever called [`Executors::join`] ends the process.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use glommio::{LocalExecutorBuilder, Placement};

use crate::limits::{IO_MEMORY_BYTES_MAX, IO_MEMORY_BYTES_MIN, PREEMPT, RING_DEPTH, RINGS_PER_EXECUTOR};
use crate::probe::{StartError, memlock_limit, probe};

const STATUS: &str = "/proc/self/status";
const ALLOWED_CPUS: &str = "Cpus_allowed_list:";

/// The number of an executor, from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExecutorIndex(pub usize);

/// An executor that ended by a panic. The process cannot go on.
#[derive(Debug)]
pub struct ExecutorFailure {
    /// Which one.
    pub executor: ExecutorIndex,
    /// What the panic said.
    pub reason: String,
}

impl std::fmt::Display for ExecutorFailure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "executor {} has died: {}", self.executor.0, self.reason)
    }
}

impl std::error::Error for ExecutorFailure {}

/// Executors that run.
#[derive(Debug)]
#[must_use = "an executor that dies is only noticed by joining"]
pub struct Executors {
    running: usize,
    ended: Receiver<(ExecutorIndex, Result<(), String>)>,
}

impl Executors {
    /// Blocks until all executors have done their work, or the first has died; then the others still run.
    ///
    /// # Errors
    /// [`ExecutorFailure`]: end the process.
    pub fn join(self) -> Result<(), ExecutorFailure> {
        for _ in 0..self.running {
            match self.ended.recv() {
                Ok((_, Ok(()))) => {}
                Ok((executor, Err(reason))) => return Err(ExecutorFailure { executor, reason }),
                // Every executor reports before its sender goes, so all have reported.
                Err(_) => break,
            }
        }
        Ok(())
    }
}

/// Starts `count` executors, each pinned to a core of its own while there are enough, and runs on each the future that
/// `work` makes there. The process may be an unprivileged one with the usual 8 MiB of lockable memory.
///
/// Returns when all of them run.
///
/// # Errors
/// [`StartError`] with cause and remedy when the host cannot run them. Executors that had started by then end with the
/// process.
pub fn start<W, F>(count: usize, work: W) -> Result<Executors, StartError>
where
    W: Fn(ExecutorIndex) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + 'static,
{
    probe()?;
    if count == 0 {
        return Err(StartError::NoExecutors);
    }
    let cores = allowed_cores();
    let io_memory = io_memory(count, memlock_limit());
    let (ready_sender, ready) = channel();
    let (ended_sender, ended) = channel();
    for index in 0..count {
        // More executors than cores share; the kernel then places them.
        let core = if count <= cores.len() { cores.get(index).copied() } else { None };
        let (ready_sender, ended_sender, work) = (ready_sender.clone(), ended_sender.clone(), work.clone());
        thread::Builder::new()
            .name(format!("executor-{index}"))
            .spawn(move || run(ExecutorIndex(index), core, io_memory, work, ready_sender, &ended_sender))
            .map_err(|error| StartError::Executor { index, reason: error.to_string() })?;
    }
    drop(ready_sender);
    for (index, result) in ready {
        result.map_err(|reason| StartError::Executor { index, reason })?;
    }
    Ok(Executors { running: count, ended })
}

type Ready = Sender<(usize, Result<(), String>)>;
type Ended = Sender<(ExecutorIndex, Result<(), String>)>;

/// The life of one executor's thread.
fn run<W, F>(
    executor: ExecutorIndex,
    core: Option<usize>,
    io_memory: usize,
    work: W,
    ready: Ready,
    ended: &Ended,
) where
    W: Fn(ExecutorIndex) -> F,
    F: Future<Output = ()> + 'static,
{
    let builder = |placement| {
        LocalExecutorBuilder::new(placement)
            .io_memory(io_memory)
            .ring_depth(RING_DEPTH)
            .preempt_timer(PREEMPT)
    };
    let made = catch_unwind(|| {
        let pinned = core.and_then(|core| match builder(Placement::Fixed(core)).make() {
            Ok(pinned) => Some(pinned),
            Err(error) => {
                tracing::warn!(target: "service", core, %error, "an executor cannot be pinned and floats");
                None
            }
        });
        pinned.map_or_else(|| builder(Placement::Unbound).make().map_err(|error| error.to_string()), Ok)
    });
    let local = match made.unwrap_or_else(|panic| Err(panic_text(panic.as_ref()))) {
        Ok(local) => local,
        Err(reason) => {
            let _ = ready.send((executor.0, Err(reason)));
            return;
        }
    };
    // Whoever started us waits for it; that it has given up is no concern of this thread.
    let _ = ready.send((executor.0, Ok(())));
    drop(ready);
    let outcome = catch_unwind(AssertUnwindSafe(|| local.run(work(executor))));
    let _ = ended.send((executor, outcome.map_err(|panic| panic_text(panic.as_ref()))));
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without text".to_owned())
}

/// Bytes to register for direct I/O per executor: half of what may be locked goes to all rings of all executors, so
/// that a second process of the same user still finds some.
fn io_memory(executors: usize, limit: Option<u64>) -> usize {
    let shares = RINGS_PER_EXECUTOR * executors as u64;
    let share = limit.map_or(IO_MEMORY_BYTES_MAX, |limit| limit / 2 / shares);
    let whole =
        share.clamp(IO_MEMORY_BYTES_MIN, IO_MEMORY_BYTES_MAX) / IO_MEMORY_BYTES_MIN * IO_MEMORY_BYTES_MIN;
    usize::try_from(whole).unwrap_or(0)
}

/// The cores that this process may use, by number; empty when that cannot be found out.
fn allowed_cores() -> Vec<usize> {
    let status = std::fs::read_to_string(STATUS).unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix(ALLOWED_CPUS)).unwrap_or_default();
    parse_cores(list).unwrap_or_default()
}

/// The numbers of a list such as `0-3,8`.
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

    #[test]
    fn registered_memory_stays_within_half_the_limit() {
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
    fn lists_of_cores_are_read() {
        assert_eq!(parse_cores("\t0-1\n"), Some(vec![0, 1]));
        assert_eq!(parse_cores("3"), Some(vec![3]));
        assert_eq!(parse_cores("0-2,5,7-8"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(parse_cores(""), None);
        assert!(!allowed_cores().is_empty());
    }

    #[test]
    fn executors_do_their_work_and_end() {
        let (sender, receiver) = channel();
        let work = move |executor: ExecutorIndex| {
            let sender = sender.clone();
            async move { sender.send(executor.0).unwrap() }
        };
        start(2, work).unwrap().join().unwrap();
        let mut ran: Vec<usize> = receiver.iter().collect();
        ran.sort_unstable();
        assert_eq!(ran, [0, 1]);
    }

    #[test]
    fn an_executor_that_dies_is_reported_while_the_others_run() {
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
