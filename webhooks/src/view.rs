//! Webhooks as callers see them.

use crate::id::WebhookId;
use crate::store::WebhookState;
use cairn_engine::EventType;
use cairn_model::Timestamp;

/// What a client sets when it creates a webhook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewWebhook {
    /// Where events are posted.
    pub target_url: String,
    /// Which events, at least one type.
    pub event_types: Vec<EventType>,
    /// Only events of the bucket with this name.
    pub bucket_filter: Option<String>,
    /// Only events of objects whose key begins with this.
    pub object_prefix_filter: Option<String>,
    /// Whether events are delivered.
    pub enabled: bool,
}

/// What a client changes. What is `None` stays as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WebhookChange {
    /// Where events are posted.
    pub target_url: Option<String>,
    /// Which events, at least one type.
    pub event_types: Option<Vec<EventType>>,
    /// Only events of the bucket with this name. `Some(None)` removes the filter.
    pub bucket_filter: Option<Option<String>>,
    /// Only events of objects whose key begins with this. `Some(None)` removes the filter.
    pub object_prefix_filter: Option<Option<String>>,
}

/// A webhook without its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Webhook {
    /// The id.
    pub id: WebhookId,
    /// Where events are posted.
    pub target_url: String,
    /// Which events.
    pub event_types: Vec<EventType>,
    /// Only events of the bucket with this name.
    pub bucket_filter: Option<String>,
    /// Only events of objects whose key begins with this.
    pub object_prefix_filter: Option<String>,
    /// Whether events are delivered.
    pub enabled: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// How deliveries go.
    pub health: WebhookHealth,
}

/// How deliveries to a webhook go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebhookHealth {
    /// A summary.
    pub state: HealthState,
    /// Failed attempts since the last success, or since the webhook was enabled or got another target.
    pub consecutive_failures: u32,
    /// The last success.
    pub last_success_at: Option<Timestamp>,
    /// Why the last failed attempt failed.
    pub last_error: Option<String>,
    /// When the oldest waiting delivery was queued.
    pub oldest_pending_at: Option<Timestamp>,
    /// Waiting deliveries.
    pub pending: u64,
    /// Events whose last attempt failed, and of which no delivery has succeeded since.
    pub lost: u64,
    /// The time of the oldest lost event.
    pub lost_since: Option<Timestamp>,
}

/// A summary of a webhook's health.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HealthState {
    /// The last attempt succeeded, or there was none.
    Ok,
    /// The last attempt failed.
    Failing,
    /// The target does not answer, or with errors, and first attempts are held back.
    Paused,
}

impl HealthState {
    /// Returns the name in the management API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failing => "failing",
            Self::Paused => "paused",
        }
    }
}

impl Webhook {
    pub(crate) fn new(webhook: &WebhookState, is_held: bool) -> Self {
        let WebhookState { record, health, oldest_pending, losses } = webhook;
        let settings = record.settings.clone();
        let state = match health.consecutive_failures {
            _ if is_held => HealthState::Paused,
            0 => HealthState::Ok,
            _ => HealthState::Failing,
        };
        Self {
            id: record.id,
            target_url: settings.target_url,
            event_types: settings.event_types,
            bucket_filter: settings.bucket_filter,
            object_prefix_filter: settings.object_prefix_filter,
            enabled: settings.enabled,
            created_at: record.created_at,
            health: WebhookHealth {
                state,
                consecutive_failures: health.consecutive_failures,
                last_success_at: health.last_success_at,
                last_error: Some(health.last_error.clone()).filter(|error| !error.is_empty()),
                oldest_pending_at: *oldest_pending,
                pending: health.pending,
                lost: losses.events,
                lost_since: losses.since,
            },
        }
    }
}
