//! The process: health, readiness, capabilities, metrics.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::text::{BucketName, Time, text};

text! {
    /// The process accepts connections.
    HealthWord("const" = "ok");
    /// The readiness of a subsystem.
    ReadinessWord("enum" = ["ready", "not_ready"]);
    /// The compatibility mode: requests that AWS treats otherwise are refused, or answered as well as possible.
    S3Compatibility("enum" = ["strict", "extended"]);
    /// The kind of a metric, as Prometheus defines it.
    MetricKind("enum" = ["counter", "gauge", "histogram"]);
    /// A period that the history of metrics covers.
    HistoryPeriod("enum" = ["hour", "day", "month"]);
}

/// The health of the process: whether it accepts connections.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Health {
    pub status: HealthWord,
}

/// The readiness of the process: whether every subsystem is ready.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Readiness {
    pub status: ReadinessWord,
    /// The state of each subsystem, if one is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subsystems: Option<BTreeMap<String, ReadinessWord>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Conditions that need an operator while the service works, by subsystem.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notices: BTreeMap<String, String>,
}

/// The OpenAPI document.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct OpenApiDocument {
    pub openapi: String,
    pub info: BTreeMap<String, Value>,
    pub paths: BTreeMap<String, Value>,
    pub components: BTreeMap<String, Value>,
}

/// The capabilities of this build and configuration.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Capabilities {
    pub versioning: bool,
    pub webhooks: bool,
    pub events: bool,
    pub lifecycle: bool,
    pub sharing: bool,
    pub object_browser: bool,
    /// There is one node and one copy.
    #[schemars(extend("const" = false))]
    pub erasure_coding: bool,
}

/// Version and capabilities of the server.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct SystemInfo {
    pub name: String,
    pub version: String,
    pub status: ReadinessWord,
    pub s3_compatibility: S3Compatibility,
    /// The URL by which clients reach the data plane, without a slash at its end.
    #[schemars(extend("format" = "uri"))]
    pub s3_endpoint: String,
    pub capabilities: Capabilities,
    /// Conditions that need an operator while the service works, by subsystem, as in `/ready`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notices: BTreeMap<String, String>,
}

/// The number of values at or below a bound.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct MetricBucket {
    pub le: String,
    pub count: u64,
}

/// A value of a metric: a number, or a histogram.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("oneOf" = [{"required": ["value"]}, {"required": ["count", "sum", "buckets"]}]))]
pub struct MetricSample {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: MetricKind,
    pub help: String,
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buckets: Option<Vec<MetricBucket>>,
}

/// All metrics.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    pub metrics: Vec<MetricSample>,
}

/// Requests of one plane: counts and bytes of each interval, and its latency in seconds.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PlaneHistory {
    pub reads: Vec<u64>,
    pub writes: Vec<u64>,
    pub lists: Vec<u64>,
    pub other: Vec<u64>,
    pub client_errors: Vec<u64>,
    pub server_errors: Vec<u64>,
    pub bytes_in: Vec<u64>,
    pub bytes_out: Vec<u64>,
    #[schemars(inner(range(min = 0.0)))]
    pub latency_p50: Vec<Option<f64>>,
    #[schemars(inner(range(min = 0.0)))]
    pub latency_p99: Vec<Option<f64>>,
}

/// Bytes at the end of each interval.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct StorageHistory {
    pub logical_bytes: Vec<u64>,
    pub physical_bytes: Vec<u64>,
    pub available_bytes: Vec<u64>,
    pub capacity_bytes: Vec<u64>,
}

/// One bucket over the days; null on days without it.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct BucketDays {
    pub bucket: BucketName,
    /// Bytes of all versions and unfinished uploads.
    pub physical_bytes: Vec<Option<u64>>,
    pub objects: Vec<Option<u64>>,
}

/// The space of the last 90 days. Every list has one value for each day that has figures.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct StorageDays {
    /// The times of the figures: the latest of each day (UTC).
    #[schemars(length(max = 90))]
    pub time: Vec<Time>,
    pub capacity_bytes: Vec<u64>,
    pub available_bytes: Vec<u64>,
    /// The buckets with the most bytes, the largest first.
    #[schemars(length(max = 100))]
    pub buckets: Vec<BucketDays>,
    /// The sums of all other buckets.
    pub other_physical_bytes: Vec<u64>,
    pub other_objects: Vec<u64>,
}

/// The certificate of a plane.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CertificateExpiry {
    pub plane: String,
    pub expires_at: Time,
    /// Whether the files now hold one that cannot be used.
    pub refused: bool,
}

/// Something that is not shown until a time.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DismissedAttention {
    pub subject: String,
    pub until: Time,
    /// The principal that dismissed it.
    pub by: String,
}

/// The sources of the list of things that need attention, beside the other routes.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Attention {
    pub dismissed: Vec<DismissedAttention>,
    /// The times of the last backups, the oldest first.
    pub backups: Vec<Time>,
    pub certificates: Vec<CertificateExpiry>,
}

/// Something that is to be dismissed.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DismissAttention {
    #[schemars(length(min = 1, max = 256))]
    pub subject: String,
    /// The duration: a day unless given; 0 shows it again.
    #[schemars(range(max = 86_400))]
    pub seconds: Option<u64>,
}

/// The history of one period. Every list has one value for each interval.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct MetricHistory {
    pub period: HistoryPeriod,
    /// Length of the period, which began before the server if that was started later.
    pub period_seconds: u64,
    pub interval_seconds: u64,
    /// The start of the history: there is nothing earlier.
    pub started_at: Time,
    /// The ends of the intervals.
    pub time: Vec<Time>,
    /// The lengths of the intervals.
    pub seconds: Vec<f64>,
    #[schemars(extend("required" = ["data", "management", "console"]))]
    pub planes: BTreeMap<String, PlaneHistory>,
    pub storage: StorageHistory,
}
