//! JSON forms of webhooks, deliveries and tests.

use cairn_http1::iso8601_millis;
use cairn_model::Timestamp;
use cairn_webhooks::client::Probe;
use cairn_webhooks::{DeliveryEntry, Webhook};
use serde::Serialize;

fn time(time: Timestamp) -> String {
    iso8601_millis(time.0)
}

/// JSON form of a webhook, without its secret.
#[derive(Serialize)]
pub(super) struct WebhookBody {
    id: String,
    target_url: String,
    event_types: Vec<&'static str>,
    bucket_filter: Option<String>,
    object_prefix_filter: Option<String>,
    enabled: bool,
    created_at: String,
    health: HealthBody,
}

#[derive(Serialize)]
struct HealthBody {
    state: &'static str,
    consecutive_failures: u32,
    last_success_at: Option<String>,
    last_error: Option<String>,
    oldest_pending_at: Option<String>,
    pending: u64,
}

impl From<&Webhook> for WebhookBody {
    fn from(webhook: &Webhook) -> Self {
        let health = &webhook.health;
        Self {
            id: webhook.id.to_string(),
            target_url: webhook.target_url.clone(),
            event_types: webhook.event_types.iter().map(|kind| kind.name()).collect(),
            bucket_filter: webhook.bucket_filter.clone(),
            object_prefix_filter: webhook.object_prefix_filter.clone(),
            enabled: webhook.enabled,
            created_at: time(webhook.created_at),
            health: HealthBody {
                state: health.state.name(),
                consecutive_failures: health.consecutive_failures,
                last_success_at: health.last_success_at.map(time),
                last_error: health.last_error.clone(),
                oldest_pending_at: health.oldest_pending_at.map(time),
                pending: health.pending,
            },
        }
    }
}

/// JSON form of an attempt, or of a delivery that waits or was dropped.
#[derive(Serialize)]
pub(super) struct DeliveryBody<'d> {
    id: String,
    webhook_id: String,
    event_id: String,
    event_type: &'static str,
    attempt: u8,
    status: &'static str,
    http_status: Option<u16>,
    timestamp: String,
    success: bool,
    error: Option<&'d str>,
    next_attempt_at: Option<String>,
    redelivery: bool,
}

impl<'d> From<&'d DeliveryEntry> for DeliveryBody<'d> {
    fn from(entry: &'d DeliveryEntry) -> Self {
        Self {
            id: entry.id.to_string(),
            webhook_id: entry.webhook_id.to_string(),
            event_id: entry.event_id.to_string(),
            event_type: entry.event_type.name(),
            attempt: entry.attempt,
            status: entry.status.name(),
            http_status: entry.http_status,
            timestamp: time(entry.timestamp),
            success: entry.success,
            error: entry.error.as_deref(),
            next_attempt_at: entry.next_attempt_at.map(time),
            redelivery: entry.redelivery,
        }
    }
}

/// JSON form of the result of a test.
#[derive(Serialize)]
pub(super) struct TestBody<'t> {
    delivered: bool,
    http_status: Option<u16>,
    steps: Vec<StepBody<'t>>,
}

#[derive(Serialize)]
struct StepBody<'t> {
    step: &'static str,
    ok: bool,
    detail: &'t str,
    milliseconds: u64,
}

impl TestBody<'_> {
    /// Returns the audit detail.
    pub(super) const fn detail(&self) -> &'static str {
        if self.delivered { "delivered" } else { "not delivered" }
    }
}

impl<'t> From<&'t Probe> for TestBody<'t> {
    fn from(probe: &'t Probe) -> Self {
        let steps = probe.steps.iter().map(|step| StepBody {
            step: step.step.name(),
            ok: step.ok,
            detail: &step.detail,
            milliseconds: u64::try_from(step.duration.as_millis()).unwrap_or(u64::MAX),
        });
        let attempt = &probe.attempt;
        Self { delivered: attempt.succeeded(), http_status: attempt.http_status, steps: steps.collect() }
    }
}
