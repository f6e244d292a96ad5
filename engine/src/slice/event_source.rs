//! The clock of events, and floors of unfinished transactions.
//!
//! Events are in several environments: one for each slice, and the one of the buckets. A reader that follows them must not read
//! past an event that is committed late. So:
//! 1. One clock assigns ticks to the events of all sources, each tick once, in increasing order.
//! 2. A transaction publishes a *floor* before it takes its first tick, and removes it when it has been committed or dropped.
//!    All its ticks are above the floor.
//! 3. A reader takes a tick, then reads all floors, then begins its snapshots. Events below that tick and below all floors are
//!    final: a transaction whose floor was not seen takes its ticks later, or is already in the snapshots.
//!
//! After a commit whose outcome is unknown the floor stays until the slice has been recovered. The event may be on the device.

use crate::error::EngineError;
use crate::types::event::{EventType, Tick};
use cairn_model::Timestamp;
use cairn_sync::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// A floor above all ticks: no transaction with events is in progress.
const NO_FLOOR: Tick = Tick(u64::MAX);
/// Number of event types, and 0, which no type has.
const TYPES: usize = EventType::ALL.len() + 1;

/// The clock of all events of a store, and the signal that there are new ones.
#[derive(Debug, Default)]
pub struct EventSignal {
    last: AtomicU64,
    generation: AtomicU64,
    waiters: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
    committed: [AtomicU64; TYPES],
}

impl EventSignal {
    /// Returns a tick that was never returned before, greater than all earlier ones and not before `now`.
    pub(crate) fn tick(&self, now: Timestamp) -> Tick {
        let wall = Tick::first_at(now).0;
        let next = |last: u64| Some(wall.max(last.saturating_add(1)));
        let last = self.last.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        Tick(wall.max(last.unwrap_or_default().saturating_add(1)))
    }

    /// Continues after a tick that an earlier run of the service assigned.
    pub(crate) fn continue_after(&self, tick: Tick) {
        self.last.fetch_max(tick.0, Ordering::SeqCst);
    }

    /// Returns a number that changes with every commit of events.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Waits until the generation differs from `seen`, or for `limit`. Returns the generation. Blocks.
    pub fn wait(&self, seen: u64, limit: Duration) -> u64 {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let guard = self.lock.lock();
        drop(self.changed.wait_timeout_while(guard, limit, |()| self.generation() == seen));
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        self.generation()
    }

    /// Wakes everybody who waits, without a new event: for the end of the service.
    pub fn wake(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        // A waiter counts itself before it looks at the generation, so one of both sees the other.
        if self.waiters.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock());
            self.changed.notify_all();
        }
    }

    /// Returns the number of events of a type that were committed since the start.
    #[must_use]
    pub fn committed(&self, kind: EventType) -> u64 {
        self.committed[usize::from(kind.number())].load(Ordering::Relaxed)
    }
}

/// One environment that events are written to. Only its writer thread uses it for writing.
#[derive(Debug)]
pub(crate) struct EventSource {
    pub(crate) signal: Arc<EventSignal>,
    /// Whether changes write events.
    pub(crate) is_enabled: bool,
    floor: AtomicU64,
    /// Events of the transaction in progress, by type.
    written: [AtomicU64; TYPES],
}

impl EventSource {
    /// Returns a source of the store's events.
    pub(crate) fn new(signal: &Arc<EventSignal>, is_enabled: bool) -> Self {
        let floor = AtomicU64::new(NO_FLOOR.0);
        Self { signal: Arc::clone(signal), is_enabled, floor, written: Default::default() }
    }

    /// Returns a tick for an event of the transaction in progress. The first one publishes the floor.
    pub(crate) fn tick(&self, kind: EventType, now: Timestamp) -> Tick {
        if self.floor() == NO_FLOOR {
            self.floor.store(self.signal.last.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        self.written[usize::from(kind.number())].fetch_add(1, Ordering::Relaxed);
        self.signal.tick(now)
    }

    /// Ends the transaction in progress: removes the floor, and wakes readers if events were committed. The floor stays if
    /// the outcome is unknown.
    pub(crate) fn close_after<T>(&self, committed: &Result<T, EngineError>) {
        match committed {
            _ if self.floor() == NO_FLOOR => {}
            Ok(_) => {
                for (total, written) in self.signal.committed.iter().zip(&self.written) {
                    total.fetch_add(written.load(Ordering::Relaxed), Ordering::Relaxed);
                }
                self.close();
                self.signal.wake();
            }
            Err(EngineError::Io(_)) => {}
            Err(_) => self.close(),
        }
    }

    /// Removes the floor: no transaction is in progress, and none has an unknown outcome.
    pub(crate) fn close(&self) {
        self.written.iter().for_each(|written| written.store(0, Ordering::Relaxed));
        self.floor.store(NO_FLOOR.0, Ordering::SeqCst);
    }

    /// Returns the floor: ticks above it may still be committed.
    pub(crate) fn floor(&self) -> Tick {
        Tick(self.floor.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::{EventSignal, EventSource};
    use crate::error::EngineError;
    use crate::types::event::{EventType, Tick};
    use cairn_model::Timestamp;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn ticks_increase_although_the_clock_goes_back() {
        let signal = EventSignal::default();
        let first = signal.tick(Timestamp(1000));
        assert_eq!(first.time(), Timestamp(1000));
        let second = signal.tick(Timestamp(10));
        assert!(second > first && second.time() == Timestamp(1000));
        signal.continue_after(Tick::first_at(Timestamp(5000)));
        assert_eq!(signal.tick(Timestamp(2000)).time(), Timestamp(5000));
    }

    #[test]
    fn floor_is_below_all_ticks_of_its_transaction() {
        let signal = Arc::new(EventSignal::default());
        let (slow, quick) = (EventSource::new(&signal, true), EventSource::new(&signal, true));
        let first = slow.tick(EventType::ObjectCreated, Timestamp(7));
        let later = quick.tick(EventType::ObjectCreated, Timestamp(9));
        quick.close_after(&Ok(()));
        assert_eq!(signal.committed(EventType::ObjectCreated), 1);
        // The reader may not read `later`, although it is committed: `first` may still be.
        assert!(slow.floor() < first && later > slow.floor() && quick.floor() > later);
        slow.close_after::<()>(&Err(EngineError::Io("unknown".to_owned())));
        assert!(slow.floor() < first, "the outcome is unknown");
        slow.close();
        assert!(slow.floor() > later);
    }

    #[test]
    fn waiter_is_woken_by_a_commit_and_never_misses_one() {
        let signal = Arc::new(EventSignal::default());
        let source = EventSource::new(&signal, true);
        let seen = signal.generation();
        let waiter = std::thread::spawn({
            let signal = Arc::clone(&signal);
            move || signal.wait(seen, Duration::from_secs(60))
        });
        source.tick(EventType::ObjectCreated, Timestamp(1));
        source.close_after(&Ok(()));
        assert_ne!(waiter.join().expect("ends"), seen);
        // It has happened already.
        assert_ne!(signal.wait(seen, Duration::from_secs(60)), seen);
        let now = signal.generation();
        assert_eq!(signal.wait(now, Duration::from_millis(1)), now);
    }
}
