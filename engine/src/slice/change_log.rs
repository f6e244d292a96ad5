//! The change log of a slice, kept only while someone follows it.
//!
//! An inspection reads a whole slice in many short snapshots. It follows the changes, so that it can bring what it has read
//! up to date with each further snapshot.
//!
//! The committer appends the changes of a transaction *before* it commits, with the number that the transaction will have.
//! It withdraws them if the commit fails. So a follower that reads the log after it has begun a snapshot finds all changes
//! between an earlier snapshot and this one. It leaves changes with higher numbers for later.
//!
//! Most of the time there is no follower. Then each batch costs one read of a flag. The log is bounded. A follower that is
//! too slow loses changes and is told so; the committer never waits for it.

use crate::error::EngineError;
use crate::format::extent::Extent;
use crate::limits::FOLLOWED_CHANGES_MAX;
use crate::types::bucket::Usage;
use cairn_lmdb::Environment;
use cairn_sync::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// The followers of a change log, as errors name them. There is one at a time.
pub(crate) const FOLLOWERS: &str = "an inspection, repair or upgrade";

/// The kind of a change: a record was added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Removed,
}

/// A change of a slice.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A record was added or removed.
    Record {
        kind: ChangeKind,
        table: FollowedTable,
        /// Key in the table.
        key: Vec<u8>,
        /// Id of the bucket.
        bucket: u64,
        /// The usage that the record counts for.
        counts: Usage,
        /// All extents that the record owns.
        extents: Vec<Extent>,
        /// The record's share of the additive hash.
        hash: u64,
    },
    /// A record now counts for something else, but did not change itself. `counts` is the difference and wraps.
    Counts { table: FollowedTable, key: Vec<u8>, bucket: u64, counts: Usage },
    /// A key has another current object, or none. `counts` is the difference and wraps.
    Current {
        /// Common prefix of the encoded keys of the key's versions.
        versions: Vec<u8>,
        bucket: u64,
        counts: Usage,
    },
}

/// The tables whose changes are logged, in the order in which an inspection reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FollowedTable {
    Objects,
    Uploads,
    Parts,
    Assembled,
    ImportedIds,
    NullVersions,
    /// Events. They belong to no bucket here: its id is given as 0.
    Events,
    Due,
}

impl FollowedTable {
    /// Returns the table that is read next.
    pub(crate) const fn next(self) -> Option<Self> {
        match self {
            Self::Objects => Some(Self::Uploads),
            Self::Uploads => Some(Self::Parts),
            Self::Parts => Some(Self::Assembled),
            Self::Assembled => Some(Self::ImportedIds),
            Self::ImportedIds => Some(Self::NullVersions),
            Self::NullVersions => Some(Self::Events),
            Self::Events => Some(Self::Due),
            Self::Due => None,
        }
    }
}

impl Change {
    /// Returns the extents of a record that was added.
    pub(crate) fn added_extents(&self) -> &[Extent] {
        match self {
            Self::Record { kind: ChangeKind::Added, extents, .. } => extents,
            _ => &[],
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// Each with the number of its transaction, in the order in which they were made.
    changes: VecDeque<(u64, Change)>,
    /// More changes came than the log holds, so it is incomplete.
    overflowed: bool,
}

/// A bounded log of changes for one follower.
#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    followed: AtomicBool,
    state: Mutex<State>,
}

impl ChangeLog {
    /// Returns whether changes must be logged. The committer must ask after it has begun its transaction, not before.
    pub(crate) fn is_followed(&self) -> bool {
        self.followed.load(Ordering::SeqCst)
    }

