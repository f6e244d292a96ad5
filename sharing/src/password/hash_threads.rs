//! Threads that hash passwords: at most two at a time in the whole process, at low priority.
//!
//! A hash takes [`MEMORY_KIB`](crate::types::password::MEMORY_KIB) of memory and tens of milliseconds of a core, so executors
//! must not compute it, and visitors must not be able to force many at once. The queue is bounded. Threads start when there is
//! work, and give their memory back when there was none for a while.

use crate::types::password::HashMemory;
use cairn_sync::{Condvar, Mutex};
use futures_channel::oneshot;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Hashes that are computed at a time, at most.
pub(crate) const HASH_THREADS_MAX: usize = 2;
/// Hashes that may wait: about a second of work.
const WAITING_MAX: usize = 64;
/// The time for which a thread waits for another hash before it ends.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// Executors come first: a thread of this niceness gets about a tenth of a busy core.
const NICENESS: i32 = 10;

type Job = Box<dyn FnOnce(&mut HashMemory) + Send>;

struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    threads_max: usize,
    idle: usize,
    is_closed: bool,
}

impl Default for State {
    fn default() -> Self {
        Self { jobs: VecDeque::new(), threads: 0, threads_max: HASH_THREADS_MAX, idle: 0, is_closed: false }
    }
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

/// Computes hashes on threads of its own.
#[derive(Clone, Default)]
pub(crate) struct HashThreads(Arc<Queue>);

/// Too many hashes wait, or the service is ending. Nothing was computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotHashed {
    Busy,
    Unavailable,
}

impl HashThreads {
    /// Sets how many hashes are computed at a time, from 1 to [`HASH_THREADS_MAX`]. Call it before the first hash.
    pub(crate) fn limit(&self, threads: usize) {
        self.0.state.lock().threads_max = threads.clamp(1, HASH_THREADS_MAX);
    }

    /// Runs a computation on one of the threads. It is skipped if the caller has dropped the future before its turn.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        compute: impl FnOnce(&mut HashMemory) -> T + Send + 'static,
    ) -> Result<T, NotHashed> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |memory| {
            if !reply.is_canceled() {
                drop(reply.send(compute(memory)));
            }
        });
        self.push(job)?;
        answer.await.map_err(|_| NotHashed::Unavailable)
    }

    fn push(&self, job: Job) -> Result<(), NotHashed> {
        let mut state = self.0.state.lock();
        if state.is_closed {
            return Err(NotHashed::Unavailable);
        }
        if state.jobs.len() >= WAITING_MAX {
            return Err(NotHashed::Busy);
        }
        if state.idle <= state.jobs.len() && state.threads < state.threads_max {
            let queue = Arc::clone(&self.0);
            let thread =
                std::thread::Builder::new().name("password-hash".to_owned()).spawn(move || run(&queue));
            match thread {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => {
                    tracing::error!(target: "service::sharing", %error, "no thread for passwords could be started");
                    return Err(NotHashed::Unavailable);
                }
                Err(_) => {}
            }
        }
        state.jobs.push_back(job);
        self.0.changed.notify_one();
        Ok(())
    }

    /// Ends the threads. Hashes that wait are not computed.
    pub(crate) fn close(&self) {
        let mut state = self.0.state.lock();
        state.is_closed = true;
        state.jobs.clear();
        self.0.changed.notify_all();
    }
}

fn run(queue: &Queue) {
    // Lower priority is a courtesy; without it the hashes are only less polite.
    let _ = rustix::process::nice(NICENESS);
    let mut memory = HashMemory::default();
    loop {
        let mut state = queue.state.lock();
        state.idle += 1;
        let is_idle = |state: &mut State| state.jobs.is_empty() && !state.is_closed;
        let mut state = queue.changed.wait_timeout_while(state, IDLE_MAX, is_idle);
        state.idle -= 1;
        let Some(job) = state.jobs.pop_front() else {
            state.threads -= 1;
            return;
        };
        drop(state);
        // Ends only this hash, and not the thread: it is counted. Whoever waits gets no answer.
        if catch_unwind(AssertUnwindSafe(|| job(&mut memory))).is_err() {
            memory = HashMemory::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::block_on;
    use std::sync::mpsc::channel;

    #[test]
    fn two_run_at_a_time_and_the_queue_is_bounded() {
        let threads = HashThreads::default();
        let (begun, begins) = channel();
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock();
        let block = || {
            let (begun, gate) = (begun.clone(), Arc::clone(&gate));
            threads.push(Box::new(move |_| {
                begun.send(()).expect("received");
                drop(gate.lock());
            }))
        };
        block().expect("room");
        block().expect("room");
        for _ in 0..2 {
            begins.recv().expect("both begin");
        }
        for _ in 0..WAITING_MAX {
            block().expect("room");
        }
        assert_eq!(block(), Err(NotHashed::Busy));
        assert_eq!(threads.0.state.lock().threads, HASH_THREADS_MAX);
        assert!(begins.try_recv().is_err(), "only two run");
        drop(held);
        let computed = loop {
            // Those that wait end first.
            match block_on(threads.run(|_| 7)) {
                Err(NotHashed::Busy) => std::thread::yield_now(),
                computed => break computed,
            }
        };
        assert_eq!(computed, Ok(7));
        threads.close();
        assert_eq!(block_on(threads.run(|_| 7)), Err(NotHashed::Unavailable));
    }

    /// A thread that had panicked was still counted. After two panics, no password was checked until the next start.
    #[test]
    fn a_panic_ends_only_its_hash() {
        let threads = HashThreads::default();
        for _ in 0..HASH_THREADS_MAX {
            let hashed = block_on(threads.run(|_| -> u8 { panic!("a test") }));
            assert_eq!(hashed, Err(NotHashed::Unavailable));
        }
        let (hashed, waiting) = channel();
        threads.push(Box::new(move |_| hashed.send(7).expect("received"))).expect("room");
        assert_eq!(waiting.recv_timeout(Duration::from_secs(60)), Ok(7));
    }
}
