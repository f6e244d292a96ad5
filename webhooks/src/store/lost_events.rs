//! Lost events of webhooks: their last attempt failed, and no delivery of them has succeeded.
//!
//! ```text
//! lost: one record for each lost event of a webhook
//! key     webhook id (16), tick of the event (8, big-endian)
//! body    empty; version 1
//! ```
//! An event is removed when a delivery of it succeeds, and when the events of its time are removed. So the records are as
//! many as the deliveries in the log at most.

use super::delivery_record::{DeliveryStatus, Summary};
use super::environment::{WebhookStore, readable};
use crate::id::{DeliveryId, EVENT_BYTES, ID_BYTES, WebhookId};
use crate::limits::EVENT_DELIVERIES_MAX;
use cairn_engine::Tick;
use cairn_lmdb::{Error, ReadTxn, WriteTxn};
use cairn_model::Timestamp;

/// The losses of a webhook: how many events, and since when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Losses {
    pub(crate) events: u64,
    /// The time of the oldest lost event. `None` if there is none.
    pub(crate) since: Option<Timestamp>,
}

fn key(webhook: WebhookId, event: Tick) -> [u8; ID_BYTES + 8] {
    let mut key = [0; ID_BYTES + 8];
    key[..ID_BYTES].copy_from_slice(&webhook.0);
    key[ID_BYTES..].copy_from_slice(&event.0.to_be_bytes());
    key
}

/// Returns the event of a key of this webhook.
fn event_of(key: &[u8], webhook: WebhookId) -> Option<Tick> {
    let tick = key.strip_prefix(webhook.0.as_slice())?;
    Some(Tick(u64::from_be_bytes(tick.try_into().ok()?)))
}

impl WebhookStore {
    /// Counts the lost events of a webhook. Used at the start only: it reads all of them.
    pub(super) fn losses(&self, txn: &ReadTxn<'_>, webhook: WebhookId) -> Result<Losses, Error> {
        let mut losses = Losses::default();
        for found in txn.keys(self.lost, &webhook.0)? {
            let Some(event) = event_of(found?, webhook) else { break };
            losses.events += 1;
            losses.since = losses.since.or(Some(event.time()));
        }
        Ok(losses)
    }

    /// Returns whether an event of a webhook is lost.
    pub(super) fn is_lost(&self, txn: &ReadTxn<'_>, webhook: WebhookId, event: Tick) -> Result<bool, Error> {
        Ok(txn.get(self.lost, &key(webhook, event))?.is_some())
    }

    /// Records that an event is lost, unless another delivery of it has succeeded.
    pub(super) fn add_lost(
        &self,
        txn: &mut WriteTxn<'_>,
        webhook: WebhookId,
        event: Tick,
        losses: &mut Losses,
    ) -> Result<(), Error> {
        let key = key(webhook, event);
        if txn.get(self.lost, &key)?.is_some() || self.has_succeeded(txn, webhook, event)? {
            return Ok(());
        }
        Self::put(txn, self.lost, &key, &[])?;
        losses.events += 1;
        losses.since = self.oldest_lost(txn, webhook)?;
        Ok(())
    }

    /// Records that an event is not lost any more.
    pub(super) fn remove_lost(
        &self,
        txn: &mut WriteTxn<'_>,
        webhook: WebhookId,
        event: Tick,
        losses: &mut Losses,
    ) -> Result<(), Error> {
        // The usual case needs no look at the table.
        if losses.events > 0 && txn.remove(self.lost, &key(webhook, event))? {
            losses.events -= 1;
            losses.since = self.oldest_lost(txn, webhook)?;
        }
        Ok(())
    }

    /// Forgets at most `max` lost events before a time. Returns how many.
    pub(super) fn forget_lost(
        &self,
        txn: &mut WriteTxn<'_>,
        webhook: WebhookId,
        before: Timestamp,
        max: usize,
        losses: &mut Losses,
    ) -> Result<usize, Error> {
        let mut forgotten = 0;
        while forgotten < max
            && let Some(event) = self.first_lost(txn, webhook)?
            && event.time() < before
        {
            self.remove_lost(txn, webhook, event, losses)?;
            forgotten += 1;
        }
        Ok(forgotten)
    }

    fn first_lost(&self, txn: &WriteTxn<'_>, webhook: WebhookId) -> Result<Option<Tick>, Error> {
        let found = txn.first_key_at_or_after(self.lost, &webhook.0)?;
        Ok(found.and_then(|key| event_of(key, webhook)))
    }

    fn oldest_lost(&self, txn: &WriteTxn<'_>, webhook: WebhookId) -> Result<Option<Timestamp>, Error> {
        Ok(self.first_lost(txn, webhook)?.map(Tick::time))
    }

    /// Returns whether a delivery of an event to a webhook has succeeded.
    fn has_succeeded(&self, txn: &WriteTxn<'_>, webhook: WebhookId, event: Tick) -> Result<bool, Error> {
        let start = DeliveryId::new(event, [0; 8]).0;
        for item in txn.scan(self.deliveries, &start[..EVENT_BYTES])?.take(EVENT_DELIVERIES_MAX) {
            let Some((key, record)) = readable(item.map(Some))? else { continue };
            let Ok(id) = key.try_into().map(DeliveryId) else { continue };
            if id.event() != event {
                break;
            }
            let found = Summary::decode(&record).filter(|found| found.webhook == webhook);
            if found.is_some_and(|found| found.status == DeliveryStatus::Succeeded) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn the_format_of_keys_does_not_change() {
        let (webhook, event) = (WebhookId([7; 16]), Tick(0x0102_0304_0506_0708));
        let mut expected = vec![7; 16];
        expected.extend([1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(key(webhook, event).as_slice(), expected);
        assert_eq!(event_of(&expected, webhook), Some(event));
        assert_eq!(
            (event_of(&expected, WebhookId([8; 16])), event_of(&expected[..23], webhook)),
            (None, None)
        );
    }
}
