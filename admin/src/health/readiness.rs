//! Readiness of the service: answers `/ready`, and is part of the system information.
//!
//! Each subsystem is probed on its own thread, all in parallel, and for at most [`PROBE_TIME_MAX`]. A subsystem whose
//! probe hangs is not ready until the probe returns. So an answer always comes, names the failing subsystem, and never
//! needs more threads, however many clients request it.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::coalesced_query::CoalescedQuery;

/// Longest time of a probe: longer than a busy disk needs for a few reads, shorter than the usual timeout of clients of
/// `/ready`.
const PROBE_TIME_MAX: Duration = Duration::from_secs(2);
/// Shortest interval between two rounds of probes. `/ready` is public: however often it is requested, it costs twenty
/// small reads a second.
const PROBE_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// State of a subsystem that must work before clients should send requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubsystemState {
    /// Name in the answer of `/ready`.
    pub name: &'static str,
    /// The problem, if there is one. Only logged: `/ready` is public, and the reason may name files of the host.
    pub state: Result<(), String>,
}

/// The future of a round of probes.
pub type ProbeFuture<'a> = Pin<Box<dyn Future<Output = Vec<SubsystemState>> + 'a>>;

/// Probes the subsystems.
pub trait Readiness {
    /// Returns the current state of all subsystems.
    fn probe(&self) -> ProbeFuture<'_>;

