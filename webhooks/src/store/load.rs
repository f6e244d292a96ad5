//! Loads all webhooks at the start.

use super::delivery_record::{Waiting, time_key};
use super::environment::{POSITION_KEY, WebhookStore};
use super::seal::SecretKey;
use super::state::{State, WebhookState};
use super::webhook_record::{Health, WebhookRecord};
use crate::id::{DeliveryId, ID_BYTES, WebhookId};
use cairn_engine::Tick;
use cairn_lmdb::{Error, ReadTxn};
use cairn_model::Timestamp;
use cairn_tables::{LoadError, StoreOpenError};
use std::sync::Arc;

impl WebhookStore {
    /// Loads all webhooks with their health. A secret that cannot be opened is damage.
    pub(super) fn load(&self, key: &SecretKey) -> Result<State, StoreOpenError> {
        self.tables.load(|loading| {
            let (txn, mut state) = (&loading.txn, State::default());
            loading.for_each_record(self.webhooks, "webhooks", |id, record| {
                let id = WebhookId(id.try_into().ok()?);
                let webhook = WebhookRecord::decode(id, record.version, record.body, key)?;
                let health = match txn.get(self.health, &id.0).ok()? {
                    Some(record) => Health::decode(record.version, record.body)?,
                    None => Health::default(),
                };
                let oldest_pending = self.oldest_waiting(txn, id).ok()?;
                let losses = self.losses(txn, id).ok()?;
                let webhook = WebhookState { record: Arc::new(webhook), health, oldest_pending, losses };
                state.webhooks.insert(id, webhook);
                Some(())
            })?;
            loading.for_each_record(self.removals, "removals", |id, _| {
                state.removals.insert(WebhookId(id.try_into().ok()?));
                Some(())
            })?;
            if let Some(record) = txn.get(self.position, POSITION_KEY)? {
                let tick = record.body.try_into().map(u64::from_le_bytes);
                state.position =
                    Tick(tick.map_err(|_| LoadError::damaged("the position has an unknown form"))?);
            }
            Ok(state)
        })
    }

    fn oldest_waiting(&self, txn: &ReadTxn<'_>, webhook: WebhookId) -> Result<Option<Timestamp>, Error> {
        let start = time_key(webhook, Timestamp(0), DeliveryId([0; ID_BYTES]));
        Ok(txn.first_at_or_after(self.waiting, &start)?.and_then(|(key, record)| {
            Waiting::from_waiting(key, &record)
                .filter(|found| found.webhook == webhook)
                .map(|found| found.queued_at)
        }))
    }
}
