//! The store's events as a trait, so that tests can replace them.

use cairn_engine::{EngineError, EventPage, EventQuery, Store, Tick};
use std::time::Duration;

/// The events of a store.
pub trait EventSource: Send + Sync {
    /// Returns one page of events, oldest first. Blocks.
    ///
    /// # Errors
    /// Those of the store.
    fn events(&self, query: &EventQuery) -> Result<EventPage, EngineError>;

    /// Returns a number that changes with every commit of events.
    fn generation(&self) -> u64;

    /// Waits until the generation differs from `seen`, or for `limit`. Blocks.
    fn wait(&self, seen: u64, limit: Duration);

    /// Wakes all threads in [`Self::wait`]: the service ends.
    fn wake(&self);

    /// Returns a tick above those of all events that have been committed.
    fn tick(&self) -> Tick;
}

impl EventSource for Store {
    fn events(&self, query: &EventQuery) -> Result<EventPage, EngineError> {
        Self::events(self, query)
    }

    fn generation(&self) -> u64 {
        self.event_signal().generation()
    }

    fn wait(&self, seen: u64, limit: Duration) {
        self.event_signal().wait(seen, limit);
    }

    fn wake(&self) {
        self.event_signal().wake();
    }

    fn tick(&self) -> Tick {
        self.event_tick()
    }
}
