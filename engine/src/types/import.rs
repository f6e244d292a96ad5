//! Imports of versions from another store: plain values of the engine's public interface.

use crate::types::object::ChecksumAlgorithm;
use cairn_model::{Etag, ImportedId, Timestamp, VersionName};

/// The identity of an imported version at its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportedIdentity {
    /// Its id; `None` for the null version of its key.
    pub id: Option<ImportedId>,
    /// The time when it was written. Gives the version its place among the other imported versions of the key.
    pub last_modified: Timestamp,
    /// Its entity tag; `None` for the one that its content has here.
    pub etag: Option<Etag>,
    /// Whether the tag need not be that of the parts: it is the source's own.
    pub is_etag_opaque: bool,
}

impl ImportedIdentity {
    /// Returns the version as clients name it.
    #[must_use]
    pub fn version_name(&self) -> VersionName {
        self.id.map_or(VersionName::Null, VersionName::Imported)
    }
}

/// A checksum that was computed from the parts of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartsDigest {
    /// The algorithm of the upload.
    pub algorithm: ChecksumAlgorithm,
    /// The digest of the object.
    pub digest: Vec<u8>,
    /// The entity tag of an object of these parts. If a part has been replaced since, the import is refused.
    pub etag: Etag,
}

/// The outcome of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportOutcome {
    /// The version was written.
    Created,
    /// A null version that had been imported before was replaced.
    Replaced,
    /// The same version exists. Nothing was changed.
    Unchanged,
    /// A client has written the null version of the key here. Nothing was changed.
    Kept,
}
