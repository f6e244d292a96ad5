//! Records which keys change while a compaction copies an environment.
//!
//! A writer appends the keys of its transaction *before* it commits, with the number that the transaction will have, and
//! withdraws them if the commit fails. So whoever reads the record after it has begun a snapshot finds all changes between an
//! earlier snapshot and this one. Most of the time nothing is recorded, and a transaction costs one read of a flag more.
//!
//! The record is bounded. When it is full, it says so, and the writer never waits.

use crate::error::Error;
use crate::limits::CHANGED_BYTES_MAX;
use crate::table::Table;
use cairn_sync::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// A key that was written or removed.
pub(crate) type ChangedKey = (Table, Box<[u8]>);

/// Bytes of memory of a recorded key in addition to the key itself.
const OVERHEAD_BYTES: usize = 48;

#[derive(Debug, Default)]
struct State {
    /// The keys of each transaction, with its number, in the order of the transactions.
    changed: VecDeque<(u64, Vec<ChangedKey>)>,
    bytes: usize,
    overflowed: bool,
}

/// The keys that were changed since [`ChangedKeys::record`].
#[derive(Debug, Default)]
pub(crate) struct ChangedKeys {
    is_recording: AtomicBool,
    state: Mutex<State>,
}

fn bytes_of(keys: &[ChangedKey]) -> usize {
    keys.iter().map(|(_, key)| key.len() + OVERHEAD_BYTES).sum()
}

impl ChangedKeys {
    /// Returns whether changes must be recorded. A writer must ask after its transaction has begun, not before.
    pub(crate) fn is_recording(&self) -> bool {
        self.is_recording.load(Ordering::SeqCst)
    }

    /// Records changes until the returned value is dropped. The caller then waits for a transaction in progress, which may
    /// not have seen the flag.
    pub(crate) fn record(&self) -> Recording<'_> {
        self.is_recording.store(true, Ordering::SeqCst);
        Recording(self)
    }

    /// Appends the keys of transaction `number`, which is about to be committed.
    pub(crate) fn append(&self, number: u64, keys: Vec<ChangedKey>) {
        let mut state = self.state.lock();
        let bytes = state.bytes + bytes_of(&keys);
        if !self.is_recording() || state.overflowed {
            return;
        }
        if bytes > CHANGED_BYTES_MAX {
            *state = State { overflowed: true, ..State::default() };
            return;
        }
        state.bytes = bytes;
        state.changed.push_back((number, keys));
    }

    /// Removes the keys of transaction `number`, which was not committed.
    pub(crate) fn withdraw(&self, number: u64) {
        let mut state = self.state.lock();
        state.changed.retain(|(of, _)| *of != number);
        state.bytes = state.changed.iter().map(|(_, keys)| bytes_of(keys)).sum();
    }
}

/// Records changes while it lives.
#[derive(Debug)]
pub(crate) struct Recording<'c>(&'c ChangedKeys);

impl Recording<'_> {
    /// Takes the keys that were changed up to transaction `number`. A key may occur several times.
    ///
    /// # Errors
    /// [`Error::TooManyChanges`] when the record has overflowed.
    pub(crate) fn take_up_to(&self, number: u64) -> Result<Vec<ChangedKey>, Error> {
        let mut state = self.0.state.lock();
        if state.overflowed {
            return Err(Error::TooManyChanges);
        }
        let count = state.changed.partition_point(|(of, _)| *of <= number);
        let taken: Vec<ChangedKey> = state.changed.drain(..count).flat_map(|(_, keys)| keys).collect();
        state.bytes -= bytes_of(&taken);
        Ok(taken)
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        self.0.is_recording.store(false, Ordering::SeqCst);
        *state = State::default();
    }
}

#[cfg(test)]
mod tests {
    use super::ChangedKeys;
    use crate::error::Error;
    use crate::limits::CHANGED_BYTES_MAX;
    use crate::table::Table;

    const TABLE: Table = Table(1);

    #[test]
    fn keys_are_taken_up_to_a_snapshot_without_withdrawn_ones() {
        let keys = ChangedKeys::default();
        keys.append(1, vec![(TABLE, b"before".as_slice().into())]);
        let recording = keys.record();
        keys.append(2, vec![(TABLE, b"a".as_slice().into()), (TABLE, b"b".as_slice().into())]);
        keys.append(3, vec![(TABLE, b"failed".as_slice().into())]);
        keys.withdraw(3);
        keys.append(3, vec![(TABLE, b"c".as_slice().into())]);
        let taken = recording.take_up_to(2).expect("not full");
        assert_eq!(taken, [(TABLE, b"a".as_slice().into()), (TABLE, b"b".as_slice().into())]);
        assert_eq!(recording.take_up_to(9).expect("not full"), [(TABLE, b"c".as_slice().into())]);
        drop(recording);
        assert!(!keys.is_recording());
    }

    #[test]
    fn full_record_says_so_and_takes_nothing_more() {
        let keys = ChangedKeys::default();
        let recording = keys.record();
        keys.append(1, vec![(TABLE, vec![0; CHANGED_BYTES_MAX].into())]);
        keys.append(2, vec![(TABLE, b"a".as_slice().into())]);
        assert!(matches!(recording.take_up_to(2), Err(Error::TooManyChanges)));
        drop(recording);
        let recording = keys.record();
        assert_eq!(recording.take_up_to(9).expect("empty").len(), 0);
    }
}
