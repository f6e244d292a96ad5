//! Webhooks as callers see them.

use crate::id::WebhookId;
use crate::store::WebhookState;
use cairn_engine::EventType;
use cairn_model::Timestamp;

/// A client's request to create a webhook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewWebhook {
    /// The URL to which events are posted.
    pub target_url: String,
    /// The events, at least one type.
    pub event_types: Vec<EventType>,
    /// Only events of the bucket with this name.
    pub bucket_filter: Option<String>,
    /// Only events of objects whose key begins with this.
    pub object_prefix_filter: Option<String>,
    /// Whether events are delivered.
    pub enabled: bool,
}

/// A client's change of a webhook. What is `None` stays as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WebhookChange {
    /// The URL to which events are posted.
    pub target_url: Option<String>,
    /// The events, at least one type.
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
    /// The URL to which events are posted.
    pub target_url: String,
    /// The events.
    pub event_types: Vec<EventType>,
    /// Only events of the bucket with this name.
    pub bucket_filter: Option<String>,
    /// Only events of objects whose key begins with this.
    pub object_prefix_filter: Option<String>,
    /// Whether events are delivered.
    pub enabled: bool,
    /// The time when it was created.
    pub created_at: Timestamp,
    /// The health of deliveries.
    pub health: WebhookHealth,
}

/// The health of deliveries to a webhook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebhookHealth {
    /// A summary.
    pub state: HealthState,
    /// Failed attempts since the last success, or since the webhook was enabled or got another target.
    pub consecutive_failures: u32,
    /// The last success.
    pub last_success_at: Option<Timestamp>,
    /// The reason why the last failed attempt failed.
    pub last_error: Option<String>,
    /// The time when the oldest waiting delivery was queued.
    pub oldest_pending_at: Option<Timestamp>,
    /// Waiting deliveries.
    pub pending: u64,
    /// Events whose last attempt failed, and of which no delivery has succeeded since.
    pub lost: u64,
    /// The time of the oldest lost event.
    pub lost_since: Option<Timestamp>,
}

cairn_model::named_enum! {
    /// A summary of a webhook's health. Named as in the management API.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum HealthState {
        /// The last attempt succeeded, or there was none.
        Ok => "ok",
        /// The last attempt failed.
        Failing => "failing",
        /// The target does not answer, or with errors, and first attempts are held back.
        Paused => "paused",
    }
}

impl Webhook {
    /// Returns scheme, host and port of the target, as they were written. The path and the query may contain secrets.
    #[must_use]
    pub fn target_origin(&self) -> &str {
        let host = self.target_url.find("://").map_or(0, |scheme| scheme + "://".len());
        let end =
            self.target_url[host..].find(['/', '?']).map_or(self.target_url.len(), |length| host + length);
        &self.target_url[..end]
    }

    /// Returns the target with a mask in place of its path and query, for those who may not change the webhook.
    #[must_use]
    pub fn masked_target(&self) -> String {
        let origin = self.target_origin();
        match &self.target_url[origin.len()..] {
            "" | "/" => self.target_url.clone(),
            _ => format!("{origin}/…"),
        }
    }

    pub(crate) fn new(webhook: &WebhookState, is_held: bool) -> Self {
        let WebhookState { record, health, losses, .. } = webhook;
        let settings = record.settings.clone();
        let state = match health.consecutive_failures {
            _ if is_held => HealthState::Paused,
            0 => HealthState::Ok,
            _ => HealthState::Failing,
        };
        let (pending, oldest_pending_at) = webhook.waiting();
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
                oldest_pending_at,
                pending,
                lost: losses.events,
                lost_since: losses.since,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_and_query_of_a_target_are_masked() {
        for (target, origin, masked) in [
            ("https://example.com/hook/SECRET", "https://example.com", "https://example.com/…"),
            ("https://example.com?token=SECRET", "https://example.com", "https://example.com/…"),
            ("https://example.com:8443/?a=SECRET", "https://example.com:8443", "https://example.com:8443/…"),
            ("http://[::1]:80//SECRET", "http://[::1]:80", "http://[::1]:80/…"),
            ("https://example.com/", "https://example.com", "https://example.com/"),
            ("https://example.com", "https://example.com", "https://example.com"),
        ] {
            let health = WebhookHealth {
                state: HealthState::Ok,
                consecutive_failures: 0,
                last_success_at: None,
                last_error: None,
                oldest_pending_at: None,
                pending: 0,
                lost: 0,
                lost_since: None,
            };
            let webhook = Webhook {
                id: WebhookId::parse("019b76da-a87b-7abc-8707-070707070707").expect("an id"),
                target_url: target.to_owned(),
                event_types: Vec::new(),
                bucket_filter: None,
                object_prefix_filter: None,
                enabled: true,
                created_at: Timestamp(0),
                health,
            };
            assert_eq!(
                (webhook.target_origin(), webhook.masked_target().as_str()),
                (origin, masked),
                "{target}"
            );
        }
    }
}
