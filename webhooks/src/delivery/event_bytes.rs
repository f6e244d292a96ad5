//! The serialized form of an event, as deliveries send it.

use super::source::EventSource;
use crate::client::Delivery;
use crate::event_body::{event_json, test_event_json};
use crate::store::WebhookRecord;
use cairn_engine::{EngineError, EventQuery, StorageEvent, Tick};
use cairn_http1::iso8601_millis;
use cairn_model::Timestamp;
use std::sync::Arc;

/// A serialized event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct EventBytes {
    id: String,
    kind: &'static str,
    time: String,
    body: Vec<u8>,
}

impl EventBytes {
    pub(super) fn new(event: &StorageEvent) -> Self {
        Self::with_body(event, event_json(event))
    }

    /// Returns the form of an event that only tests a webhook.
    pub(super) fn of_test(event: &StorageEvent) -> Self {
        Self::with_body(event, test_event_json(event))
    }

    fn with_body(event: &StorageEvent, body: Vec<u8>) -> Self {
        let (id, time) = (event.id.to_string(), iso8601_millis(event.time().0));
        Self { id, kind: event.kind.name(), time, body }
    }

    /// Returns the request to a webhook at a time.
    pub(super) fn request<'r>(&'r self, webhook: &'r WebhookRecord, at: Timestamp) -> Delivery<'r> {
        Delivery {
            target: &webhook.target,
            event_id: &self.id,
            event_type: self.kind,
            event_time: &self.time,
            attempted_at: at,
            body: &self.body,
            secrets: webhook.secrets(at),
        }
    }

    /// Reads an event. Returns `None` if it is no longer stored.
    pub(super) fn read(source: &dyn EventSource, tick: Tick) -> Result<Option<Arc<Self>>, EngineError> {
        let query = EventQuery { from: tick, until: tick.next(), limit: 1, ..EventQuery::default() };
        let page = source.events(&query)?;
        Ok(page.events.first().map(|event| Arc::new(Self::new(event))))
    }
}
