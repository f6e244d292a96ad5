//! Imports of versions from another store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lifecycle::Tag;
use crate::objects::Retention;
use crate::optional::{or_default, present};
use crate::text::{EntityTag, Id, Time, UploadId};
use crate::verification::Proof;

/// A run that brings versions of another store into a bucket.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginImport {
    /// The source of the versions, for the audit trail: an address without credentials, in ASCII.
    #[schemars(length(min = 1, max = 1024), extend("pattern" = "^[!-~]+$"))]
    pub source: String,
    /// Whether storage events are written for the versions.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<bool>")]
    pub events: bool,
    /// Whether the run begins paused: the importer continues a paused run that a restart of the server has ended.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<bool>")]
    pub paused: bool,
}

/// A run that has begun.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct BegunImport {
    /// The other requests of the run name it.
    pub import_id: Id,
}

/// The outcome of an imported version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportOutcome {
    /// It was written.
    Created,
    /// It was written in place of a null version that had been imported before.
    Replaced,
    /// The same version exists.
    Unchanged,
    /// A client has written the null version here, and it stays.
    Kept,
    /// Its tags, retention or legal hold were changed.
    Changed,
}

/// The outcome of an import of one version.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ImportedVersion {
    pub outcome: ImportOutcome,
}

/// The outcomes of the versions of a batch, in the order of its requests.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ImportedVersions {
    #[schemars(length(max = 64))]
    pub versions: Vec<ImportResult>,
}

/// The outcome of a version of a batch: exactly one of the two is set.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ImportResult {
    pub outcome: Option<ImportOutcome>,
    pub error: Option<ImportRefusal>,
}

/// The error of a refused version of a batch.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ImportRefusal {
    /// The code of the error, as the route for one version answers it.
    pub code: String,
    pub message: String,
}

/// An upload whose parts will be an imported version.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ImportedUpload {
    pub upload_id: UploadId,
}

/// A part of such an upload.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ImportedPart {
    pub etag: EntityTag,
}

/// A change of an imported version. Members that are left out stay.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeImported {
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Tag>", length(max = 10))]
    pub tags: Option<Vec<Tag>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Retention")]
    pub retention: Option<Retention>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub legal_hold: Option<bool>,
}

/// The failure of the last request of a run that failed.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct ImportFailure {
    pub time: Time,
    /// Shortened if it is long.
    pub key: String,
    pub code: String,
    pub message: String,
}

/// A run that the server knows, and what has come in it.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ImportRun {
    pub import_id: Id,
    pub bucket: String,
    /// The source, as the importer has named it.
    pub source: String,
    pub principal: String,
    pub begun_at: Time,
    /// The time of the last request. Null if there was none.
    pub last_at: Option<Time>,
    /// Since when it is paused. Null if it is not.
    pub paused_at: Option<Time>,
    /// Versions and delete markers that were written.
    pub versions: u64,
    /// Versions that were here already, as the importer sent them.
    pub unchanged: u64,
    /// Bytes of content that were written, with those of parts.
    pub bytes: u64,
    /// Requests that were refused. The importer may have repeated them.
    pub failures: u64,
    pub last_failure: Option<ImportFailure>,
}

/// The recent throughput of all runs together.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ImportRate {
    pub interval_seconds: u64,
    /// The end of the last interval that is over.
    pub until: Time,
    /// Bytes of content of each interval, the oldest first. Those of a version or a part are counted when it has come.
    #[schemars(length(min = 60, max = 60))]
    pub bytes: Vec<u64>,
}

/// The latest runs.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ImportList {
    #[schemars(length(max = 100))]
    pub imports: Vec<ImportRun>,
    /// The latest reports that were signed since the service was started, the newest first.
    #[schemars(length(max = 8))]
    pub reports: Vec<Proof>,
    pub rate: ImportRate,
    /// The start of the service: earlier runs are not known.
    pub since: Time,
}
