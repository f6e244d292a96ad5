//! Bounded queue of commands for the audit writer.
//!
//! Executors push without waiting, and the writer takes all commands as one batch. Commands without room are refused at once.

use super::id::AuditId;
use super::kind::AuditKind;
use super::limits::{BATCH_RECORDS_MAX, QUEUE_OFFERED_MAX, QUEUE_RECORDS_MAX, QUEUE_WITHOUT_CHANGE_MAX};
use super::record::AuditRecord;
use cairn_sync::{Condvar, Mutex};
use cairn_tables::StoreFailure;
use futures_channel::oneshot;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A command for the writer. A record is written even if the caller that waits for it has gone.
pub(crate) enum Command {
    /// Records an event and sends its id.
    Append(AuditKind, Box<AuditRecord>, oneshot::Sender<Result<AuditId, StoreFailure>>),
    /// Records an event that no caller waits for.
    Offer(Box<AuditRecord>),
    /// Records an intent and sends its id.
    Intend(Arc<AuditRecord>, oneshot::Sender<Result<AuditId, StoreFailure>>),
    /// Replaces the intent with this id by its outcome, if anything was changed. A caller may wait for it.
    Complete(AuditId, AuditKind, Option<Box<AuditRecord>>, Option<oneshot::Sender<()>>),
    /// Replies after all commands before it were processed.
    Barrier(oneshot::Sender<()>),
}

/// The result of [`Queue::take`].
pub(crate) enum Taken {
    Batch(Vec<Command>),
    /// The timeout passed without a command.
    Nothing,
    /// The queue is closed and empty.
    Closed,
}

#[derive(Default)]
struct State {
    commands: VecDeque<Command>,
    /// Number of [`Command::Offer`] among the commands.
    offered: usize,
    closed: bool,
}

/// The bounded queue between executors and the writer.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    not_empty: Condvar,
}

impl Queue {
    /// Adds a command. Returns how many wait then.
    ///
    /// # Errors
    /// [`StoreFailure::Closing`] if the queue is closed, [`StoreFailure::Overloaded`] if it has no room.
    pub(crate) fn push(&self, command: Command) -> Result<usize, StoreFailure> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(StoreFailure::Closing);
        }
        let is_offered = matches!(command, Command::Offer(_));
        // Completions always have room, because there are no more of them than admitted intents.
        let is_completion = matches!(command, Command::Complete(..));
        let room = match &command {
            Command::Append(kind, ..) if kind.is_without_change() => QUEUE_WITHOUT_CHANGE_MAX,
            _ => QUEUE_RECORDS_MAX,
        };
        if (state.commands.len() >= room && !is_completion)
            || (is_offered && state.offered >= QUEUE_OFFERED_MAX)
        {
            return Err(StoreFailure::Overloaded);
        }
        state.offered += usize::from(is_offered);
        state.commands.push_back(command);
        if state.commands.len() == 1 {
            self.not_empty.notify_one();
        }
        Ok(state.commands.len())
    }

    /// Returns the number of waiting commands.
    pub(crate) fn length(&self) -> usize {
        self.state.lock().commands.len()
    }

    /// Waits for commands, at most for `timeout`, and takes as many as one transaction may hold.
    pub(crate) fn take(&self, timeout: Duration) -> Taken {
        let idle = |state: &mut State| state.commands.is_empty() && !state.closed;
        let mut state = self.not_empty.wait_timeout_while(self.state.lock(), timeout, idle);
        if state.commands.is_empty() {
            return if state.closed { Taken::Closed } else { Taken::Nothing };
        }
        let count = state.commands.len().min(BATCH_RECORDS_MAX);
        let batch: Vec<_> = state.commands.drain(..count).collect();
        let offered = batch.iter().filter(|command| matches!(command, Command::Offer(_))).count();
        assert!(offered <= state.offered, "every offered command was counted when it was added");
        state.offered -= offered;
        Taken::Batch(batch)
    }

    /// Refuses further commands. Waiting commands are still processed.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.not_empty.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, Queue, Taken};
    use crate::audit::kind::AuditKind;
    use crate::audit::limits::{BATCH_RECORDS_MAX, QUEUE_OFFERED_MAX, QUEUE_WITHOUT_CHANGE_MAX};
    use crate::audit::record::{AuditRecord, AuditResult};
    use cairn_tables::StoreFailure;
    use futures_channel::oneshot;
    use std::time::Duration;

    fn record() -> Box<AuditRecord> {
        Box::new(AuditRecord::new("p", "o", AuditResult::Denied))
    }

    #[test]
    fn a_flood_of_offers_leaves_room_for_appends() {
        let queue = Queue::default();
        for _ in 0..QUEUE_OFFERED_MAX {
            queue.push(Command::Offer(record())).unwrap();
        }
        assert_eq!(queue.push(Command::Offer(record())), Err(StoreFailure::Overloaded));
        queue.push(append(AuditKind::Change)).unwrap();
        let Taken::Batch(batch) = queue.take(Duration::ZERO) else { panic!("a batch") };
        assert_eq!(batch.len(), BATCH_RECORDS_MAX);
        queue.push(Command::Offer(record())).unwrap();
    }

    fn append(kind: AuditKind) -> Command {
        Command::Append(kind, record(), oneshot::channel().0)
    }

    #[test]
    fn a_flood_of_accesses_leaves_room_for_changes() {
        let queue = Queue::default();
        for _ in 0..QUEUE_WITHOUT_CHANGE_MAX {
            queue.push(append(AuditKind::Access)).unwrap();
        }
        assert_eq!(queue.push(append(AuditKind::Access)), Err(StoreFailure::Overloaded));
        assert_eq!(queue.push(append(AuditKind::Read)), Err(StoreFailure::Overloaded));
        queue.push(append(AuditKind::Change)).unwrap();
    }

    #[test]
    fn a_closed_queue_is_emptied_and_refuses_commands() {
        let queue = Queue::default();
        assert!(matches!(queue.take(Duration::ZERO), Taken::Nothing));
        queue.push(Command::Offer(record())).unwrap();
        queue.close();
        assert_eq!(queue.push(Command::Offer(record())), Err(StoreFailure::Closing));
        assert!(matches!(queue.take(Duration::ZERO), Taken::Batch(_)));
        assert!(matches!(queue.take(Duration::ZERO), Taken::Closed));
    }
}
