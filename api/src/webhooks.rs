//! Webhooks and their deliveries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::events::EventType;
use crate::optional::{or_default, or_yes, present, removable, yes};
use crate::text::{BucketName, Id, Time, text};

text! {
    /// The URL to which deliveries are posted. Not every URL is accepted.
    TargetUrl();
    /// A key prefix.
    PrefixFilter("maxLength" = 255);
    /// Signs deliveries. Returned only once.
    SigningSecret("pattern" = "^whsec_[A-Za-z0-9+/]{43}=$");
    /// The state of deliveries.
    WebhookState("enum" = ["ok", "failing", "paused"]);
    /// The status of a delivery.
    DeliveryStatus("enum" = ["pending", "succeeded", "failed", "dropped"]);
    /// A step of a test.
    TestStepName("enum" = ["resolve", "check", "connect", "tls", "response"]);
}

/// The health of the deliveries of a webhook.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct WebhookHealth {
    pub state: WebhookState,
    pub consecutive_failures: u32,
    pub last_success_at: Option<Time>,
    pub last_error: Option<String>,
    pub oldest_pending_at: Option<Time>,
    pub pending: u64,
    /// Events that were lost: the last attempt failed, and none has succeeded since. They can be sent again while they are
    /// stored.
    pub lost: u64,
    /// The time of the oldest lost event.
    pub lost_since: Option<Time>,
    /// The command that sends the lost events again. Null if none was lost.
    pub redeliver_command: Option<String>,
}

/// A webhook, without its secret.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Webhook {
    pub id: Id,
    pub target_url: TargetUrl,
    #[schemars(length(min = 1, max = 8), extend("uniqueItems" = true))]
    pub event_types: Vec<EventType>,
    pub bucket_filter: Option<BucketName>,
    pub object_prefix_filter: Option<String>,
    pub enabled: bool,
    pub created_at: Time,
    pub health: WebhookHealth,
}

/// All webhooks.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct WebhookList {
    pub webhooks: Vec<Webhook>,
}

/// A new webhook.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateWebhook {
    pub target_url: TargetUrl,
    #[schemars(length(min = 1, max = 8), extend("uniqueItems" = true))]
    pub event_types: Vec<EventType>,
    pub bucket_filter: Option<BucketName>,
    pub object_prefix_filter: Option<PrefixFilter>,
    #[serde(default = "yes", deserialize_with = "or_yes")]
    #[schemars(with = "Option<bool>")]
    pub enabled: bool,
}

/// Changes of a webhook. Members that are absent stay; a filter that is null is removed.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateWebhook {
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TargetUrl")]
    pub target_url: Option<TargetUrl>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<EventType>", length(min = 1, max = 8), extend("uniqueItems" = true))]
    pub event_types: Option<Vec<EventType>>,
    #[serde(default, deserialize_with = "removable", skip_serializing_if = "Option::is_none")]
    pub bucket_filter: Option<Option<BucketName>>,
    #[serde(default, deserialize_with = "removable", skip_serializing_if = "Option::is_none")]
    pub object_prefix_filter: Option<Option<PrefixFilter>>,
}

/// A new webhook, with its secret.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NewWebhook {
    pub subscription: Webhook,
    pub signing_secret: SigningSecret,
}

/// A rotation of a secret: how long deliveries are signed with both.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateSecret {
    #[schemars(range(max = 604_800))]
    pub overlap_seconds: Option<u64>,
}

/// A new signing secret.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RotatedSecret {
    pub signing_secret: SigningSecret,
    pub previous_expires_at: Time,
}

/// A step of a test delivery.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct TestStep {
    pub step: TestStepName,
    pub ok: bool,
    pub detail: String,
    pub milliseconds: u64,
}

/// The result of a test delivery.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct WebhookTest {
    pub delivered: bool,
    pub http_status: Option<u16>,
    pub steps: Vec<TestStep>,
}

/// The selection of events of a period that are delivered again.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Redelivered {
    #[default]
    Failed,
    All,
}

/// A period whose events are delivered again.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedeliverEvents {
    pub since: Time,
    pub until: Option<Time>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Redelivered>")]
    pub only: Redelivered,
}

/// The number of deliveries that were queued.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct QueuedDeliveries {
    pub queued: u64,
}

/// An attempt, or a delivery that waits or was dropped.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    pub id: Id,
    pub webhook_id: Id,
    pub event_id: Id,
    pub event_type: EventType,
    pub attempt: u8,
    pub status: DeliveryStatus,
    pub http_status: Option<u16>,
    pub timestamp: Time,
    pub success: bool,
    pub error: Option<String>,
    pub next_attempt_at: Option<Time>,
    pub redelivery: bool,
    /// With details: whether the last attempt of the event failed, and no delivery of it has succeeded since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_lost: Option<bool>,
    /// With details: the bucket of the event. Absent if the event is no longer kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// With details: the key of the event's object. Absent for events of buckets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

/// A page of the delivery log, the latest entry first. next_time and next_id are null on the last page.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DeliveryPage {
    pub deliveries: Vec<Delivery>,
    pub next_time: Option<Time>,
    pub next_id: Option<Id>,
}
