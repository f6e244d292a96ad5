//! Whether the service can do its work: asked by `/ready`, shown in the system information.
//!
//! Each subsystem is looked at on a thread of its own, all at once, and for no longer than [`CHECK_TIME_MAX`]: one that
//! hangs on its device is not ready, and neither is one whose earlier look still hangs. So an answer always comes, names
//! who is to blame, and however many ask there are never more threads.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::errand::Errand;

/// How long a look at a subsystem may take: longer than a busy disk needs for a few reads, shorter than the patience of those
/// who ask `/ready`.
const CHECK_TIME_MAX: Duration = Duration::from_secs(2);
/// Looks are at least so far apart. `/ready` is public: however often it is asked, it costs twenty small reads a second.
const LOOKS_APART: Duration = Duration::from_millis(50);

/// A part of the service that must work before requests should be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubsystemState {
    /// Its name in the answer.
    pub name: &'static str,
    /// What is wrong. It goes to the log: `/ready` is public, and the reason may name files of the host.
    pub state: Result<(), String>,
}

/// The future of a look.
pub type Looking<'a> = Pin<Box<dyn Future<Output = Vec<SubsystemState>> + 'a>>;

/// Looks at the subsystems.
pub trait Readiness {
    /// All subsystems and their states now.
    fn look(&self) -> Looking<'_>;

