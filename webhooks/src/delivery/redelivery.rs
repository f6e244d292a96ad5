//! Redelivery: of one delivery, or of many events to one webhook.

use super::context::Context;
use super::event_bytes::EventBytes;
use super::fan_out::{EventBatch, new_id};
use super::lane::Item;
use super::worker::start_if_needed;
use crate::error::WebhookError;
use crate::id::{DeliveryId, ID_BYTES, WebhookId};
use crate::limits::{BATCH_DELIVERIES_MAX, FAN_OUT_EVENTS_MAX};
use crate::store::{NewDeliveries, NewDelivery, Waiting, WebhookRecord};
use cairn_engine::{EngineError, EventQuery, Tick};
use cairn_model::Timestamp;
use cairn_tables::StoreFailure;
use std::collections::HashSet;
use std::sync::Arc;

/// The selection of events that are delivered again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Redeliver {
    /// Those of deliveries that failed, except events that were delivered since.
    #[default]
    Failed,
    /// All that the webhook selects, whether they were delivered or not.
    All,
}

impl Redeliver {
    /// Returns the value with this name in the management API.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "failed" => Some(Self::Failed),
            "all" => Some(Self::All),
            _ => None,
        }
    }
}

fn engine_error(error: EngineError) -> WebhookError {
    match error {
        EngineError::ShuttingDown => StoreFailure::Closing.into(),
        other => WebhookError::failed(format!("events could not be read: {other}")),
    }
}

fn enabled(context: &Context, id: WebhookId) -> Result<Arc<WebhookRecord>, WebhookError> {
    let record = context.shared().webhook(id).ok_or(WebhookError::WebhookNotFound)?.record;
    if record.settings.enabled { Ok(record) } else { Err(WebhookError::Disabled) }
}

/// Delivers one event again. First attempts that are held back do not hold this one back. Blocks.
pub(super) fn redeliver_one(context: &Arc<Context>, id: DeliveryId) -> Result<Waiting, WebhookError> {
    let (webhook, kind) = context.shared().delivery(id)?.ok_or(WebhookError::DeliveryNotFound)?;
    let webhook = enabled(context, webhook)?.id;
    let tick = id.event();
    let event =
        EventBytes::read(&*context.source, tick).map_err(engine_error)?.ok_or(WebhookError::EventNotFound)?;
    let new = NewDelivery { webhook, id: new_id(tick)?, kind, redelivery: true, begun: true };
    let queued = context.writer.queue(NewDeliveries { deliveries: vec![new], position: None })?;
    let waiting = queued.first().copied().ok_or(WebhookError::Disabled)?;
    context.lanes.add(vec![Item { waiting, event: Some(event) }]);
    start_if_needed(context);
    Ok(waiting)
}

/// Sends what was held back because the target was away.
pub(super) fn resume(context: &Arc<Context>, webhook: WebhookId) {
    context.lanes.resume(webhook);
    start_if_needed(context);
}

/// Delivers many events to a webhook again. Returns how many were queued. Blocks.
pub(super) fn redeliver(
    context: &Arc<Context>,
    webhook: WebhookId,
    since: Timestamp,
    until: Option<Timestamp>,
    which: Redeliver,
) -> Result<u64, WebhookError> {
    let from = Tick::first_at(since);
    // Events that are committed from now on are delivered anyway.
    let end = until.map_or(Tick(u64::MAX), Tick::first_at).min(context.source.tick());
    let queued = match which {
        Redeliver::All => redeliver_all(context, webhook, from, end)?,
        Redeliver::Failed => redeliver_failed(context, webhook, from, end)?,
    };
    context.lanes.probe_now(webhook);
    start_if_needed(context);
    Ok(queued)
}

fn redeliver_all(
    context: &Arc<Context>,
    webhook: WebhookId,
    from: Tick,
    end: Tick,
) -> Result<u64, WebhookError> {
    let (mut from, mut queued) = (from, 0);
    while from < end && !context.is_closing() {
        let record = enabled(context, webhook)?;
        let query = EventQuery {
            from,
            until: end,
            types: record.types,
            bucket: record.settings.bucket_filter.clone(),
            limit: FAN_OUT_EVENTS_MAX.min(BATCH_DELIVERIES_MAX),
            ..EventQuery::default()
        };
        let page = context.source.events(&query).map_err(engine_error)?;
        let mut batch = EventBatch::default();
        for event in page.events.iter().filter(|event| record.selects(event)) {
            batch.add(event, &record, true)?;
        }
        queued += cairn_model::u64_of(batch.len());
        if batch.len() > 0 {
            batch.queue(context, None)?;
        }
        if !page.is_truncated {
            break;
        }
        from = page.examined;
    }
    Ok(queued)
}

fn redeliver_failed(
    context: &Arc<Context>,
    webhook: WebhookId,
    from: Tick,
    end: Tick,
) -> Result<u64, WebhookError> {
    // A delivery fails after its event, so its last attempt is not before `from`.
    let mut after = Some((from.time(), DeliveryId([0; ID_BYTES])));
    let (mut seen, mut queued) = (HashSet::new(), 0);
    while let Some(place) = after.filter(|_| !context.is_closing()) {
        enabled(context, webhook)?;
        let found = context.shared().failed_events(webhook, place, BATCH_DELIVERIES_MAX)?;
        after = found.next;
        let mut new = NewDeliveries::default();
        for (tick, kind) in found.events {
            if tick >= from && tick < end && seen.insert(tick) {
                let id = new_id(tick)?;
                new.deliveries.push(NewDelivery { webhook, id, kind, redelivery: true, begun: false });
            }
        }
        if !new.deliveries.is_empty() {
            let waiting = context.writer.queue(new)?;
            queued += cairn_model::u64_of(waiting.len());
            context.lanes.add(waiting.into_iter().map(|waiting| Item { waiting, event: None }).collect());
        }
    }
    Ok(queued)
}
