//! Changes that administrators make to webhooks. Each is a transaction of its own.

use super::apply::Batch;
use super::environment::WebhookStore;
use super::state::{Shared, WebhookState};
use super::webhook_record::{Settings, WebhookRecord};
use crate::destination::TargetUrl;
use crate::error::WebhookError;
use crate::id::WebhookId;
use crate::limits::{REMOVALS_MAX, WEBHOOKS_MAX};
use crate::signature::SigningSecret;
use cairn_engine::Tick;
use cairn_model::{Timestamp, time_id};
use cairn_tables::Space;
use std::sync::Arc;

/// Makes changes. Only the writer has one.
pub(crate) struct Changes<'s> {
    pub(super) shared: &'s Shared,
}

impl Changes<'_> {
    fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    fn find(&self, id: WebhookId) -> Result<WebhookState, WebhookError> {
        self.shared.webhook(id).ok_or(WebhookError::WebhookNotFound)
    }

    /// Creates a webhook for events from `from_tick` on.
    pub(crate) fn create(
        &self,
        settings: Settings,
        target: TargetUrl,
        from_tick: Tick,
    ) -> Result<WebhookState, WebhookError> {
        if self.shared.state().webhooks.len() >= WEBHOOKS_MAX {
            return Err(WebhookError::TooMany { what: "webhooks", max: WEBHOOKS_MAX });
        }
        let now = self.now();
        let record = WebhookRecord {
            id: WebhookId(time_id::random(now)?),
            types: settings.event_types.iter().copied().collect(),
            settings,
            target,
            created_at: now,
            from_tick,
            secret: SigningSecret::generate()?,
            previous: None,
        };
        self.write(record, |_| ())
    }

    /// Changes what a client can set. A webhook that is enabled receives events from `from_tick` on. One that is disabled
    /// drops its waiting deliveries.
    pub(crate) fn update(
        &self,
        id: WebhookId,
        change: impl FnOnce(&mut Settings),
        target: Option<TargetUrl>,
        from_tick: Tick,
    ) -> Result<WebhookState, WebhookError> {
        let WebhookState { record: old, .. } = self.find(id)?;
        let mut record = (*old).clone();
        change(&mut record.settings);
        record.types = record.settings.event_types.iter().copied().collect();
        let is_retargeted = target.is_some();
        record.target = target.unwrap_or(record.target);
        let is_disabled = old.settings.enabled && !record.settings.enabled;
        let is_enabled = !old.settings.enabled && record.settings.enabled;
        if is_enabled {
            record.from_tick = from_tick;
        }
        let now = self.now();
        self.write(record, |health| {
            if is_disabled {
                health.dropped_until = now.max(health.dropped_until);
            }
            if is_enabled || is_retargeted {
                // Old failures say nothing about the new target, or about the target after a repair.
                health.consecutive_failures = 0;
                health.target_failures = 0;
                health.last_error.clear();
            }
        })
    }

    /// Replaces the secret. The old one stays valid for `overlap_seconds`. Returns the new one and when the old one ends.
    pub(crate) fn rotate(
        &self,
        id: WebhookId,
        overlap_seconds: u64,
    ) -> Result<(SigningSecret, Timestamp), WebhookError> {
        let mut record = (*self.find(id)?.record).clone();
        let end = Timestamp(self.now().0.saturating_add(overlap_seconds.saturating_mul(1000)));
        let secret = SigningSecret::generate()?;
        let old = std::mem::replace(&mut record.secret, secret.clone());
        record.previous = (overlap_seconds > 0).then_some((old, end));
        self.write(record, |_| ())?;
        Ok((secret, end))
    }

    /// Deletes a webhook. Its deliveries and its log are removed afterwards, in steps.
    pub(crate) fn delete(&self, id: WebhookId) -> Result<WebhookState, WebhookError> {
        let webhook = self.find(id)?;
        if self.shared.state().removals.len() >= REMOVALS_MAX {
            return Err(WebhookError::TooMany {
                what: "deleted webhooks whose log is being removed",
                max: REMOVALS_MAX,
            });
        }
        let store = &self.shared.store;
        self.shared.attempt(Space::Change, || {
            let mut txn = store.tables.environment().write()?;
            txn.remove(store.webhooks, &id.0)?;
            txn.remove(store.health, &id.0)?;
            WebhookStore::put(&mut txn, store.removals, &id.0, &[])?;
            txn.commit()
        })?;
        let mut state = self.shared.state_mut();
        state.webhooks.remove(&id);
        state.removals.insert(id);
        drop(state);
        self.notify(id);
        Ok(webhook)
    }

    fn notify(&self, id: WebhookId) {
        if let Some(observer) = self.shared.observer() {
            observer.changed(id);
        }
    }

    /// Writes a webhook and its health, and puts them in force.
    fn write(
        &self,
        record: WebhookRecord,
        change: impl FnOnce(&mut super::webhook_record::Health),
    ) -> Result<WebhookState, WebhookError> {
        let (shared, id) = (self.shared, record.id);
        let mut health = shared.webhook(id).map(|found| found.health).unwrap_or_default();
        change(&mut health);
        let body = record.encode(&shared.sealing)?;
        shared.attempt(Space::Change, || {
            let mut batch = Batch::begin(shared)?;
            WebhookStore::put(&mut batch.txn, shared.store.webhooks, &id.0, &body)?;
            WebhookStore::put(&mut batch.txn, shared.store.health, &id.0, &health.encode())?;
            batch.commit()
        })?;
        let mut state = shared.state_mut();
        let old = state.webhooks.get(&id);
        let oldest_pending = old.and_then(|found| found.oldest_pending);
        let losses = old.map(|found| found.losses).unwrap_or_default();
        let webhook = WebhookState { record: Arc::new(record), health, oldest_pending, losses };
        state.webhooks.insert(id, webhook.clone());
        drop(state);
        self.notify(id);
        Ok(webhook)
    }
}
