//! What the directory's thread and everybody else share.

use super::seal::SealingKey;
use super::state::State;
use super::store::DirectoryStore;
use cairn_model::Clock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(super) struct Shared {
    pub(super) store: DirectoryStore,
    state: RwLock<State>,
    /// Goes up after each change that is shown in `state`.
    version: AtomicU64,
    pub(super) sealing: SealingKey,
    pub(super) clock: Arc<dyn Clock>,
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
        Self { store, state, version, sealing, clock, root_access_key, stopped }
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

    pub(super) fn raise_version(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }
}
