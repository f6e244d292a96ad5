//! A deterministic scheduler: runs the threads of a simulated store one at a time, from stop point to stop point.
//!
//! A committer or maintainer that reaches a stop point blocks there until the campaign steps it. The campaign then blocks
//! until that thread has reached its next stop point. So exactly one thread runs at any moment, the course of events depends
//! only on the order of the steps, and at every stop point the campaign can read all that a power cut would leave. Stop points
//! are the top of each thread's loop, every flush of a volume, and both sides of a commit. A released scheduler stops no one.

use std::collections::{BTreeMap, HashMap};
use std::thread::ThreadId;

use cairn_sync::{Condvar, Mutex};

/// A thread of a store, by the number of its slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoreThread {
    /// Commits the changes of the slice.
    Committer(u16),
    /// Grows the volumes of the slice and gives space back.
    Maintainer(u16),
}

/// The point at which a thread stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPoint {
    /// At the top of its loop.
    Idle,
    /// Before a flush of a volume, or of the names of volumes.
    Flushing,
    /// The transaction is complete but not committed.
    Committing,
    /// The transaction is durable; nothing has been acknowledged.
    Committed,
}

#[derive(Debug, Default)]
struct State {
    released: bool,
    threads: HashMap<ThreadId, StoreThread>,
    stopped: BTreeMap<StoreThread, StopPoint>,
}

/// Stops and steps the threads of one store.
#[derive(Debug, Default)]
pub struct Scheduler {
    state: Mutex<State>,
    changed: Condvar,
}

impl Scheduler {
    /// Returns a scheduler that stops no thread.
    #[must_use]
    pub fn released() -> Self {
        let scheduler = Self::default();
        scheduler.release();
        scheduler
    }

    /// Registers the calling thread as `thread` and stops it at the top of its loop.
    pub(super) fn enter(&self, thread: StoreThread) {
        self.state.lock().threads.insert(std::thread::current().id(), thread);
        self.reach(StopPoint::Idle);
    }

    /// Stops the calling thread until it is stepped. Threads that were never registered are not stopped.
    pub(super) fn reach(&self, point: StopPoint) {
        let mut state = self.state.lock();
        let Some(thread) = state.threads.get(&std::thread::current().id()).copied() else { return };
        if state.released {
            return;
        }
        let before = state.stopped.insert(thread, point);
        assert!(before.is_none(), "two threads run as {thread:?}");
        self.changed.notify_all();
        while !state.released && state.stopped.contains_key(&thread) {
            state = self.changed.wait(state);
        }
    }

    /// Blocks until a thread has stopped; returns where.
    pub fn stop_of(&self, thread: StoreThread) -> StopPoint {
        let mut state = self.state.lock();
        loop {
            if let Some(point) = state.stopped.get(&thread) {
                return *point;
            }
            state = self.changed.wait(state);
        }
    }

    /// Lets a thread run to its next stop point; returns that. The thread must have something to do.
    pub fn step(&self, thread: StoreThread) -> StopPoint {
        self.stop_of(thread);
        self.state.lock().stopped.remove(&thread);
        self.changed.notify_all();
        self.stop_of(thread)
    }

    /// Stops no thread from now on.
    pub fn release(&self) {
        self.state.lock().released = true;
        self.changed.notify_all();
    }
}
