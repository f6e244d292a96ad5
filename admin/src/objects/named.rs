//! The object that a request names, and what it means that the engine does not give it.

use std::sync::Arc;

use cairn_engine::{Bucket, EngineError};
use cairn_model::{ObjectKey, VersionName};

use crate::call::Call;
use crate::error::AdminError;

/// Bucket and key of the path, and the version of the query; without one, the current version.
pub(crate) struct NamedObject {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) key: ObjectKey,
    pub(crate) version: Option<VersionName>,
}

impl NamedObject {
    /// What the request names. `version_id` is the only parameter that it may have.
    ///
    /// # Errors
    /// `INVALID_BUCKET_NAME`, `BUCKET_NOT_FOUND`, `INVALID_REQUEST`, `VERSION_NOT_FOUND`.
    pub(crate) fn of(call: &Call<'_, '_>) -> Result<Self, AdminError> {
        Ok(Self { bucket: call.bucket()?, key: call.key()?, version: call.version()? })
    }

    /// Why the version could not be read. What is stored and cannot be read goes into log and audit trail.
    pub(crate) fn read_error(&self, call: &Call<'_, '_>, error: EngineError) -> AdminError {
        if let EngineError::Corrupt(_) | EngineError::Io(_) = error {
            call.read_trail().failed(error.to_string());
            return AdminError::Internal;
        }
        self.missing(error)
    }

    /// As [`Self::read_error`], for changes: their failures are recorded anyway. A delete marker is an object that is not
    /// there, and no version with content.
    pub(crate) fn missing(&self, error: EngineError) -> AdminError {
        match error {
            EngineError::NoSuchKey | EngineError::NoSuchVersion | EngineError::DeleteMarker { .. }
                if self.version.is_some() =>
            {
                AdminError::VersionNotFound
            }
            error => error.into(),
        }
    }
}
