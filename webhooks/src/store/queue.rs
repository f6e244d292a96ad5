//! Bounded queue of work for the writer.

use super::apply::{NewDeliveries, Outcome};
use super::changes::Changes;
use super::delivery_record::Waiting;
use crate::limits::{BATCH_OUTCOMES_MAX, CHANGES_WAITING_MAX, OUTCOMES_WAITING_MAX};
use cairn_sync::{Condvar, Mutex};
use cairn_tables::StoreFailure;
use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// A change by an administrator.
pub(super) type Change = Box<dyn FnOnce(&Changes<'_>) + Send>;
/// New deliveries, and who waits for them to be durable.
pub(super) type NewWork = (NewDeliveries, SyncSender<Result<Vec<Waiting>, StoreFailure>>);

/// The next work of the writer.
#[derive(Default)]
pub(super) struct Work {
    pub(super) changes: Vec<Change>,
    pub(super) new: Option<NewWork>,
    pub(super) outcomes: Vec<Outcome>,
    /// Whether the queue is closed, and this is all that was in it.
    pub(super) is_last: bool,
}

#[derive(Default)]
struct State {
    changes: VecDeque<Change>,
    new: VecDeque<NewWork>,
    outcomes: VecDeque<Outcome>,
    is_closed: bool,
}

impl State {
    fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.new.is_empty() && self.outcomes.is_empty()
    }
}

/// The queue between everybody else and the writer.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    not_empty: Condvar,
    has_room: Condvar,
}

impl Queue {
    /// Adds a change. Never waits.
    pub(super) fn push_change(&self, change: Change) -> Result<(), StoreFailure> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(StoreFailure::Closing);
        }
        if state.changes.len() >= CHANGES_WAITING_MAX {
            return Err(StoreFailure::Overloaded);
        }
        state.changes.push_back(change);
        self.not_empty.notify_one();
        Ok(())
    }

    /// Adds new deliveries. Only threads that wait for each of their batches do this, so there are few.
    pub(super) fn push_new(&self, new: NewWork) -> Result<(), StoreFailure> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(StoreFailure::Closing);
        }
        state.new.push_back(new);
        self.not_empty.notify_one();
        Ok(())
    }

    /// Adds an outcome. Waits for room. After the queue was closed the outcome is lost: the attempt is made again.
    pub(super) fn push_outcome(&self, outcome: Outcome) {
        let is_full = |state: &mut State| state.outcomes.len() >= OUTCOMES_WAITING_MAX && !state.is_closed;
        let mut state = self.has_room.wait_while(self.state.lock(), is_full);
        if !state.is_closed {
            state.outcomes.push_back(outcome);
            self.not_empty.notify_one();
        }
    }

    /// Takes back outcomes that were not written, so that they count as waiting. After the queue was closed they are lost.
    pub(super) fn put_back(&self, outcomes: Vec<Outcome>) {
        let mut state = self.state.lock();
        if !state.is_closed {
            outcomes.into_iter().rev().for_each(|outcome| state.outcomes.push_front(outcome));
        }
    }

    /// Waits for work, at most for `timeout`, and takes as much as one transaction may hold.
    pub(super) fn take(&self, timeout: Duration) -> Work {
        let is_idle = |state: &mut State| state.is_empty() && !state.is_closed;
        let mut state = self.not_empty.wait_timeout_while(self.state.lock(), timeout, is_idle);
        let count = state.outcomes.len().min(BATCH_OUTCOMES_MAX);
        let work = Work {
            changes: state.changes.drain(..).collect(),
            new: state.new.pop_front(),
            outcomes: state.outcomes.drain(..count).collect(),
            is_last: state.is_closed && state.is_empty(),
        };
        if count > 0 {
            self.has_room.notify_all();
        }
        work
    }

    /// Waits for a change or the end of the queue, at most for `timeout`: the disk is full, and outcomes wait.
    pub(super) fn wait_change(&self, timeout: Duration) {
        drop(self.not_empty.wait_timeout_while(self.state.lock(), timeout, |state| {
            !state.is_closed && state.changes.is_empty()
        }));
    }

    /// Refuses further work. What waits is still done.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.not_empty.notify_all();
        self.has_room.notify_all();
    }
}