    /// Begins to log changes.
    ///
    /// Every transaction that a later snapshot does not contain is logged: a transaction in progress, which may not have seen
    /// the flag, has ended when this returns.
    ///
    /// # Errors
    /// [`EngineError::AlreadyRunning`] if there is a follower already, and errors of the metadata environment.
    pub(crate) fn follow<'l>(&'l self, environment: &Environment) -> Result<Following<'l>, EngineError> {
        if self.followed.swap(true, Ordering::SeqCst) {
            return Err(EngineError::AlreadyRunning(FOLLOWERS));
        }
        let following = Following { log: self };
        // Waits for a transaction in progress: the writer lock is free only between transactions.
        drop(environment.write()?);
        Ok(following)
    }

    /// Appends the changes of transaction `txn`, which is about to be committed.
    pub(crate) fn append(&self, txn: u64, changes: Vec<Change>) {
        let mut state = self.state.lock();
        if !self.is_followed() || state.overflowed {
            return;
        }
        if state.changes.len() + changes.len() > FOLLOWED_CHANGES_MAX {
            *state = State { changes: VecDeque::new(), overflowed: true };
            return;
        }
        state.changes.extend(changes.into_iter().map(|change| (txn, change)));
    }

    /// Removes the changes of transaction `txn`, which was not committed.
    pub(crate) fn withdraw(&self, txn: u64) {
        self.state.lock().changes.retain(|(of, _)| *of != txn);
    }

    /// Returns the extents of records that were added in transactions after number `txn`.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] if that is unknown: there is no follower, or the log has overflowed.
    pub(crate) fn added_after(&self, txn: u64) -> Result<Vec<Extent>, EngineError> {
        let state = self.state.lock();
        if !self.is_followed() || state.overflowed {
            return Err(EngineError::Conflict);
        }
        let later = state.changes.iter().filter(|(of, _)| *of > txn);
        Ok(later.flat_map(|(_, change)| change.added_extents().iter().copied()).collect())
    }
}

/// Follows the changes of a slice until it is dropped.
#[derive(Debug)]
pub(crate) struct Following<'l> {
    log: &'l ChangeLog,
}

impl Following<'_> {
    /// Takes all changes up to transaction `txn` out of the log. Returns `None` if the log has overflowed.
    pub(crate) fn take_up_to(&self, txn: u64) -> Option<Vec<Change>> {
        let mut state = self.log.state.lock();
        if state.overflowed {
            return None;
        }
        let count = state.changes.partition_point(|(of, _)| *of <= txn);
        Some(state.changes.drain(..count).map(|(_, change)| change).collect())
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        let mut state = self.log.state.lock();
        self.log.followed.store(false, Ordering::SeqCst);
        *state = State::default();
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, ChangeKind, ChangeLog, FollowedTable};
    use crate::error::EngineError;
    use crate::format::extent::Extent;
    use crate::limits::FOLLOWED_CHANGES_MAX;
    use crate::types::bucket::Usage;
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
    fn only_committed_changes_are_logged_and_only_for_a_follower() {
        let folder = tempfile::tempdir().expect("a folder");
        let (environment, log) = (environment(&folder), ChangeLog::default());
        log.append(1, vec![change(1)]);
        let following = log.follow(&environment).expect("there is no follower");
        assert!(matches!(log.follow(&environment), Err(EngineError::AlreadyRunning(_))));
        log.append(2, vec![change(2), change(3)]);
        log.append(3, vec![change(4)]);
        log.withdraw(3);
        log.append(3, vec![change(5)]);
        let starts = |changes: &[Extent]| changes.iter().map(|extent| extent.start).collect::<Vec<_>>();
        assert_eq!(starts(&log.added_after(2).expect("known")), [5]);
        let taken = following.take_up_to(2).expect("nothing was lost");
        assert_eq!(taken.iter().map(|change| change.added_extents()[0].start).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(following.take_up_to(9).expect("nothing was lost").len(), 1);
        drop(following);
        assert_eq!(log.added_after(0), Err(EngineError::Conflict), "there is no follower any more");
    }

    #[test]
    fn follower_learns_that_the_log_has_overflowed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (environment, log) = (environment(&folder), ChangeLog::default());
        let following = log.follow(&environment).expect("there is no follower");
        log.append(1, vec![change(1); FOLLOWED_CHANGES_MAX]);
        assert!(log.added_after(0).is_ok());
        log.append(2, vec![change(2)]);
        assert!(following.take_up_to(9).is_none() && log.added_after(0).is_err());
        drop(following);
        let again = log.follow(&environment).expect("there is no follower");
        assert!(again.take_up_to(9).expect("nothing was lost").is_empty());
    }
}
