//! The object or version that a request names, and its read errors.

use std::sync::Arc;

use cairn_engine::{Bucket, EngineError};
use cairn_model::{ObjectKey, VersionName};

use crate::call::Call;
use crate::error::AdminError;

/// A bucket, a key, and a version; without one, the current version.
pub(crate) struct ObjectRef {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) key: ObjectKey,
    pub(crate) version: Option<VersionName>,
}

impl ObjectRef {
    /// Returns the object of a request: bucket and key of the path, version of the query. The query may have no
    /// parameter other than `version_id`.
    ///
    /// # Errors
    /// `INVALID_BUCKET_NAME`, `BUCKET_NOT_FOUND`, `INVALID_REQUEST`, `VERSION_NOT_FOUND`.
    pub(crate) fn of(call: &Call<'_, '_>) -> Result<Self, AdminError> {
        Ok(Self { bucket: call.bucket()?, key: call.key()?, version: call.version()? })
    }

    /// Maps an error of a read. Damaged data and failures of the device are logged and audited.
    pub(crate) fn read_error(&self, call: &Call<'_, '_>, error: EngineError) -> AdminError {
        if let EngineError::Corrupt(_) | EngineError::Io(_) = error {
            call.read_audit().failed(error.to_string());
            return AdminError::Internal;
        }
        self.source_error(error)
    }

    /// Maps an error of a read that is part of a change, whose failure is audited in any case.
    ///
    /// A delete marker counts as a missing object, or as a missing version if the request named it.
    pub(crate) fn source_error(&self, error: EngineError) -> AdminError {
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
