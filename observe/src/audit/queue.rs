//! The queue of records in front of the trail's writer.
//!
//! Executors push without waiting; the writer takes everything that is there as one batch. Bounded: what finds no place
//! is refused at once.

use super::error::AuditError;
use super::id::AuditId;
use super::limits::{BATCH_RECORDS_MAX, QUEUE_OFFERED_MAX, QUEUE_RECORDS_MAX};
use super::record::AuditRecord;
use futures_channel::oneshot;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What waits for the writer.
pub(crate) enum Job {
    /// A record that somebody waits for. The waiting side may have gone; it is recorded all the same.
    Append(Box<AuditRecord>, oneshot::Sender<Result<AuditId, AuditError>>),
    /// A record that nobody waits for.
    Offer(Box<AuditRecord>),
    /// What is about to be done; somebody waits for it.
    Intend(Box<AuditRecord>, oneshot::Sender<Result<AuditId, AuditError>>),
    /// The intent of this id is over, and this is what came of it. Somebody may wait for it.
    Settle(AuditId, Option<Box<AuditRecord>>, Option<oneshot::Sender<()>>),
    /// Nothing to record: tells that all before it was dealt with.
    Barrier(oneshot::Sender<()>),
}

/// What the writer finds.
pub(crate) enum Taken {
    Batch(Vec<Job>),
    /// Nothing came in the time.
    Nothing,
    /// Nothing will come any more.
    Closed,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    offered: usize,
    closed: bool,
}

/// See the file's first lines.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job.
    pub(crate) fn push(&self, job: Job) -> Result<(), AuditError> {
        let mut state = self.lock();
        if state.closed {
            return Err(AuditError::ShuttingDown);
        }
        let is_offered = matches!(job, Job::Offer(_));
        // What is settled was let in before; there are no more of them than intents.
        let is_settled = matches!(job, Job::Settle(..));
        if (state.jobs.len() >= QUEUE_RECORDS_MAX && !is_settled)
            || (is_offered && state.offered >= QUEUE_OFFERED_MAX)
        {
            return Err(AuditError::Overloaded);
        }
        state.offered += usize::from(is_offered);
        state.jobs.push_back(job);
        if state.jobs.len() == 1 {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Jobs that wait.
    pub(crate) fn length(&self) -> usize {
        self.lock().jobs.len()
    }

    /// Waits for jobs, at most for `patience`, and takes as many as a transaction may hold.
    pub(crate) fn take(&self, patience: Duration) -> Taken {
        let idle = |state: &mut State| state.jobs.is_empty() && !state.closed;
        let waited = self.filled.wait_timeout_while(self.lock(), patience, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.jobs.is_empty() {
            return if state.closed { Taken::Closed } else { Taken::Nothing };
        }
        let count = state.jobs.len().min(BATCH_RECORDS_MAX);
        let batch: Vec<_> = state.jobs.drain(..count).collect();
        state.offered -= batch.iter().filter(|job| matches!(job, Job::Offer(_))).count();
        Taken::Batch(batch)
    }

    /// Refuses further jobs; those that wait are still done.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{Job, Queue, Taken};
    use crate::audit::error::AuditError;
    use crate::audit::limits::{BATCH_RECORDS_MAX, QUEUE_OFFERED_MAX};
    use crate::audit::record::{AuditRecord, AuditResult};
    use futures_channel::oneshot;
    use std::time::Duration;

    fn record() -> Box<AuditRecord> {
        Box::new(AuditRecord::new("p", "o", AuditResult::Denied))
    }

    #[test]
    fn a_flood_that_nobody_waits_for_leaves_room_for_what_somebody_waits_for() {
        let queue = Queue::default();
        for _ in 0..QUEUE_OFFERED_MAX {
            queue.push(Job::Offer(record())).unwrap();
        }
        assert_eq!(queue.push(Job::Offer(record())), Err(AuditError::Overloaded));
        queue.push(Job::Append(record(), oneshot::channel().0)).unwrap();
        let Taken::Batch(batch) = queue.take(Duration::ZERO) else { panic!("a batch") };
        assert_eq!(batch.len(), BATCH_RECORDS_MAX);
        queue.push(Job::Offer(record())).unwrap();
    }

    #[test]
    fn a_closed_queue_gives_what_waits_and_takes_nothing_more() {
        let queue = Queue::default();
        assert!(matches!(queue.take(Duration::ZERO), Taken::Nothing));
        queue.push(Job::Offer(record())).unwrap();
        queue.close();
        assert_eq!(queue.push(Job::Offer(record())), Err(AuditError::ShuttingDown));
        assert!(matches!(queue.take(Duration::ZERO), Taken::Batch(_)));
        assert!(matches!(queue.take(Duration::ZERO), Taken::Closed));
    }
}
