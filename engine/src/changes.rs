//! The changes of a slice's records, written down while somebody follows them.
//!
//! Who reads a whole slice in many short snapshots (an inspection) follows the changes, so that it can bring what it has
//! read up to each further snapshot. The committer appends the changes of a transaction *before* it commits, under the
//! number that the transaction will have, and withdraws them when the commit fails. So whoever reads the log after it
//! has begun a snapshot finds in it all that led from an earlier snapshot to this one; what has a higher number it leaves
//! for later.
//!
//! Nobody follows most of the time: then a batch pays for one look at a flag. The log is bounded; a follower that falls
//! behind is told so, never the committer held up.

use crate::bucket::Usage;
use crate::error::EngineError;
use crate::extent::Extent;
use crate::limits::FOLLOWED_CHANGES_MAX;
use cairn_lmdb::Environment;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whether a record came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Removed,
}

/// A change of a slice that a follower must know of.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A record came or went.
    Record {
        kind: ChangeKind,
        table: FollowedTable,
        /// Key in the table.
        key: Vec<u8>,
        /// Id of the bucket.
        bucket: u64,
        /// What the record counts for.
        counts: Usage,
        /// All space that the record owns.
        extents: Vec<Extent>,
        /// The record's part of the additive hash.
        hash: u64,
    },
    /// What a record counts for changed, and the record did not. The difference wraps.
    Counts { table: FollowedTable, key: Vec<u8>, bucket: u64, counts: Usage },
    /// Another version of a key, or none, is its current object now. The difference wraps.
    Current {
        /// Beginning of the keys of the key's versions.
        versions: Vec<u8>,
        bucket: u64,
        counts: Usage,
    },
}

/// The tables whose records are followed, in the order in which they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FollowedTable {
    Objects,
    Uploads,
    Parts,
    Assembled,
    NullVersions,
}

impl FollowedTable {
    /// The one that is read next.
    pub(crate) const fn next(self) -> Option<Self> {
        match self {
            Self::Objects => Some(Self::Uploads),
            Self::Uploads => Some(Self::Parts),
            Self::Parts => Some(Self::Assembled),
            Self::Assembled => Some(Self::NullVersions),
            Self::NullVersions => None,
        }
    }
}

impl Change {
    /// Space that it took.
    pub(crate) fn taken(&self) -> &[Extent] {
        match self {
            Self::Record { kind: ChangeKind::Added, extents, .. } => extents,
            _ => &[],
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// In order of transactions, and within one in the order in which they were made.
    changes: VecDeque<(u64, Change)>,
    /// More changes came than the log holds: it no longer tells all.
    overflowed: bool,
}

/// See the file's first lines.
#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    followed: AtomicBool,
    state: Mutex<State>,
}

impl ChangeLog {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether changes must be written down. The committer asks when it has begun its transaction, not before.
    pub(crate) fn is_followed(&self) -> bool {
        self.followed.load(Ordering::SeqCst)
    }

    /// Begins to write changes down. Every transaction that is missing in a snapshot taken from now on is written down:
    /// one that was under way, and perhaps did not see that it should be, has ended when this returns.
    ///
    /// # Errors
    /// [`EngineError::Overloaded`] when somebody follows already, else what the metadata store answers.
    pub(crate) fn follow<'l>(&'l self, environment: &Environment) -> Result<Following<'l>, EngineError> {
        if self.followed.swap(true, Ordering::SeqCst) {
            return Err(EngineError::Overloaded);
        }
        let following = Following { log: self };
        // The writer lock is free between transactions only.
        drop(environment.write()?);
        Ok(following)
    }

    /// Appends the changes of transaction `txn`, which is about to be committed.
    pub(crate) fn append(&self, txn: u64, changes: Vec<Change>) {
        let mut state = self.lock();
        if !self.is_followed() || state.overflowed {
            return;
        }
        if state.changes.len() + changes.len() > FOLLOWED_CHANGES_MAX {
            *state = State { changes: VecDeque::new(), overflowed: true };
            return;
        }
        state.changes.extend(changes.into_iter().map(|change| (txn, change)));
    }

    /// Takes the changes of transaction `txn` back: it was not committed.
    pub(crate) fn withdraw(&self, txn: u64) {
        self.lock().changes.retain(|(of, _)| *of != txn);
    }

    /// Space that records took in transactions after number `txn`.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] when that is not known: nobody follows, or the log overflowed.
    pub(crate) fn taken_after(&self, txn: u64) -> Result<Vec<Extent>, EngineError> {
        let state = self.lock();
        if !self.is_followed() || state.overflowed {
            return Err(EngineError::Conflict);
        }
        let later = state.changes.iter().filter(|(of, _)| *of > txn);
        Ok(later.flat_map(|(_, change)| change.taken().iter().copied()).collect())
    }
}

