//! Background work on an open store: priority, failures, cancellation, and waits between rounds.

use crate::error::EngineError;
use cairn_sync::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Niceness of threads that work in the background: requests have priority.
const NICENESS: i32 = 10;

/// Lowers the priority of the calling thread. If that fails, it works at normal priority.
pub fn lower_priority() {
    // On Linux this applies to the calling thread only.
    let _ = rustix::process::nice(NICENESS);
}

/// The first failure of work that goes on with the next slice after a failure.
#[derive(Debug, Default)]
pub(crate) struct FirstFailure(Option<EngineError>);

impl FirstFailure {
    /// Notes a failure, and returns a default in its place.
    ///
    /// # Errors
    /// [`EngineError::ShuttingDown`], which ends the work.
    pub(crate) fn note<T: Default>(&mut self, done: Result<T, EngineError>) -> Result<T, EngineError> {
        match done {
            Err(error) if !matches!(error, EngineError::ShuttingDown) => {
                self.0.get_or_insert(error);
                Ok(T::default())
            }
            done => done,
        }
    }

    /// Returns the first failure, or what was done if there is none.
    pub(crate) fn or_done<T>(self, done: T) -> Result<T, EngineError> {
        self.0.map_or(Ok(done), Err)
    }
}

/// A flag that cancels work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// # Errors
    /// [`EngineError::ShuttingDown`] if the work is cancelled.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        if self.0.load(Ordering::Relaxed) { Err(EngineError::ShuttingDown) } else { Ok(()) }
    }

    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// Whether an inspection is running. Cleared before its result is sent, so that the receiver can begin the next one.
    pub(crate) is_running: bool,
    /// The last inspection, running or ended.
    pub(crate) last: Option<(Cancel, JoinHandle<()>)>,
    /// Whether the store is closing. Then no inspection can begin.
    pub(crate) ended: bool,
}

/// The running inspection of a store, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Inspections(Mutex<State>);

impl Inspections {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Cancels the running inspection and waits for its end. No other inspection can begin afterwards.
    pub(crate) fn end(&self) {
        let last = {
            let mut state = self.lock();
            state.ended = true;
            state.last.take()
        };
        if let Some((cancel, thread)) = last {
            cancel.cancel();
            // A panic of the thread was caught and logged.
            let _ = thread.join();
        }
    }
}

/// Sleeps for `time`. Checks every second whether the process is stopping, and then ends early.
pub(crate) async fn wait(time: Duration, stopping: &impl Fn() -> bool) {
    let until = Instant::now() + time;
    while Instant::now() < until && !stopping() {
        glommio::timer::sleep(Duration::from_secs(1).min(time)).await;
    }
}
