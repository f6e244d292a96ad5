//! Webhooks and their health in memory, shared by all threads.

use super::environment::WebhookStore;
use super::lost_events::Losses;
use super::observer::Observer;
use super::seal::SecretKey;
use super::webhook_record::{Health, WebhookRecord};
use crate::id::WebhookId;
use cairn_engine::Tick;
use cairn_lmdb::Error;
use cairn_model::{AgeLimit, Clock, Counter, Timestamp};
use cairn_sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use cairn_tables::{Space, StoreFailure};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// A webhook as it is on disk.
#[derive(Clone, Debug)]
pub(crate) struct WebhookState {
    pub(crate) record: Arc<WebhookRecord>,
    pub(crate) health: Health,
    /// The time when the oldest waiting delivery was queued.
    pub(crate) oldest_pending: Option<Timestamp>,
    /// Events that were not delivered.
    pub(crate) losses: Losses,
}

impl WebhookState {
    /// Returns the number of waiting deliveries, and the time when the oldest one was queued. Those of a disabled webhook are
    /// dropped; what is not removed yet does not count.
    pub(crate) fn waiting(&self) -> (u64, Option<Timestamp>) {
        if self.record.settings.enabled { (self.health.pending, self.oldest_pending) } else { (0, None) }
    }
}

/// All webhooks.
#[derive(Default, Debug)]
pub(crate) struct State {
    pub(crate) webhooks: BTreeMap<WebhookId, WebhookState>,
    /// Deleted webhooks whose deliveries are still being removed.
    pub(super) removals: BTreeSet<WebhookId>,
    /// All events before this one have been handed to the webhooks.
    pub(crate) position: Tick,
}

impl State {
    /// Returns whether there is no webhook, and nothing of a deleted one. Then there are no deliveries and no log either.
    pub(super) fn is_unused(&self) -> bool {
        self.webhooks.is_empty() && self.removals.is_empty()
    }
}

/// The results of deliveries and attempts since the start.
#[derive(Default, Debug)]
pub(crate) struct ResultCounters {
    pub(crate) succeeded: Counter,
    /// Deliveries that ended with a failed attempt.
    pub(crate) failed: Counter,
    pub(crate) dropped: Counter,
    /// Failed attempts of deliveries that went on.
    pub(crate) retried: Counter,
}

/// The state that the threads of the store share.
pub(crate) struct Shared {
    pub(crate) store: WebhookStore,
    /// The id of the object store, for the ids of its events.
    pub(crate) store_id: [u8; 16],
    state: RwLock<State>,
    pub(super) sealing: SecretKey,
    pub(crate) clock: Arc<dyn Clock>,
    /// The age up to which log entries are kept. Older waiting deliveries are dropped: their events are gone.
    pub(super) age: AgeLimit,
    pub(crate) counters: ResultCounters,
    observer: OnceLock<Arc<dyn Observer>>,
}

impl Shared {
    pub(super) fn new(
        store: WebhookStore,
        store_id: [u8; 16],
        state: State,
        sealing: SecretKey,
        clock: Arc<dyn Clock>,
        age: AgeLimit,
    ) -> Self {
        Self {
            store,
            store_id,
            state: RwLock::new(state),
            sealing,
            clock,
            age,
            counters: ResultCounters::default(),
            observer: OnceLock::new(),
        }
    }

    /// Locks the state for reading. Held for one look-up or the building of one list, never across a wait.
    pub(crate) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    /// Locks the state for writing. Only the writer does this, for the change of a few entries.
    pub(super) fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    /// Returns a webhook.
    pub(crate) fn webhook(&self, id: WebhookId) -> Option<WebhookState> {
        self.state().webhooks.get(&id).cloned()
    }

    /// Sets who learns what became durable. Must be called once, before anything is written.
    pub(crate) fn observe(&self, observer: Arc<dyn Observer>) {
        assert!(self.observer.set(observer).is_ok(), "the store has one observer");
    }

    pub(super) fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.observer.get()
    }

    /// As [`TableStore::attempt`](cairn_tables::TableStore::attempt). Nothing is delivered after a failure of the device.
    pub(super) fn attempt<T>(
        &self,
        space: Space,
        body: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, StoreFailure> {
        let tables = &self.store.tables;
        let attempted = tables.attempt(space, body);
        if attempted.is_err()
            && tables.check().is_err()
            && let Some(observer) = self.observer()
        {
            observer.failed();
        }
        attempted
    }
}
