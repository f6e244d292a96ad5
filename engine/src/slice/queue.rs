//! The bounded queue of commands to a slice's committer.
//!
//! Executors push without waiting. The committer takes all waiting commands as one batch. If the queue is full, a command is
//! refused at once.

use crate::error::EngineError;
use crate::limits::{BATCH_COMMANDS_MAX, BATCH_INLINE_BYTES_MAX, QUEUE_COMMANDS_MAX};
use crate::slice::command::Command;
use crate::slice::staged::StagedPayload;
use cairn_sync::{Condvar, Mutex};
use std::collections::VecDeque;

#[derive(Default)]
struct State {
    commands: VecDeque<Command>,
    closed: bool,
}

/// A bounded queue of many producers and one consumer.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

impl Queue {
    /// Adds a command.
    ///
    /// # Errors
    /// [`EngineError::Overloaded`] if the queue is full, and [`EngineError::ShuttingDown`] if it is closed.
    pub(crate) fn push(&self, command: Command) -> Result<(), EngineError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(EngineError::ShuttingDown);
        }
        if state.commands.len() >= QUEUE_COMMANDS_MAX {
            return Err(EngineError::Overloaded);
        }
        state.commands.push_back(command);
        if state.commands.len() == 1 {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Adds commands that the committer can take together. Those that are refused, because the queue is full or closed, are
    /// failed.
    pub(crate) fn push_all(&self, commands: Vec<Command>) {
        let (refused, error) = {
            let mut state = self.state.lock();
            let mut commands = commands.into_iter();
            let was_empty = state.commands.is_empty();
            if !state.closed {
                let room = QUEUE_COMMANDS_MAX.saturating_sub(state.commands.len());
                state.commands.extend(commands.by_ref().take(room));
            }
            if was_empty && !state.commands.is_empty() {
                self.filled.notify_one();
            }
            (commands, if state.closed { EngineError::ShuttingDown } else { EngineError::Overloaded })
        };
        refused.for_each(|command| command.fail(&error));
    }

    /// Waits for commands and takes as many as a transaction may hold, at least one. Returns `None` if the queue is closed
    /// and empty.
    pub(crate) fn take(&self) -> Option<Vec<Command>> {
        let mut state = self.state.lock();
        while state.commands.is_empty() {
            if state.closed {
                return None;
            }
            state = self.filled.wait(state);
        }
        let mut inline = 0;
        let mut fits = |command: &Command| {
            inline += command.payload().map_or(0, StagedPayload::inline_bytes);
            inline <= BATCH_INLINE_BYTES_MAX
        };
        let count =
            state.commands.iter().take(BATCH_COMMANDS_MAX).take_while(|command| fits(command)).count();
        Some(state.commands.drain(..count.max(1)).collect())
    }

    /// Returns the number of waiting commands.
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().commands.len()
    }

    /// Refuses further commands. Those that wait are still taken.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.filled.notify_all();
    }
}