    /// What does not keep the service from its work and yet wants an operator, by subsystem. Anybody may be told.
    fn notices(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// What anybody may be told of why the service is not ready. Other reasons go to the log alone.
    fn public_reason(&self) -> Option<String> {
        None
    }
}

/// Looks at one subsystem; may block.
type Check = Box<dyn FnMut() -> Result<(), String> + Send>;
/// Looks at one subsystem without waiting for anything.
type Flag = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Says what an operator should know of a subsystem that works.
type Notice = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// The subsystems of a service, put together one by one.
#[derive(Default)]
pub struct Subsystems {
    checked: Vec<(&'static str, Check)>,
    flags: Vec<(&'static str, Flag)>,
    notices: Vec<(&'static str, Notice)>,
}

impl Subsystems {
    /// Adds one that is looked at on a thread of its own. The check may block.
    #[must_use]
    pub fn checked(
        mut self,
        name: &'static str,
        check: impl FnMut() -> Result<(), String> + Send + 'static,
    ) -> Self {
        self.checked.push((name, Box::new(check)));
        self
    }

    /// Adds one whose state is known without waiting for anything.
    #[must_use]
    pub fn known(
        mut self,
        name: &'static str,
        flag: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.flags.push((name, Arc::new(flag)));
        self
    }

    /// Adds one that keeps nobody from being served, but may have something to say.
    #[must_use]
    pub fn noticed(
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
    /// When no thread can be started.
    pub fn start(self) -> io::Result<SubsystemChecks> {
        self.start_with(CHECK_TIME_MAX, LOOKS_APART)
    }

    fn start_with(self, time_max: Duration, apart: Duration) -> io::Result<SubsystemChecks> {
        let (sender, found) = channel();
        let mut watched = Vec::with_capacity(self.checked.len());
        for (index, (name, check)) in self.checked.into_iter().enumerate() {
            let begin = start_checker(name, index, check, sender.clone())?;
            watched.push(Watched { name, begin, looking_since: None, last: Ok(()), was_ready: true });
        }
        let mut watch = Watch { watched, found, time_max };
        let errand = Errand::start("readiness", apart, move || watch.look())?;
        Ok(SubsystemChecks { errand: Arc::new(errand), flags: self.flags, notices: self.notices })
    }
}

/// What a checker found, by its place among the subsystems.
type Found = (usize, Result<(), String>);

/// Starts the thread of one subsystem. It looks once for each message, and ends with the sender.
fn start_checker(name: &str, index: usize, mut check: Check, found: Sender<Found>) -> io::Result<Sender<()>> {
    let (begin, begins) = channel::<()>();
    std::thread::Builder::new().name(format!("check-{name}")).spawn(move || {
        while begins.recv().is_ok() {
            let state = catch_unwind(AssertUnwindSafe(&mut check));
            let state = state.unwrap_or_else(|_| Err("the check panicked".to_owned()));
            if found.send((index, state)).is_err() {
                return;
            }
        }
    })?;
    Ok(begin)
}

/// One subsystem as the watching thread knows it.
struct Watched {
    name: &'static str,
    begin: Sender<()>,
    /// When the look that is under way began.
    looking_since: Option<Instant>,
    last: Result<(), String>,
    /// What the log heard last.
    was_ready: bool,
}

/// Has all subsystems looked at.
struct Watch {
    watched: Vec<Watched>,
    found: Receiver<Found>,
    time_max: Duration,
}

impl Watch {
    fn look(&mut self) -> Vec<SubsystemState> {
        let begun = Instant::now();
        // What has come too late for the look before is old; who gave it can look again.
        while let Ok(found) = self.found.try_recv() {
            self.take(found);
        }
        let mut under_way = 0;
        for one in self.watched.iter_mut().filter(|one| one.looking_since.is_none()) {
            if one.begin.send(()).is_ok() {
                one.looking_since = Some(begun);
                under_way += 1;
            } else {
                one.last = Err("its thread has ended".to_owned());
            }
        }
        while under_way > 0
            && let Ok(found) = self.found.recv_timeout(self.time_max.saturating_sub(begun.elapsed()))
        {
            // One that hung and came back now was not begun by this look.
            under_way -= usize::from(self.take(found) == Some(begun));
        }
        self.watched.iter_mut().map(Watched::state).collect()
    }

    /// Notes what a checker found; tells when its look had begun.
    fn take(&mut self, (index, state): Found) -> Option<Instant> {
        let one = self.watched.get_mut(index)?;
        one.last = state;
        one.looking_since.take()
    }
}

impl Watched {
    /// Its state after a look; the log hears of changes.
    fn state(&mut self) -> SubsystemState {
        let state = match self.looking_since {
            Some(since) => Err(format!("its check has not ended for {} ms", since.elapsed().as_millis())),
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

/// The subsystems of a running service; shared by all executors.
#[derive(Clone)]
pub struct SubsystemChecks {
    errand: Arc<Errand<Vec<SubsystemState>>>,
    flags: Vec<(&'static str, Flag)>,
    notices: Vec<(&'static str, Notice)>,
}

impl Readiness for SubsystemChecks {
    fn notices(&self) -> Vec<(&'static str, String)> {
        self.notices.iter().filter_map(|(name, notice)| Some((*name, notice()?))).collect()
    }

    fn look(&self) -> Looking<'_> {
        Box::pin(async {
            let unanswered = || SubsystemState {
                name: "checks",
                state: Err("the thread that looks at the subsystems has ended".to_owned()),
            };
            let mut states = self.errand.ask().await.unwrap_or_else(|| vec![unanswered()]);
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

    const SHORT: Duration = Duration::from_millis(100);

    fn failing(states: &[SubsystemState]) -> Vec<&'static str> {
        states.iter().filter(|one| one.state.is_err()).map(|one| one.name).collect()
    }

    fn look(checks: &SubsystemChecks) -> Vec<SubsystemState> {
        block_on(checks.look())
    }

    /// A device that answers no read must not take `/ready` with it, nor a thread for each who asks.
    #[test]
    fn a_subsystem_that_hangs_is_named_in_time_and_hangs_once() {
        let (release, released) = sync_channel::<()>(0);
        let looks = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&looks);
        let hanging = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            // Hangs until the other end is dropped, and then no more.
            let _ = released.recv();
            Ok(())
        };
        let checks = Subsystems::default()
            .checked("storage", hanging)
            .checked("metadata", || Ok(()))
            .known("listeners", || Ok(()))
            .start_with(SHORT, Duration::ZERO)
            .unwrap();
        let begun = Instant::now();
        let states = look(&checks);
        assert!(begun.elapsed() >= SHORT && begun.elapsed() < 20 * SHORT, "{:?}", begun.elapsed());
        assert_eq!(failing(&states), ["storage"]);
        assert_eq!(
            states.iter().map(|one| one.name).collect::<Vec<_>>(),
            ["storage", "metadata", "listeners"]
        );

        // Those who ask later need not wait for it again.
        for _ in 0..50 {
            assert_eq!(failing(&look(&checks)), ["storage"]);
        }
        assert!(begun.elapsed() < 40 * SHORT, "{:?}", begun.elapsed());
        assert_eq!(looks.load(Ordering::Relaxed), 1, "the look that hangs is not begun again");

        drop(release);
        let until = Instant::now() + 100 * SHORT;
        while !failing(&look(&checks)).is_empty() {
            assert!(Instant::now() < until, "it never becomes ready again");
        }
    }

    #[test]
    fn subsystems_are_looked_at_side_by_side() {
        // Each waits for the other: one behind the other they would both run out of time.
        let barrier = Arc::new(std::sync::Barrier::new(2));
        let waits = |barrier: &Arc<std::sync::Barrier>| {
            let barrier = Arc::clone(barrier);
            move || {
                barrier.wait();
                Ok(())
            }
        };
        let checks = Subsystems::default()
            .checked("storage", waits(&barrier))
            .checked("metadata", waits(&barrier))
            .start_with(Duration::from_secs(60), Duration::ZERO)
            .unwrap();
        assert!(failing(&look(&checks)).is_empty());
    }

    #[test]
    fn failures_and_flags_show_at_once_and_pass_again() {
        let (broken, draining) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
        let say = |flag: &Arc<AtomicBool>| {
            let flag = Arc::clone(flag);
            move || if flag.load(Ordering::Relaxed) { Err("no".to_owned()) } else { Ok(()) }
        };
        let checks = Subsystems::default()
            .checked("storage", say(&broken))
            .known("listeners", say(&draining))
            .start_with(Duration::from_secs(60), Duration::ZERO)
            .unwrap();
        assert_eq!(failing(&look(&checks)), ["storage"]);
        broken.store(false, Ordering::Relaxed);
        assert!(failing(&look(&checks)).is_empty());
        draining.store(true, Ordering::Relaxed);
        assert_eq!(failing(&look(&checks)), ["listeners"]);
    }

    #[test]
    fn a_check_that_panics_is_a_failure_of_its_subsystem() {
        let checks = Subsystems::default()
            .checked("storage", || panic!("on purpose"))
            .start_with(Duration::from_secs(60), Duration::ZERO)
            .unwrap();
        for _ in 0..2 {
            assert_eq!(failing(&look(&checks)), ["storage"]);
        }
    }
}
