//! The fan-out thread: queues a delivery of each new event per webhook.
//!
//! It follows the events from a durable position. The deliveries of events and the position after these events are one
//! transaction, so no event is left out and none is queued twice. A page of events may need several.

use super::context::Context;
use super::event_bytes::EventBytes;
use super::lane::Item;
use super::worker::start_if_needed;
use crate::error::WebhookError;
use crate::id::DeliveryId;
use crate::limits::{BATCH_DELIVERIES_MAX, FAILURE_WAIT, FAN_OUT_EVENTS_MAX, POSITION_INTERVAL};
use crate::store::{NewDeliveries, NewDelivery, WebhookRecord};
use cairn_engine::{EventPage, EventQuery, EventTypes, StorageEvent, Tick};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Follows the events until the service ends, or nothing can be written any more.
pub(super) fn run(context: &Arc<Context>) {
    let mut position = context.shared().state().position;
    // When the position was last made durable without deliveries, and the generation of events then.
    let mut saved = (Instant::now(), context.source.generation());
    while !context.is_closing() && context.shared().store.tables.check().is_ok() {
        // Before everything else, so that an event that comes meanwhile ends the wait below.
        let seen = context.source.generation();
        let changes = context.changes();
        let webhooks = enabled_webhooks(context);
        let first = webhooks.iter().map(|webhook| webhook.from_tick).min();
        let Some(first) = first else {
            // No webhook is enabled, so commits need not wake this thread.
            context.wait_for_change(changes, context.poll_interval);
            continue;
        };
        position = position.max(first);
        match read(context, &webhooks, position) {
            Ok(page) => {
                let is_end = page.events.is_empty() && !page.is_truncated;
                match queue_page(context, &webhooks, &page) {
                    Ok(()) => position = page.examined,
                    Err(error) => {
                        // What the earlier transactions of this page have queued is not queued again.
                        position = position.max(context.shared().state().position);
                        wait_after_failure(context, &error);
                    }
                }
                // Without new events there is no reason to write.
                if saved.0.elapsed() >= POSITION_INTERVAL && saved.1 != seen {
                    save(context, position);
                    saved = (Instant::now(), seen);
                }
                if is_end {
                    context.source.wait(seen, context.poll_interval);
                }
            }
            Err(error) => wait_after_failure(context, &error),
        }
    }
    save(context, position);
}

/// Makes the position durable without deliveries. Events that no webhook selects are then not read again after a restart.
fn save(context: &Context, position: Tick) {
    if position > context.shared().state().position {
        // The writer logs why it fails, and then there are only more events to read.
        let _ = context.writer.queue(NewDeliveries { position: Some(position), ..NewDeliveries::default() });
    }
}

fn wait_after_failure(context: &Context, error: &dyn std::fmt::Display) {
    if !context.is_closing() {
        tracing::error!(target: "service::webhooks", %error, "events could not be handed to webhooks: trying again");
        context.wait_for_end(FAILURE_WAIT);
    }
}

fn enabled_webhooks(context: &Context) -> Vec<Arc<WebhookRecord>> {
    let state = context.shared().state();
    let records = state.webhooks.values().map(|webhook| &webhook.record);
    records.filter(|record| record.settings.enabled).cloned().collect()
}

fn read(
    context: &Context,
    webhooks: &[Arc<WebhookRecord>],
    from: Tick,
) -> Result<EventPage, cairn_engine::EngineError> {
    let types: EventTypes = webhooks.iter().flat_map(|webhook| webhook.types.iter()).collect();
    context.source.events(&EventQuery { from, types, limit: FAN_OUT_EVENTS_MAX, ..EventQuery::default() })
}

/// Queues the deliveries of a page of events.
fn queue_page(
    context: &Arc<Context>,
    webhooks: &[Arc<WebhookRecord>],
    page: &EventPage,
) -> Result<(), WebhookError> {
    let mut batch = EventBatch::default();
    for event in &page.events {
        let selecting: Vec<_> = webhooks
            .iter()
            .filter(|webhook| event.id.tick() >= webhook.from_tick && webhook.selects(event))
            .collect();
        if batch.len() + selecting.len() > BATCH_DELIVERIES_MAX {
            batch.queue(context, Some(event.id.tick()))?;
        }
        for webhook in selecting {
            batch.add(event, webhook, false)?;
        }
    }
    if batch.len() > 0 { batch.queue(context, Some(page.examined)) } else { Ok(()) }
}

/// New deliveries, with their events.
#[derive(Default)]
pub(super) struct EventBatch {
    new: NewDeliveries,
    events: HashMap<Tick, Arc<EventBytes>>,
}

impl EventBatch {
    pub(super) fn len(&self) -> usize {
        self.new.deliveries.len()
    }

    /// Adds the delivery of an event to a webhook.
    pub(super) fn add(
        &mut self,
        event: &StorageEvent,
        webhook: &WebhookRecord,
        redelivery: bool,
    ) -> Result<(), WebhookError> {
        let tick = event.id.tick();
        self.events.entry(tick).or_insert_with(|| Arc::new(EventBytes::new(event)));
        let (webhook, kind) = (webhook.id, event.kind);
        let id = new_id(tick)?;
        self.new.deliveries.push(NewDelivery { webhook, id, kind, redelivery, begun: false });
        Ok(())
    }

    /// Makes the deliveries durable, and then lets them be sent. The batch is empty afterwards.
    pub(super) fn queue(
        &mut self,
        context: &Arc<Context>,
        position: Option<Tick>,
    ) -> Result<(), WebhookError> {
        let Self { mut new, events } = std::mem::take(self);
        new.position = position;
        let queued = context.writer.queue(new)?;
        let item = |waiting: crate::store::Waiting| {
            let event = events.get(&waiting.id.event()).cloned();
            Item { waiting, event }
        };
        context.lanes.add(queued.into_iter().map(item).collect());
        start_if_needed(context);
        Ok(())
    }
}

/// Makes the id of a delivery of the event at a tick.
pub(super) fn new_id(tick: Tick) -> Result<DeliveryId, WebhookError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(std::io::Error::other)?;
    Ok(DeliveryId::new(tick, random))
}
