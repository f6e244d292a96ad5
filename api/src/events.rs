//! Storage events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{Id, Time, text};

text! {
    /// The kind of a storage event.
    EventType("enum" = [
        "bucket.created", "bucket.deleted", "object.created", "object.updated", "object.deleted", "object.restored",
        "multipart.completed", "multipart.aborted"
    ]);
    /// The order of events: the oldest or the latest first.
    EventOrder("enum" = ["asc", "desc"]);
    /// The reason why the store changed something itself.
    EventReason("enum" = ["lifecycle"]);
}

/// A storage event.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct StorageEvent {
    pub id: Id,
    #[serde(rename = "type")]
    pub kind: EventType,
    pub time: Time,
    pub bucket: String,
    /// The key. Absent for events of buckets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Absent for events of buckets, null for an upload that was aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-nullable" = true))]
    pub version_id: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    pub metadata: EventMetadata,
}

/// The members that depend on the event.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct EventMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The principal that changed the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Later changes of a key have greater ones.
    #[schemars(regex(pattern = "^[0-9a-f]{16}$"))]
    pub sequencer: String,
    /// Whether a delete marker was written (`object.deleted`) or permanently removed (`object.restored`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("const" = true))]
    pub delete_marker: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<EventReason>,
    /// The lifecycle rule that acted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_id: Option<String>,
    /// The event was made to test a webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<bool>,
}

/// A page, the oldest event first. next_time and next_id are null when nothing follows.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct EventPage {
    pub events: Vec<StorageEvent>,
    pub next_time: Option<Time>,
    pub next_id: Option<Id>,
}
