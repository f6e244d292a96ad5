//! The stage: lets the threads of a simulated store run one at a time, from one point to the next.
//!
//! A committer or keeper that reaches a point waits there until somebody steps it on. Whoever steps it waits in turn until it
//! has reached its next point; so exactly one thread runs at any moment, what happens follows from the order of the steps,
//! and at every point all that a power cut would find can be looked at. Points are the top of each thread's loop, every
//! flush of a volume, and both sides of a commit. A released stage holds nobody.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// A thread of a store, by the number of its slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Actor {
    /// The one that changes the slice.
    Committer(u16),
    /// The one that grows its volumes.
    Keeper(u16),
}

/// Where a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before it looks for something to do.
    Idle,
    /// Before a flush of a volume, or of the names of volumes.
    Flushing,
    /// A batch is decided, the transaction not committed.
    Committing,
    /// The transaction is durable, nobody has been answered.
    Committed,
}

#[derive(Debug, Default)]
struct State {
    released: bool,
    actors: HashMap<ThreadId, Actor>,
    waiting: BTreeMap<Actor, Point>,
}

/// See the file's first lines.
#[derive(Debug, Default)]
pub struct Stage {
    state: Mutex<State>,
    changed: Condvar,
}

impl Stage {
    /// A stage that holds nobody.
    #[must_use]
    pub fn released() -> Self {
        let stage = Self::default();
        stage.release();
        stage
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The calling thread is `actor` and has reached the top of its loop.
    pub(crate) fn enter(&self, actor: Actor) {
        self.lock().actors.insert(std::thread::current().id(), actor);
        self.reach(Point::Idle);
    }

    /// The calling thread has reached a point; returns when it may go on. Threads that never entered are not held.
    pub(crate) fn reach(&self, point: Point) {
        let mut state = self.lock();
        let Some(actor) = state.actors.get(&std::thread::current().id()).copied() else { return };
        if state.released {
            return;
        }
        state.waiting.insert(actor, point);
        self.changed.notify_all();
        while !state.released && state.waiting.contains_key(&actor) {
            state = self.wait(state);
        }
    }

    /// Where an actor waits; waits until it does.
    pub fn at(&self, actor: Actor) -> Point {
        let mut state = self.lock();
        loop {
            if let Some(point) = state.waiting.get(&actor) {
                return *point;
            }
            state = self.wait(state);
        }
    }

    /// Lets an actor go on to its next point, and returns that. It must have something to do.
    pub fn step(&self, actor: Actor) -> Point {
        self.at(actor);
        self.lock().waiting.remove(&actor);
        self.changed.notify_all();
        self.at(actor)
    }

    /// Holds nobody any more.
    pub fn release(&self) {
        self.lock().released = true;
        self.changed.notify_all();
    }
}
