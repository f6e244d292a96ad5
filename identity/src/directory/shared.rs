//! What the directory's thread and everybody else share.

use super::limits::SEEN_INTERVAL_MILLIS;
use super::seal::SealingKey;
use super::state::{State, is_expired};
use super::store::DirectoryStore;
use cairn_model::{Clock, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(super) struct Shared {
    pub(super) store: DirectoryStore,
    state: RwLock<State>,
    /// Goes up after each change that is shown in `state`.
    version: AtomicU64,
    pub(super) sealing: SealingKey,
    pub(super) clock: Arc<dyn Clock>,
    /// The highest time that the clock has shown, to [`SEEN_INTERVAL_MILLIS`], in milliseconds.
    seen: AtomicU64,
    pub(super) root_access_key: String,
    /// Set once, by a failure after which nothing is changed any more.
    pub(super) stopped: OnceLock<String>,
}

impl Shared {
    pub(super) fn new(
        store: DirectoryStore,
        state: State,
        sealing: SealingKey,
        clock: Arc<dyn Clock>,
        root_access_key: String,
    ) -> Self {
        let (state, version, stopped) = (RwLock::new(state), AtomicU64::new(0), OnceLock::new());
        let seen = AtomicU64::new(clock.now().0);
        Self { store, state, version, sealing, clock, seen, root_access_key, stopped }
    }

    /// The state to look at; held for a lookup or the making of a list, never while anything is waited for.
    pub(super) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state to change, for the directory's thread alone; held for the change of a few entries.
    pub(super) fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that is another one after every change. Who has seen a number sees the state at least as it was then.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The time that expiry is judged by: a clock that was set back makes nothing valid again.
    pub(super) fn judged(&self, now: Timestamp) -> Timestamp {
        let seen = self.seen.load(Ordering::Acquire);
        if now.0 >= seen.saturating_add(SEEN_INTERVAL_MILLIS) {
            self.seen.fetch_max(now.0, Ordering::AcqRel);
        }
        Timestamp(now.0.max(seen))
    }

    /// Whether something that expires then is dead at a [`Self::judged`] time. What was once found dead stays so.
    pub(super) fn has_expired(&self, expires_at: Option<Timestamp>, judged: Timestamp) -> bool {
        let is_dead = is_expired(expires_at, judged);
        if is_dead {
            self.seen.fetch_max(judged.0, Ordering::AcqRel);
        }
        is_dead
    }

    /// Follows a clock that was set back, for the directory's thread alone: otherwise what is made now, with an expiry by the
    /// clock, was born dead. What had died is marked first.
    pub(super) fn follow_clock(&self) {
        let now = self.clock.now();
        let seen = self.judged(now);
        if now.0.saturating_add(SEEN_INTERVAL_MILLIS) > seen.0 {
            return;
        }
        tracing::warn!(target: "service::identity", "the clock was set back: what had expired before stays dead");
        self.state_mut().bury(seen);
        // In this order: who judges by the new time finds the new version.
        self.raise_version();
        self.seen.store(now.0, Ordering::Release);
    }

    pub(super) fn raise_version(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }
}
