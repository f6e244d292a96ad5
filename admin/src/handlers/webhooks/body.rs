//! JSON forms of webhooks, deliveries and tests.

use cairn_api::{Delivery, TestStep, Time, Webhook, WebhookHealth, WebhookTest};
use cairn_webhooks::DeliveryEntry;
use cairn_webhooks::client::Probe;

/// Returns the body of a webhook, without its secret.
pub(super) fn webhook_body(webhook: &cairn_webhooks::Webhook) -> Webhook {
    let health = &webhook.health;
    Webhook {
        id: webhook.id.to_string().into(),
        target_url: webhook.target_url.clone().into(),
        event_types: webhook.event_types.iter().map(|kind| kind.name().into()).collect(),
        bucket_filter: webhook.bucket_filter.clone().map(Into::into),
        object_prefix_filter: webhook.object_prefix_filter.clone(),
        enabled: webhook.enabled,
        created_at: webhook.created_at.into(),
        health: WebhookHealth {
            state: health.state.name().into(),
            consecutive_failures: health.consecutive_failures,
            last_success_at: health.last_success_at.map(Time::from),
            last_error: health.last_error.clone(),
            oldest_pending_at: health.oldest_pending_at.map(Time::from),
            pending: health.pending,
            lost: health.lost,
            lost_since: health.lost_since.map(Time::from),
            redeliver_command: health
                .lost_since
                .map(|since| format!("cairn webhook redeliver {} --since {}", webhook.id, Time::from(since))),
        },
    }
}

/// Returns the body of an attempt, or of a delivery that waits or was dropped.
pub(super) fn delivery_body(entry: DeliveryEntry) -> Delivery {
    Delivery {
        id: entry.id.to_string().into(),
        webhook_id: entry.webhook_id.to_string().into(),
        event_id: entry.event_id.to_string().into(),
        event_type: entry.event_type.name().into(),
        attempt: entry.attempt,
        status: entry.status.name().into(),
        http_status: entry.http_status,
        timestamp: entry.timestamp.into(),
        success: entry.success,
        error: entry.error,
        next_attempt_at: entry.next_attempt_at.map(Time::from),
        redelivery: entry.redelivery,
        event_lost: None,
        bucket: None,
        object: None,
    }
}

/// Returns the body of the result of a test.
pub(super) fn test_body(probe: Probe) -> WebhookTest {
    let steps = probe.steps.into_iter().map(|step| TestStep {
        step: step.step.name().into(),
        ok: step.ok,
        detail: step.detail,
        milliseconds: u64::try_from(step.duration.as_millis()).unwrap_or(u64::MAX),
    });
    let attempt = &probe.attempt;
    WebhookTest { delivered: attempt.succeeded(), http_status: attempt.http_status, steps: steps.collect() }
}
