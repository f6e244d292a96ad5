//! Lifecycle rules of buckets, their previews, and the worker that applies them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{Id, ObjectKey, Time, VersionId, text};

/// A tag of an object or bucket. Letters, digits, spaces and + - = . _ : / @. A key does not begin with aws:.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tag {
    #[schemars(length(min = 1, max = 128))]
    pub key: String,
    #[schemars(length(max = 256))]
    pub value: String,
}

/// The tags of a bucket. In a request, they replace all others.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BucketTags {
    #[schemars(length(max = 50))]
    pub tags: Vec<Tag>,
}

/// A new rule, or what replaces one. At least one action must be set.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = [
    {"required": ["expiration"], "properties": {"expiration": {"type": "integer"}}},
    {"required": ["noncurrent_version_expiration"], "properties": {"noncurrent_version_expiration": {"type": "integer"}}},
    {"required": ["expired_delete_markers"], "properties": {"expired_delete_markers": {"const": true}}},
    {"required": ["abort_incomplete_multipart_upload"], "properties": {"abort_incomplete_multipart_upload": {"type": "integer"}}},
], "allOf" = [{"anyOf": [
    {"properties": {"tags": {"type": ["array", "null"], "maxItems": 0}}},
    {"properties": {
        "expired_delete_markers": {"enum": [false, null]},
        "abort_incomplete_multipart_upload": {"type": "null"},
    }},
]}, {"anyOf": [
    {"properties": {"newer_noncurrent_versions": {"enum": [0, null]}}},
    {"required": ["noncurrent_version_expiration"], "properties": {"noncurrent_version_expiration": {"type": "integer"}}},
]}]))]
pub struct SetLifecycleRule {
    /// At most 1024 bytes of UTF-8. An empty prefix matches every key.
    #[schemars(length(max = 1024))]
    pub prefix: String,
    /// The rule is about versions that have all of these tags. Not with expired_delete_markers or
    /// abort_incomplete_multipart_upload.
    #[schemars(length(max = 10))]
    pub tags: Option<Vec<Tag>>,
    /// Days after which a current object expires.
    #[schemars(range(min = 1, max = 36500))]
    pub expiration: Option<u32>,
    /// Days after which a version is removed that is no longer current.
    #[schemars(range(min = 1, max = 36500))]
    pub noncurrent_version_expiration: Option<u32>,
    /// The number of noncurrent versions of a key that are kept, however old.
    #[schemars(range(max = 1000))]
    pub newer_noncurrent_versions: Option<u32>,
    /// Removes delete markers that are the only version of their key.
    pub expired_delete_markers: Option<bool>,
    /// Days after which an unfinished multipart upload is aborted, counted from when it was begun.
    #[schemars(range(min = 1, max = 36500))]
    pub abort_incomplete_multipart_upload: Option<u32>,
    pub enabled: Option<bool>,
}

/// The status of a rule: what it has done, and when it is applied next.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct LifecycleRuleStatus {
    pub last_run_started_at: Option<Time>,
    pub last_run_finished_at: Option<Time>,
    pub next_run_at: Option<Time>,
    pub next_due_at: Option<Time>,
    pub examined: u64,
    pub expired_objects: u64,
    pub delete_markers_written: u64,
    pub noncurrent_versions_removed: u64,
    pub delete_markers_removed: u64,
    pub multipart_uploads_aborted: u64,
    pub skipped_locked: u64,
    pub failed: u64,
    pub bytes_freed: u64,
    pub last_error: Option<String>,
}

/// A lifecycle rule with its status.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct LifecycleRule {
    pub id: Id,
    /// The ID that an S3 client gave the rule. Null: in S3 it is the id.
    #[schemars(length(max = 255))]
    pub s3_id: Option<String>,
    pub prefix: String,
    #[schemars(length(max = 10))]
    pub tags: Vec<Tag>,
    #[schemars(range(min = 1, max = 36500))]
    pub expiration: Option<u32>,
    #[schemars(range(min = 1, max = 36500))]
    pub noncurrent_version_expiration: Option<u32>,
    #[schemars(range(max = 1000))]
    pub newer_noncurrent_versions: u32,
    pub expired_delete_markers: bool,
    #[schemars(range(min = 1, max = 36500))]
    pub abort_incomplete_multipart_upload: Option<u32>,
    pub enabled: bool,
    pub created_at: Time,
    pub status: LifecycleRuleStatus,
}

/// The members that a client sets.
impl From<LifecycleRule> for SetLifecycleRule {
    fn from(rule: LifecycleRule) -> Self {
        Self {
            prefix: rule.prefix,
            tags: Some(rule.tags),
            expiration: rule.expiration,
            noncurrent_version_expiration: rule.noncurrent_version_expiration,
            newer_noncurrent_versions: Some(rule.newer_noncurrent_versions),
            expired_delete_markers: Some(rule.expired_delete_markers),
            abort_incomplete_multipart_upload: rule.abort_incomplete_multipart_upload,
            enabled: Some(rule.enabled),
        }
    }
}

/// The lifecycle rules of a bucket.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct LifecycleRuleList {
    pub rules: Vec<LifecycleRule>,
}

text! {
    /// The action of a rule on a version.
    LifecycleAction("enum" = ["write_delete_marker", "remove_object", "remove_version", "remove_delete_marker"]);
}

/// A version that a rule would act on.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PlannedRemoval {
    pub key: ObjectKey,
    pub version_id: VersionId,
    pub size: u64,
    pub due_at: Time,
    pub action: LifecycleAction,
}

/// A preview of a rule: what it would do now.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct LifecyclePreview {
    /// False: only a part of the bucket was examined.
    pub complete: bool,
    pub current_objects: u64,
    pub current_bytes: u64,
    pub noncurrent_versions: u64,
    pub noncurrent_bytes: u64,
    pub delete_markers: u64,
    pub locked: u64,
    /// Unfinished uploads that the rule would abort. They are not in the sample.
    pub multipart_uploads: u64,
    /// Bytes of their parts.
    pub multipart_bytes: u64,
    pub next_due_at: Option<Time>,
    #[schemars(length(max = 100))]
    pub sample: Vec<PlannedRemoval>,
}

/// The state of the worker that applies the rules of all buckets.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct LifecycleStatus {
    pub enabled: bool,
    pub paused: bool,
    /// The reason why it is paused.
    pub reason: Option<String>,
    pub last_run_started_at: Option<Time>,
    pub last_run_finished_at: Option<Time>,
    pub next_run_at: Option<Time>,
    pub oldest_overdue_seconds: u64,
    pub indexes_in_progress: u64,
    pub last_error: Option<String>,
}