/// Follows a slice's changes until it is dropped.
#[derive(Debug)]
pub(crate) struct Following<'l> {
    log: &'l ChangeLog,
}

impl Following<'_> {
    /// Takes all changes up to transaction `txn` out of the log. `None`: some were lost, for there were too many.
    pub(crate) fn take_up_to(&self, txn: u64) -> Option<Vec<Change>> {
        let mut state = self.log.lock();
        if state.overflowed {
            return None;
        }
        let count = state.changes.partition_point(|(of, _)| *of <= txn);
        Some(state.changes.drain(..count).map(|(_, change)| change).collect())
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        let mut state = self.log.lock();
        self.log.followed.store(false, Ordering::SeqCst);
        *state = State::default();
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, ChangeKind, ChangeLog, FollowedTable};
    use crate::bucket::Usage;
    use crate::error::EngineError;
    use crate::extent::Extent;
    use crate::limits::FOLLOWED_CHANGES_MAX;
    use cairn_lmdb::{Environment, EnvironmentOptions};

    fn environment(folder: &tempfile::TempDir) -> Environment {
        let options = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 1 };
        Environment::open(folder.path(), options).expect("opens")
    }

    fn change(start: u32) -> Change {
        let extents = vec![Extent { volume: 0, start, units: 1 }];
        let (kind, table, counts) = (ChangeKind::Added, FollowedTable::Objects, Usage::default());
        Change::Record { kind, table, key: vec![1], bucket: 1, counts, extents, hash: 0 }
    }

    #[test]
    fn changes_are_kept_for_the_follower_alone_and_only_when_they_were_committed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (environment, log) = (environment(&folder), ChangeLog::default());
        log.append(1, vec![change(1)]);
        let following = log.follow(&environment).expect("nobody follows");
        assert!(matches!(log.follow(&environment), Err(EngineError::Overloaded)));
        log.append(2, vec![change(2), change(3)]);
        log.append(3, vec![change(4)]);
        log.withdraw(3);
        log.append(3, vec![change(5)]);
        let starts = |changes: &[Extent]| changes.iter().map(|extent| extent.start).collect::<Vec<_>>();
        assert_eq!(starts(&log.taken_after(2).expect("known")), [5]);
        let taken = following.take_up_to(2).expect("nothing was lost");
        assert_eq!(taken.iter().map(|change| change.taken()[0].start).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(following.take_up_to(9).expect("nothing was lost").len(), 1);
        drop(following);
        assert_eq!(log.taken_after(0), Err(EngineError::Conflict), "nobody follows any more");
    }

    #[test]
    fn a_follower_that_falls_behind_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let (environment, log) = (environment(&folder), ChangeLog::default());
        let following = log.follow(&environment).expect("nobody follows");
        log.append(1, vec![change(1); FOLLOWED_CHANGES_MAX]);
        assert!(log.taken_after(0).is_ok());
        log.append(2, vec![change(2)]);
        assert!(following.take_up_to(9).is_none() && log.taken_after(0).is_err());
        drop(following);
        let again = log.follow(&environment).expect("nobody follows");
        assert!(again.take_up_to(9).expect("nothing was lost").is_empty());
    }
}