    /// Returns public notices by subsystem: conditions that need an operator while the service works.
    fn notices(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Returns the public reason why the service is not ready. Other reasons are only logged.
    fn public_reason(&self) -> Option<String> {
        None
    }
}

/// Probes one subsystem. May block.
type Probe = Box<dyn FnMut() -> Result<(), String> + Send>;
/// Returns the state of one subsystem. Never blocks.
type Flag = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;
/// Returns what an operator should know about a working subsystem. Never blocks.
type Notice = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Builder of [`SubsystemProbes`].
#[derive(Default)]
pub struct SubsystemProbesBuilder {
    probes: Vec<(&'static str, Probe)>,
    flags: Vec<(&'static str, Flag)>,
    notices: Vec<(&'static str, Notice)>,
}

impl SubsystemProbesBuilder {
    /// Adds a subsystem that is probed on its own thread. The probe may block.
    #[must_use]
    pub fn with_probe(
        mut self,
        name: &'static str,
        probe: impl FnMut() -> Result<(), String> + Send + 'static,
    ) -> Self {
        self.probes.push((name, Box::new(probe)));
        self
    }

    /// Adds a subsystem whose state is known without blocking.
    #[must_use]
    pub fn with_flag(
        mut self,
        name: &'static str,
        flag: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.flags.push((name, Arc::new(flag)));
        self
    }

    /// Adds a subsystem that does not affect readiness but may have a notice.
    #[must_use]
    pub fn with_notice(
        mut self,
        name: &'static str,
        notice: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.notices.push((name, Arc::new(notice)));
        self
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// An error when a thread cannot be started.
    pub fn start(self) -> io::Result<SubsystemProbes> {
        self.start_with(PROBE_TIME_MAX, PROBE_INTERVAL_MIN)
    }

    fn start_with(self, time_max: Duration, interval_min: Duration) -> io::Result<SubsystemProbes> {
        let (sender, results) = channel();
        let mut subsystems = Vec::with_capacity(self.probes.len());
        for (index, (name, probe)) in self.probes.into_iter().enumerate() {
            let begin = start_probe_thread(name, index, probe, sender.clone())?;
            let last = Ok(());
            subsystems.push(ProbedSubsystem { name, begin, probing_since: None, last, was_ready: true });
        }
        let mut coordinator = Coordinator { subsystems, results, time_max };
        let query = CoalescedQuery::start("readiness", interval_min, move || coordinator.probe_all())?;
        Ok(SubsystemProbes { query: Arc::new(query), flags: self.flags, notices: self.notices })
    }
}

/// Result of a probe, with the index of its subsystem.
type ProbeResult = (usize, Result<(), String>);

/// Starts the thread of one subsystem. It probes once for each message and ends when the returned sender is dropped.
fn start_probe_thread(
    name: &str,
    index: usize,
    mut probe: Probe,
    results: Sender<ProbeResult>,
) -> io::Result<Sender<()>> {
    let (begin, begins) = channel::<()>();
    std::thread::Builder::new().name(format!("check-{name}")).spawn(move || {
        while begins.recv().is_ok() {
            let state = catch_unwind(AssertUnwindSafe(&mut probe));
            let state = state.unwrap_or_else(|_| Err("its probe panicked".to_owned()));
            if results.send((index, state)).is_err() {
                return;
            }
        }
    })?;
    Ok(begin)
}

/// One subsystem as the coordinator knows it.
struct ProbedSubsystem {
    name: &'static str,
    begin: Sender<()>,
    /// The start of the running probe; `None` when no probe is running.
    probing_since: Option<Instant>,
    last: Result<(), String>,
    /// Whether the subsystem was ready when its state was last logged.
    was_ready: bool,
}

/// Runs the probes of all subsystems in parallel. Owned by the thread of the query.
struct Coordinator {
    subsystems: Vec<ProbedSubsystem>,
    results: Receiver<ProbeResult>,
    time_max: Duration,
}

impl Coordinator {
    /// Probes all subsystems and returns their states.
    fn probe_all(&mut self) -> Vec<SubsystemState> {
        let begun = Instant::now();
        // A result that was late for the previous round is old. Its subsystem can be probed again now.
        while let Ok(result) = self.results.try_recv() {
            self.store(result);
        }
        let mut pending = 0;
        for subsystem in self.subsystems.iter_mut().filter(|subsystem| subsystem.probing_since.is_none()) {
            if subsystem.begin.send(()).is_ok() {
                subsystem.probing_since = Some(begun);
                pending += 1;
            } else {
                subsystem.last = Err("its probe thread has ended".to_owned());
            }
        }
        while pending > 0
            && let Ok(result) = self.results.recv_timeout(self.time_max.saturating_sub(begun.elapsed()))
        {
            // A probe of an earlier round may return only now.
            pending -= usize::from(self.store(result) == Some(begun));
        }
        self.subsystems.iter_mut().map(ProbedSubsystem::state).collect()
    }

    /// Stores the result of a probe. Returns when the probe began.
    fn store(&mut self, (index, state): ProbeResult) -> Option<Instant> {
        let subsystem = &mut self.subsystems[index];
        subsystem.last = state;
        subsystem.probing_since.take()
    }
}

impl ProbedSubsystem {
    /// Returns the state after a round of probes. Logs it when it has changed.
    fn state(&mut self) -> SubsystemState {
        let state = match self.probing_since {
            Some(since) => Err(format!("its probe has been running for {} ms", since.elapsed().as_millis())),
            None => self.last.clone(),
        };
        let (name, is_ready) = (self.name, state.is_ok());
        if std::mem::replace(&mut self.was_ready, is_ready) != is_ready {
            match &state {
                Ok(()) => tracing::info!(target: "service", subsystem = name, "ready again"),
                Err(reason) => tracing::warn!(target: "service", subsystem = name, reason, "not ready"),
            }
        }
        SubsystemState { name, state }
    }
}

/// The probes of a running service. Shared by all executors.
#[derive(Clone)]
pub struct SubsystemProbes {
    query: Arc<CoalescedQuery<Vec<SubsystemState>>>,
    flags: Vec<(&'static str, Flag)>,
    notices: Vec<(&'static str, Notice)>,
}

impl Readiness for SubsystemProbes {
    fn notices(&self) -> Vec<(&'static str, String)> {
        self.notices.iter().filter_map(|(name, notice)| Some((*name, notice()?))).collect()
    }

    fn probe(&self) -> ProbeFuture<'_> {
        Box::pin(async {
            let dead_thread = || SubsystemState {
                name: "checks",
                state: Err("the thread that probes the subsystems has ended".to_owned()),
            };
            let mut states = self.query.run().await.unwrap_or_else(|| vec![dead_thread()]);
            states.extend(self.flags.iter().map(|(name, flag)| SubsystemState { name, state: flag() }));
            states
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::block_on;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::sync::mpsc::sync_channel;

    const SHORT: Duration = Duration::from_secs(1);

    fn failing(states: &[SubsystemState]) -> Vec<&'static str> {
        states.iter().filter(|one| one.state.is_err()).map(|one| one.name).collect()
    }

    fn probe(probes: &SubsystemProbes) -> Vec<SubsystemState> {
        block_on(probes.probe())
    }

    /// Reads of a device that hang must neither keep `/ready` from answering, nor use one thread per request.
    #[test]
    fn hung_subsystem_is_named_in_time_and_probed_once() {
        let (release, released) = sync_channel::<()>(0);
        let probe_count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&probe_count);
        let hanging = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            // Hangs until the other end is dropped, and never after that.
            let _ = released.recv();
            Ok(())
        };
        let probes = SubsystemProbesBuilder::default()
            .with_probe("storage", hanging)
            .with_probe("metadata", || Ok(()))
            .with_flag("listeners", || Ok(()))
            .start_with(SHORT, Duration::ZERO)
            .unwrap();
        let begun = Instant::now();
        let states = probe(&probes);
        assert!(begun.elapsed() >= SHORT, "{:?}", begun.elapsed());
        // On a busy machine, a probe that does not hang may be late as well.
        assert!(failing(&states).contains(&"storage"));
        assert_eq!(
            states.iter().map(|one| one.name).collect::<Vec<_>>(),
            ["storage", "metadata", "listeners"]
        );

        // Later requests do not wait for it again. On a busy machine some take longer than the limit all the same.
        let later = (0..50).map(|_| {
            let begun = Instant::now();
            assert!(failing(&probe(&probes)).contains(&"storage"));
            begun.elapsed()
        });
        assert!(later.min().is_some_and(|fastest| fastest < SHORT), "every request waits for it");
        assert_eq!(probe_count.load(Ordering::Relaxed), 1, "a probe that hangs is not started again");

        drop(release);
        let until = Instant::now() + 300 * SHORT;
        while !failing(&probe(&probes)).is_empty() {
            assert!(Instant::now() < until, "it never becomes ready again");
        }
    }

    #[test]
    fn subsystems_are_probed_in_parallel() {
        // Each waits for the other, so both would time out if they ran one after the other.
        let barrier = Arc::new(std::sync::Barrier::new(2));
        let waits = |barrier: &Arc<std::sync::Barrier>| {
            let barrier = Arc::clone(barrier);
            move || {
                barrier.wait();
                Ok(())
            }
        };
        let probes = SubsystemProbesBuilder::default()
            .with_probe("storage", waits(&barrier))
            .with_probe("metadata", waits(&barrier))
            .start_with(Duration::from_secs(60), Duration::ZERO)
            .unwrap();
        assert!(failing(&probe(&probes)).is_empty());
    }

    #[test]
    fn failures_and_flags_show_at_once_and_clear_again() {
        let (broken, draining) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
        let reporting = |flag: &Arc<AtomicBool>| {
            let flag = Arc::clone(flag);
            move || if flag.load(Ordering::Relaxed) { Err("no".to_owned()) } else { Ok(()) }
        };
        let probes = SubsystemProbesBuilder::default()
            .with_probe("storage", reporting(&broken))
            .with_flag("listeners", reporting(&draining))
            .start_with(Duration::from_secs(60), Duration::ZERO)
            .unwrap();
        assert_eq!(failing(&probe(&probes)), ["storage"]);
        broken.store(false, Ordering::Relaxed);
        assert!(failing(&probe(&probes)).is_empty());
        draining.store(true, Ordering::Relaxed);
        assert_eq!(failing(&probe(&probes)), ["listeners"]);
    }

    #[test]
    fn panic_of_probe_is_failure_of_its_subsystem() {
        let probes = SubsystemProbesBuilder::default()
            .with_probe("storage", || panic!("on purpose"))
            .start_with(Duration::from_secs(60), Duration::ZERO)
            .unwrap();
        for _ in 0..2 {
            assert_eq!(failing(&probe(&probes)), ["storage"]);
        }
    }
}
