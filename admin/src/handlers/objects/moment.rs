//! The parameter `at`: objects as they were at a moment.

use cairn_engine::{Bucket, Versioning};
use cairn_model::{OBJECT_KEY_BYTES_MAX, Timestamp};

use super::object_ref::ObjectRef;
use crate::call::Call;
use crate::error::AdminError;

/// The parameter that names the moment.
pub(crate) const AT: &str = "at";
const VERSION_ID: &str = "version_id";

/// Refuses a bucket that never had versioning: it has no past.
///
/// # Errors
/// `INVALID_BUCKET_STATE`.
pub(crate) fn require_versions(bucket: &Bucket) -> Result<(), AdminError> {
    if bucket.versioning() == Versioning::Unversioned {
        let message = "the bucket never had versioning: what was overwritten or deleted is not kept";
        return Err(AdminError::InvalidBucketState(message));
    }
    Ok(())
}

/// Refuses a prefix that is longer than described.
///
/// # Errors
/// `INVALID_REQUEST`.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), AdminError> {
    if prefix.chars().count() > OBJECT_KEY_BYTES_MAX {
        return Err(AdminError::invalid(format!("prefix: has more than {OBJECT_KEY_BYTES_MAX} characters")));
    }
    Ok(())
}

impl ObjectRef {
    /// Returns the object of a request as [`ObjectRef::of`]; the query may have `at` in place of `version_id`.
    ///
    /// # Errors
    /// As [`ObjectRef::of`]; `OBJECT_NOT_FOUND` if there was none at that moment; `INVALID_BUCKET_STATE`.
    pub(crate) fn with_moment(call: &Call<'_, '_>) -> Result<Self, AdminError> {
        let query = &call.parameters;
        let Some(at) = query.time(AT)? else {
            let (bucket, key) = (call.bucket()?, call.key()?);
            let version = query.text(VERSION_ID).map(crate::request::names::version_name).transpose()?;
            return Ok(Self { bucket, key, version });
        };
        if query.text(VERSION_ID).is_some() {
            return Err(AdminError::invalid("at and version_id cannot be given together"));
        }
        Self::at(call, at)
    }

    fn at(call: &Call<'_, '_>, at: Timestamp) -> Result<Self, AdminError> {
        let (bucket, key) = (call.bucket()?, call.key()?);
        require_versions(&bucket)?;
        let version = Some(call.engine()?.version_at(&bucket, &key, at)?);
        Ok(Self { bucket, key, version })
    }
}
