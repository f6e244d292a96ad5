//! Imports of versions from another store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lifecycle::Tag;
use crate::objects::Retention;
use crate::text::{EntityTag, Id, UploadId};

/// A run that brings versions of another store into a bucket.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginImport {
    /// Where the versions come from, for the audit trail: an address without credentials, in ASCII.
    #[schemars(length(min = 1, max = 1024), extend("pattern" = "^[!-~]+$"))]
    pub source: String,
    /// Whether storage events are written for the versions.
    #[serde(default)]
    pub events: bool,
}

/// A run that has begun.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct BegunImport {
    /// The other requests of the run name it.
    pub import_id: Id,
}

/// What became of a version that was imported.
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

/// What changes of an imported version. Members that are left out stay.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeImported {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10))]
    pub tags: Option<Vec<Tag>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legal_hold: Option<bool>,
}
