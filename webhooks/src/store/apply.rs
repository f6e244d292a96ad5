//! New deliveries and outcomes of attempts, as changes of one transaction.

use super::delivery_record::{DeliveryStatus, LogEntry, Summary, Waiting, time_key};
use super::environment::{POSITION_KEY, WebhookStore, readable};
use super::lost_events::Losses;
use super::observer::Recorded;
use super::state::Shared;
use super::webhook_record::{Health, WebhookRecord};
use crate::id::{DeliveryId, WebhookId};
use cairn_engine::{EventType, Tick};
use cairn_lmdb::{Error, WriteTxn};
use cairn_model::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A delivery that is to be queued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewDelivery {
    pub(crate) webhook: WebhookId,
    pub(crate) id: DeliveryId,
    pub(crate) kind: EventType,
    pub(crate) redelivery: bool,
    /// Whether it is sent although first attempts are held back.
    pub(crate) begun: bool,
}

/// Deliveries that are to be queued, and how far the events have been read.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewDeliveries {
    pub(crate) deliveries: Vec<NewDelivery>,
    pub(crate) position: Option<Tick>,
}

/// The verdict on a delivery after an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It was delivered.
    Succeeded,
    /// There is another attempt at this time.
    Again(Timestamp),
    /// It was the last attempt.
    Failed,
    /// There was no attempt and there will be none.
    Dropped,
}

/// The outcome of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// The delivery as it was queued.
    pub(crate) delivery: Waiting,
    /// The time of the attempt.
    pub(crate) at: Timestamp,
    pub(crate) verdict: Verdict,
    pub(crate) http_status: Option<u16>,
    /// Empty if the attempt succeeded.
    pub(crate) error: String,
    /// Whether the failure says that the target is away: no answer, 429 or 5xx.
    pub(crate) is_target_away: bool,
}

/// Counts of a transaction, which are added to the counters when it has been committed.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Results {
    succeeded: u64,
    failed: u64,
    dropped: u64,
    retried: u64,
}

/// The changes that a transaction makes to the state of a webhook.
#[derive(Clone, Default, Debug)]
struct Progress {
    health: Health,
    oldest_pending: Option<Timestamp>,
    losses: Losses,
}

/// A transaction in progress, with the health of webhooks as it will be.
pub(super) struct Batch<'s> {
    shared: &'s Shared,
    pub(super) txn: WriteTxn<'s>,
    health: BTreeMap<WebhookId, Progress>,
    position: Option<Tick>,
    results: Results,
}

impl<'s> Batch<'s> {
    pub(super) fn begin(shared: &'s Shared) -> Result<Self, Error> {
        let txn = shared.store.tables.environment().write()?;
        Ok(Self { shared, txn, health: BTreeMap::new(), position: None, results: Results::default() })
    }

