//! Loads all webhooks at the start.

use super::delivery_record::{Waiting, time_key};
use super::environment::{POSITION_KEY, WebhookStore, open_error};
use super::seal::SealingKey;
use super::state::{State, WebhookState};
use super::webhook_record::{Health, WebhookRecord};
use crate::error::WebhookOpenError;
use crate::id::{DeliveryId, ID_BYTES, WebhookId};
use cairn_engine::Tick;
use cairn_lmdb::{Error, ReadTxn};
use cairn_model::Timestamp;
use std::path::Path;
use std::sync::Arc;

impl WebhookStore {
    /// Loads all webhooks with their health. A secret that cannot be opened is damage.
    pub(super) fn load(&self, folder: &Path, key: &SealingKey) -> Result<State, WebhookOpenError> {
        let damaged = |what: String| WebhookOpenError::Damaged { path: folder.to_owned(), what };
        let failed = |error: Error| open_error(folder, error.into());
        let mut state = State::default();
        let txn = self.environment.read().map_err(failed)?;
        for item in txn.scan(self.webhooks, &[]).map_err(failed)? {
            let (id, record) = item.map_err(failed)?;
            let read = id.try_into().ok().map(WebhookId).and_then(|id| {
                let webhook = WebhookRecord::decode(id, record.version, record.body, key)?;
                let health = txn.get(self.health, &id.0).ok()?;
                let health = match health {
                    Some(record) => Health::decode(record.version, record.body)?,
                    None => Health::default(),
                };
                let oldest_pending = self.oldest_waiting(&txn, id).ok()?;
                Some((id, WebhookState { record: Arc::new(webhook), health, oldest_pending }))
            });
            let (id, webhook) = read.ok_or_else(|| {
                damaged(format!("the record of webhook {} has an unknown form", hex::encode(id)))
            })?;
            state.webhooks.insert(id, webhook);
        }
        for key in txn.keys(self.removals, &[]).map_err(failed)? {
            let id = key.map_err(failed)?.try_into();
            state
                .removals
                .insert(WebhookId(id.map_err(|_| damaged("a removal has an unknown form".to_owned()))?));
        }
        if let Some(record) = txn.get(self.position, POSITION_KEY).map_err(failed)? {
            let tick = record.body.try_into().map(u64::from_le_bytes);
            state.position = Tick(tick.map_err(|_| damaged("the position has an unknown form".to_owned()))?);
        }
        Ok(state)
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
