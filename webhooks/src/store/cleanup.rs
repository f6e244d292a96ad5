//! Removal of dropped deliveries, deleted webhooks and old log entries.
//!
//! Each step is one small transaction. Three things are removed: waiting deliveries of disabled webhooks and those whose events
//! are gone, which leave an entry `dropped` in the log; everything of deleted webhooks; and log entries that are older than the
//! events.

use super::apply::{Batch, Outcome, Verdict};
use super::delivery_record::{LogEntry, time_key_parts};
use super::environment::readable;
use super::state::Shared;
use crate::id::WebhookId;
use crate::limits::BATCH_REMOVALS_MAX;
use cairn_lmdb::{Error, Table, WriteTxn};
use cairn_model::Timestamp;

const DISABLED: &str = "the webhook was disabled";
pub(crate) const EVENT_GONE: &str = "the event is no longer stored";

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Something was removed. There may be more.
    Removed,
    /// There is nothing to remove.
    Idle,
}

/// Removes one batch of obsolete records.
pub(super) fn step(shared: &Shared, now: Timestamp, retention: Retention) -> Result<Step, Error> {
    if let Some((webhook, until, reason)) = to_drop(shared) {
        drop_oldest(shared, webhook, until, reason, now)?;
        if let Some(observer) = shared.observer() {
            observer.changed(webhook);
        }
        return Ok(Step::Removed);
    }
    let removal = shared.state().removals.first().copied();
    if let Some(webhook) = removal {
        remove_webhook(shared, webhook)?;
        return Ok(Step::Removed);
    }
    match retention {
        Retention::Due => remove_old(shared, shared.age.oldest_kept()),
        Retention::NotDue => Ok(Step::Idle),
    }
}

/// The retention state of the log: whether entries may have become too old since the last look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Retention {
    /// It is time to look.
    Due,
    /// A short while ago there was none.
    NotDue,
}

/// Returns a webhook with deliveries that are to be dropped: those queued until then, and why.
fn to_drop(shared: &Shared) -> Option<(WebhookId, Timestamp, &'static str)> {
    let oldest_kept = shared.age.oldest_kept();
    let state = shared.state();
    state.webhooks.iter().find_map(|(id, webhook)| {
        let (oldest, until) = (webhook.oldest_pending?, webhook.health.dropped_until);
        if oldest <= until {
            Some((*id, until, DISABLED))
        } else if oldest < oldest_kept {
            Some((*id, Timestamp(oldest_kept.0 - 1), EVENT_GONE))
        } else {
            None
        }
    })
}

/// Drops the oldest waiting deliveries of a webhook.
fn drop_oldest(
    shared: &Shared,
    webhook: WebhookId,
    until: Timestamp,
    reason: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let mut batch = Batch::begin(shared)?;
    for _ in 0..BATCH_REMOVALS_MAX {
        let oldest = shared.store.first_waiting(&batch.txn, webhook)?;
        let Some(delivery) = oldest.filter(|delivery| delivery.queued_at <= until) else { break };
        let outcome = Outcome {
            delivery,
            at: now,
            verdict: Verdict::Dropped,
            http_status: None,
            error: reason.to_owned(),
            is_target_away: false,
        };
        batch.record(&outcome)?;
    }
    batch.commit()
}

/// Returns the first key that begins with `prefix`, even if its record is damaged.
fn first_key(txn: &WriteTxn<'_>, table: Table, prefix: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let found = txn.first_key_at_or_after(table, prefix)?;
    Ok(found.filter(|key| key.starts_with(prefix)).map(<[u8]>::to_vec))
}

/// Removes a batch of the records of a deleted webhook, and at the end the record of its removal.
fn remove_webhook(shared: &Shared, webhook: WebhookId) -> Result<(), Error> {
    let store = &shared.store;
    let mut txn = store.tables.environment().write()?;
    let mut removed = 0;
    for table in [store.waiting, store.succeeded, store.unsuccessful, store.pending, store.lost] {
        while removed < BATCH_REMOVALS_MAX
            && let Some(key) = first_key(&txn, table, &webhook.0)?
        {
            if let Some((_, _, delivery)) = time_key_parts(&key) {
                txn.remove(store.deliveries, &delivery.0)?;
            }
            txn.remove(table, &key)?;
            removed += 1;
        }
    }
    let is_done = removed == 0;
    if is_done {
        txn.remove(store.removals, &webhook.0)?;
    }
    txn.commit()?;
    if is_done {
        shared.state_mut().removals.remove(&webhook);
    }
    Ok(())
}

/// Removes a batch of log entries that are older than `oldest_kept`.
fn remove_old(shared: &Shared, oldest_kept: Timestamp) -> Result<Step, Error> {
    let store = &shared.store;
    let webhooks: Vec<_> = shared.state().webhooks.keys().copied().collect();
    let mut batch = Batch::begin(shared)?;
    let mut removed = 0;
    for webhook in webhooks {
        // What is no longer stored cannot be sent again.
        let has_losses = shared.state().webhooks.get(&webhook).is_some_and(|found| found.losses.events > 0);
        if has_losses {
            removed += batch.forget_lost(webhook, oldest_kept, BATCH_REMOVALS_MAX.saturating_sub(removed))?;
        }
        let txn = &mut batch.txn;
        for table in [store.succeeded, store.unsuccessful] {
            while removed < BATCH_REMOVALS_MAX
                && let Some(key) = first_key(txn, table, &webhook.0)?
                && let Some((_, time, delivery)) = time_key_parts(&key)
                && time < oldest_kept
            {
                let found = readable(txn.get(table, &key))?;
                let entry = found.and_then(|record| LogEntry::decode(&record));
                if entry.is_none_or(|entry| entry.is_last) {
                    txn.remove(store.deliveries, &delivery.0)?;
                }
                txn.remove(table, &key)?;
                removed += 1;
            }
        }
    }
    batch.commit()?;
    Ok(if removed > 0 { Step::Removed } else { Step::Idle })
}
