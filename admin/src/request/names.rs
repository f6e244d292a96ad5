//! Parses names of buckets, objects and versions.

use std::borrow::Cow;

use cairn_http1::decode;
use cairn_model::{BucketName, ObjectKey, VersionName};

use crate::error::AdminError;

/// Decodes a part of a path, which is percent-encoded.
///
/// # Errors
/// `INVALID_REQUEST` for an invalid percent-encoding.
pub(crate) fn decoded(sent: &str) -> Result<Cow<'_, str>, AdminError> {
    decode(sent).map_err(|error| AdminError::invalid(format!("the path is invalid: {error}")))
}

/// Parses a bucket name.
///
/// # Errors
/// `INVALID_BUCKET_NAME`, with the rule that the name breaks.
pub(crate) fn bucket_name(text: &str) -> Result<BucketName, AdminError> {
    BucketName::parse(text).map_err(|error| AdminError::InvalidBucketName(error.rule))
}

/// Parses an object key.
///
/// # Errors
/// `INVALID_REQUEST` when the key has an invalid length.
pub(crate) fn object_key(text: &str) -> Result<ObjectKey, AdminError> {
    ObjectKey::parse(text)
        .map_err(|_| AdminError::invalid("an object key must have 1 to 1024 bytes of UTF-8"))
}

/// Parses a version id.
///
/// # Errors
/// `INVALID_REQUEST` when it is empty; `VERSION_NOT_FOUND` when no version can have this id.
pub(crate) fn version_name(text: &str) -> Result<VersionName, AdminError> {
    if text.is_empty() {
        return Err(AdminError::invalid("version_id must not be empty"));
    }
    VersionName::parse(text).ok_or(AdminError::VersionNotFound)
}
