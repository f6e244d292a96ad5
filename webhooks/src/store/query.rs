//! Queries for deliveries and their result types.

use super::delivery_record::{DeliveryStatus, LogEntry, Waiting};
use crate::id::{DeliveryId, WebhookId};
use crate::limits::PAGE_DELIVERIES_DEFAULT;
use cairn_engine::{EventId, EventType};
use cairn_model::Timestamp;

/// A query for deliveries, latest first.
#[derive(Clone, Debug)]
pub struct DeliveryQuery {
    /// Only those to this webhook.
    pub webhook: Option<WebhookId>,
    /// Only those of this event.
    pub event: Option<EventId>,
    /// Only those with this status.
    pub status: Option<DeliveryStatus>,
    /// Only those of events that are lost.
    pub lost: bool,
    /// The end of the previous page ([`DeliveryPage::next`]).
    pub after: Option<(Timestamp, DeliveryId)>,
    /// Most entries of the page, from 1 to [`crate::PAGE_DELIVERIES_MAX`].
    pub limit: usize,
}

impl Default for DeliveryQuery {
    fn default() -> Self {
        let limit = PAGE_DELIVERIES_DEFAULT;
        Self { webhook: None, event: None, status: None, lost: false, after: None, limit }
    }
}

/// One page of deliveries.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeliveryPage {
    /// The entries, latest first.
    pub deliveries: Vec<DeliveryEntry>,
    /// The start of the next page, if there may be one.
    pub next: Option<(Timestamp, DeliveryId)>,
}

/// An attempt, a delivery that waits, or one that was dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryEntry {
    /// Id of the delivery: the same in all its attempts.
    pub id: DeliveryId,
    /// The webhook.
    pub webhook_id: WebhookId,
    /// The event.
    pub event_id: EventId,
    /// Type of the event.
    pub event_type: EventType,
    /// Number of this attempt, or of attempts so far if it waits or was dropped.
    pub attempt: u8,
    /// The status of the delivery. An attempt that was followed by another one is pending until the delivery ends, and then
    /// failed.
    pub status: DeliveryStatus,
    /// The HTTP status of the attempt, if the target answered.
    pub http_status: Option<u16>,
    /// The start of the attempt, or the time when the delivery was queued or dropped.
    pub timestamp: Timestamp,
    /// Whether the attempt succeeded.
    pub success: bool,
    /// The reason why the attempt failed, or why the delivery was dropped.
    pub error: Option<String>,
    /// The time when the next attempt is due, or was due after a failed attempt.
    pub next_attempt_at: Option<Timestamp>,
    /// Whether an administrator asked for this delivery.
    pub redelivery: bool,
    /// Whether the event is lost: its last attempt failed, and no delivery of it has succeeded.
    pub event_lost: bool,
}

impl DeliveryEntry {
    /// Returns the view of a waiting delivery.
    pub(crate) fn of_waiting(waiting: &Waiting, store: &[u8; 16]) -> Self {
        Self {
            id: waiting.id,
            webhook_id: waiting.webhook,
            event_id: EventId::new(waiting.id.event(), store),
            event_type: waiting.kind,
            attempt: waiting.attempts,
            status: DeliveryStatus::Pending,
            http_status: None,
            timestamp: waiting.queued_at,
            success: false,
            error: None,
            next_attempt_at: Some(waiting.due),
            redelivery: waiting.redelivery,
            event_lost: false,
        }
    }

    /// Returns the view of a log entry.
    pub(super) fn of_entry(
        (webhook_id, timestamp, id): (WebhookId, Timestamp, DeliveryId),
        entry: LogEntry,
        store: &[u8; 16],
    ) -> Self {
        Self {
            id,
            webhook_id,
            event_id: EventId::new(id.event(), store),
            event_type: entry.kind,
            attempt: entry.attempt,
            status: entry.status,
            http_status: entry.http_status,
            timestamp,
            success: entry.status == DeliveryStatus::Succeeded,
            error: Some(entry.error).filter(|error| !error.is_empty()),
            next_attempt_at: entry.next_attempt_at,
            redelivery: entry.redelivery,
            event_lost: false,
        }
    }
}
