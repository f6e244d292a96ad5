//! State shared by the directory's thread and its callers.

use super::seal::SecretKey;
use super::state::{State, is_expired};
use super::store::DirectoryStore;
use cairn_model::{Clock, HighestTime, Timestamp};
use cairn_sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct Shared {
    pub(super) store: DirectoryStore,
    state: RwLock<State>,
    /// Incremented after each change of `state`.
    version: AtomicU64,
    pub(super) sealing: SecretKey,
    pub(super) clock: Arc<dyn Clock>,
    highest_time: HighestTime,
    pub(super) root_access_key: String,
}

impl Shared {
    pub(super) fn new(
        store: DirectoryStore,
        state: State,
        sealing: SecretKey,
        clock: Arc<dyn Clock>,
        root_access_key: String,
    ) -> Self {
        let (state, version) = (RwLock::new(state), AtomicU64::new(0));
        let highest_time = HighestTime::new(clock.now());
        Self { store, state, version, sealing, clock, highest_time, root_access_key }
    }

    /// Locks the state for reading. Held for one lookup or the building of one list, never across a wait.
    pub(super) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    /// Locks the state for writing. Only the directory's thread does this, for the change of a few entries.
    pub(super) fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    /// Returns a number that every change increments. A caller that has read it sees the state of that version or a later one.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the time that expiry is compared with: the later one of `now` and the highest time that the clock has shown.
    /// A clock that is set back therefore makes nothing valid again.
    pub(super) fn expiry_time(&self, now: Timestamp) -> Timestamp {
        self.highest_time.observe(now)
    }

    /// Returns whether `expires_at` has been reached at a time from [`Self::expiry_time`]. Once reached, it stays reached.
    pub(super) fn has_expired(&self, expires_at: Option<Timestamp>, expiry_time: Timestamp) -> bool {
        let has_expired = is_expired(expires_at, expiry_time);
        if has_expired {
            self.highest_time.raise(expiry_time);
        }
        has_expired
    }

    /// Lowers the highest time after the clock was set back. For the directory's thread only.
    ///
    /// Otherwise a new credential whose expiry follows the clock would be expired from the start. Everything that has expired
    /// by the old highest time is marked first.
    pub(super) fn follow_clock(&self) {
        let now = self.clock.now();
        let highest = self.expiry_time(now);
        if now.0.saturating_add(HighestTime::STEP_MILLIS) > highest.0 {
            return;
        }
        tracing::warn!(target: "service::identity", "the clock was set back: credentials and tokens that had expired stay expired");
        self.state_mut().mark_expired(highest);
        // In this order, so that a reader that uses the new time also sees the new version.
        self.increment_version();
        self.highest_time.lower(now);
    }

    pub(super) fn increment_version(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }
}