    fn store(&self) -> &'s WebhookStore {
        &self.shared.store
    }

    /// Returns the webhook, if it exists, and makes its health changeable.
    fn webhook(&mut self, id: WebhookId) -> Option<Arc<WebhookRecord>> {
        let state = self.shared.state();
        let webhook = state.webhooks.get(&id)?;
        self.health.entry(id).or_insert_with(|| Progress {
            health: webhook.health.clone(),
            oldest_pending: webhook.oldest_pending,
            losses: webhook.losses,
        });
        Some(Arc::clone(&webhook.record))
    }

    /// Returns the health of a webhook that [`Self::webhook`] has found.
    pub(super) fn health(&mut self, id: WebhookId) -> &mut Health {
        &mut self.health.entry(id).or_default().health
    }

    /// Queues deliveries. Leaves out those of webhooks that no longer want them. Returns what was queued.
    pub(super) fn queue(&mut self, new: &NewDeliveries, now: Timestamp) -> Result<Vec<Waiting>, Error> {
        let mut queued = Vec::with_capacity(new.deliveries.len());
        for delivery in &new.deliveries {
            let Some(webhook) = self.webhook(delivery.webhook) else { continue };
            let is_wanted = delivery.redelivery || delivery.id.event() >= webhook.from_tick;
            if webhook.settings.enabled && is_wanted {
                queued.push(self.queue_one(delivery, now)?);
            }
        }
        if let Some(position) = new.position {
            WebhookStore::put(
                &mut self.txn,
                self.shared.store.position,
                POSITION_KEY,
                &position.0.to_le_bytes(),
            )?;
            self.position = Some(position);
        }
        Ok(queued)
    }

    fn queue_one(&mut self, delivery: &NewDelivery, now: Timestamp) -> Result<Waiting, Error> {
        let NewDelivery { webhook, id, kind, redelivery, begun } = *delivery;
        let health = self.health(webhook);
        health.pending += 1;
        // After those that are to be dropped, even if the clock was set back.
        let queued_at = Timestamp(now.0.max(health.dropped_until.0 + 1));
        let waiting =
            Waiting { id, webhook, kind, queued_at, due: queued_at, begun, attempts: 0, redelivery };
        let summary = Summary { webhook, queued_at, status: DeliveryStatus::Pending, times: Vec::new() };
        self.put_waiting(&waiting)?;
        self.put_summary(id, &summary)?;
        Ok(waiting)
    }

    fn put_waiting(&mut self, waiting: &Waiting) -> Result<(), Error> {
        let store = self.store();
        WebhookStore::put(&mut self.txn, store.pending, &waiting.pending_key(), &waiting.pending_body())?;
        WebhookStore::put(&mut self.txn, store.waiting, &waiting.waiting_key(), &waiting.waiting_body())
    }

    fn put_summary(&mut self, id: DeliveryId, summary: &Summary) -> Result<(), Error> {
        WebhookStore::put(&mut self.txn, self.shared.store.deliveries, &id.0, &summary.encode())
    }

    /// Records the outcome of an attempt. Does nothing if the webhook was deleted meanwhile.
    pub(super) fn record(&mut self, outcome: &Outcome) -> Result<Recorded, Error> {
        let Waiting { id, webhook, .. } = outcome.delivery;
        let gone = Recorded { webhook, id, next: None };
        if self.webhook(webhook).is_none() {
            return Ok(gone);
        }
        if !self.take_waiting(&outcome.delivery)? {
            self.record_late(outcome)?;
            return Ok(gone);
        }
        let next = self.end_attempt(outcome)?;
        Ok(Recorded { next, ..gone })
    }

    /// Removes a delivery from those that wait. Returns whether it was there.
    fn take_waiting(&mut self, delivery: &Waiting) -> Result<bool, Error> {
        let store = self.store();
        let was_there = self.txn.remove(store.pending, &delivery.pending_key())?;
        if was_there {
            self.txn.remove(store.waiting, &delivery.waiting_key())?;
        }
        Ok(was_there)
    }

    /// Writes the outcome of an attempt whose delivery does not wait any more. Returns when its next attempt is due.
    fn end_attempt(&mut self, outcome: &Outcome) -> Result<Option<Timestamp>, Error> {
        let next = self.write_entry(outcome)?;
        self.update_losses(outcome)?;
        self.update_health(outcome);
        Ok(next)
    }

    /// Records an attempt that was under way when its delivery was dropped: as if it had ended before. A delivery that it has
    /// ended was not dropped then; another one is dropped after it.
    fn record_late(&mut self, outcome: &Outcome) -> Result<(), Error> {
        if outcome.verdict == Verdict::Dropped {
            return Ok(());
        }
        let Some(drop) = self.take_drop(&outcome.delivery)? else { return Ok(()) };
        // The delivery has been counted as dropped. Counters cannot go back, so it is not counted again.
        let counted = self.results;
        self.health(outcome.delivery.webhook).pending += 1;
        if let Some(due) = self.end_attempt(outcome)? {
            let attempts = outcome.delivery.attempts.saturating_add(1);
            let delivery = Waiting { due, begun: true, attempts, ..outcome.delivery };
            self.take_waiting(&delivery)?;
            self.end_attempt(&Outcome { delivery, ..drop })?;
        }
        self.results = counted;
        Ok(())
    }

    /// Removes the last log entry of a delivery that was dropped, and returns it; `None` if it was not dropped, or the log has
    /// forgotten it.
    fn take_drop(&mut self, delivery: &Waiting) -> Result<Option<Outcome>, Error> {
        let mut summary = self.summary(delivery)?;
        let Some(at) = summary.times.pop().filter(|_| summary.status == DeliveryStatus::Dropped) else {
            return Ok(None);
        };
        let (table, key) = (self.shared.store.unsuccessful, time_key(delivery.webhook, at, delivery.id));
        let found = readable(self.txn.get(table, &key))?;
        let Some(entry) = found.and_then(|record| LogEntry::decode(&record)) else { return Ok(None) };
        self.txn.remove(table, &key)?;
        summary.status = DeliveryStatus::Pending;
        self.put_summary(delivery.id, &summary)?;
        Ok(Some(Outcome {
            delivery: *delivery,
            at,
            verdict: Verdict::Dropped,
            http_status: None,
            error: entry.error,
            is_target_away: false,
        }))
    }

    /// Writes the log entry of an outcome, and the delivery as it is now. Returns when its next attempt is due.
    fn write_entry(&mut self, outcome: &Outcome) -> Result<Option<Timestamp>, Error> {
        let (delivery, store) = (&outcome.delivery, self.store());
        let mut summary = self.summary(delivery)?;
        let (status, next) = match outcome.verdict {
            Verdict::Succeeded => (DeliveryStatus::Succeeded, None),
            Verdict::Again(due) => (DeliveryStatus::Pending, Some(due)),
            Verdict::Failed => (DeliveryStatus::Failed, None),
            Verdict::Dropped => (DeliveryStatus::Dropped, None),
        };
        // Entries of a delivery have different times, so that each has a place in the order of the log.
        let last = summary.times.last().copied().unwrap_or(summary.queued_at);
        let at = Timestamp(outcome.at.0.max(last.0 + 1));
        let made = u8::from(outcome.verdict != Verdict::Dropped);
        let entry = LogEntry {
            status,
            attempt: delivery.attempts.saturating_add(made),
            redelivery: delivery.redelivery,
            is_last: next.is_none(),
            kind: delivery.kind,
            http_status: outcome.http_status,
            next_attempt_at: next,
            error: outcome.error.clone(),
        };
        if next.is_none() {
            self.end_earlier_attempts(delivery, &summary.times)?;
        }
        let table = if status == DeliveryStatus::Succeeded { store.succeeded } else { store.unsuccessful };
        let key = time_key(delivery.webhook, at, delivery.id);
        WebhookStore::put(&mut self.txn, table, &key, &entry.encode())?;
        summary.status = status;
        summary.times.push(at);
        self.put_summary(delivery.id, &summary)?;
        if let Some(due) = next {
            let again = Waiting { due, begun: true, attempts: entry.attempt, ..*delivery };
            self.put_waiting(&again)?;
        }
        Ok(next)
    }

    /// Returns a delivery's record, or a new one in place of a damaged one: the delivery itself is not affected.
    fn summary(&self, delivery: &Waiting) -> Result<Summary, Error> {
        let found = readable(self.txn.get(self.shared.store.deliveries, &delivery.id.0))?;
        let summary = found.and_then(|record| Summary::decode(&record));
        Ok(summary.unwrap_or_else(|| Summary {
            webhook: delivery.webhook,
            queued_at: delivery.queued_at,
            status: DeliveryStatus::Pending,
            times: Vec::new(),
        }))
    }

    /// Marks the earlier attempts of a delivery that ends as failed. They were pending.
    fn end_earlier_attempts(&mut self, delivery: &Waiting, times: &[Timestamp]) -> Result<(), Error> {
        let table = self.shared.store.unsuccessful;
        for time in times {
            let key = time_key(delivery.webhook, *time, delivery.id);
            let found = readable(self.txn.get(table, &key))?;
            let Some(mut entry) = found.and_then(|record| LogEntry::decode(&record)) else { continue };
            entry.status = DeliveryStatus::Failed;
            WebhookStore::put(&mut self.txn, table, &key, &entry.encode())?;
        }
        Ok(())
    }

    /// Records a lost event, or that an event is not lost any more.
    fn update_losses(&mut self, outcome: &Outcome) -> Result<(), Error> {
        let (store, webhook, event) = (self.store(), outcome.delivery.webhook, outcome.delivery.id.event());
        let losses = &mut self.health.entry(webhook).or_default().losses;
        match outcome.verdict {
            Verdict::Failed => store.add_lost(&mut self.txn, webhook, event, losses),
            Verdict::Succeeded => store.remove_lost(&mut self.txn, webhook, event, losses),
            Verdict::Again(_) | Verdict::Dropped => Ok(()),
        }
    }

    /// Forgets at most `max` lost events of a webhook before a time. Returns how many.
    pub(super) fn forget_lost(
        &mut self,
        webhook: WebhookId,
        before: Timestamp,
        max: usize,
    ) -> Result<usize, Error> {
        if self.webhook(webhook).is_none() {
            return Ok(0);
        }
        let store = self.store();
        let losses = &mut self.health.entry(webhook).or_default().losses;
        store.forget_lost(&mut self.txn, webhook, before, max, losses)
    }

    fn update_health(&mut self, outcome: &Outcome) {
        let webhook = outcome.delivery.webhook;
        match outcome.verdict {
            Verdict::Succeeded => self.results.succeeded += 1,
            Verdict::Again(_) => self.results.retried += 1,
            Verdict::Failed => self.results.failed += 1,
            Verdict::Dropped => self.results.dropped += 1,
        }
        let health = self.health(webhook);
        if !matches!(outcome.verdict, Verdict::Again(_)) {
            health.pending = health.pending.saturating_sub(1);
        }
        match outcome.verdict {
            Verdict::Succeeded => {
                health.consecutive_failures = 0;
                health.target_failures = 0;
                health.last_success_at = Some(outcome.at);
            }
            Verdict::Again(_) | Verdict::Failed => {
                health.consecutive_failures = health.consecutive_failures.saturating_add(1);
                let away = health.target_failures.saturating_add(1);
                health.target_failures = if outcome.is_target_away { away } else { 0 };
                health.last_error.clone_from(&outcome.error);
            }
            Verdict::Dropped => {}
        }
    }

    /// Writes the changed health, commits, and puts what is durable in force.
    pub(super) fn commit(mut self) -> Result<(), Error> {
        let store = self.store();
        for (id, progress) in &mut self.health {
            WebhookStore::put(&mut self.txn, store.health, &id.0, &progress.health.encode())?;
            progress.oldest_pending = store.first_waiting(&self.txn, *id)?.map(|waiting| waiting.queued_at);
        }
        self.txn.commit()?;
        let mut state = self.shared.state_mut();
        for (id, progress) in self.health {
            if let Some(webhook) = state.webhooks.get_mut(&id) {
                let Progress { health, oldest_pending, losses } = progress;
                (webhook.health, webhook.oldest_pending, webhook.losses) = (health, oldest_pending, losses);
            }
        }
        if let Some(position) = self.position {
            state.position = position;
        }
        drop(state);
        let counters = &self.shared.counters;
        counters.succeeded.add(self.results.succeeded);
        counters.failed.add(self.results.failed);
        counters.dropped.add(self.results.dropped);
        counters.retried.add(self.results.retried);
        Ok(())
    }
}
