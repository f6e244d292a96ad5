//! Version ids and delete markers in requests and responses.
//!
//! Source: "How S3 Versioning works" and "Working with delete markers" (AWS). A bucket that never had versioning shows
//! no version ids. Its objects have the version `null`, which clients may name.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::object_lock;
use crate::request::query::Query;
use cairn_engine::{Bucket, EngineError, ObjectLock, Versioning};
use cairn_http1::{Method, ResponseHead, http_date, iso8601_millis};
use cairn_model::VersionName;

/// The parameter that names a version.
pub(crate) const VERSION_ID: &str = "versionId";
/// The header that names the version of a response.
pub(crate) const VERSION_HEADER: &str = "x-amz-version-id";
/// The header that marks a delete marker.
pub(crate) const MARKER_HEADER: &str = "x-amz-delete-marker";

/// The message of AWS about an id that no version can have.
pub(crate) const INVALID_ID: &str = "Invalid version id specified";

/// Returns the version that the request names; `None`: the current one.
///
/// # Errors
/// `InvalidArgument` for an empty or malformed id.
pub(crate) fn requested(query: &Query<'_>) -> S3Result<Option<VersionName>> {
    query.get(VERSION_ID).map(|text| parse(VERSION_ID, text)).transpose()
}

/// Parses a version id. An error names `argument`.
///
/// # Errors
/// `InvalidArgument`.
pub(crate) fn parse(argument: &'static str, text: &str) -> S3Result<VersionName> {
    VersionName::parse(text).ok_or_else(|| {
        let message = if text.is_empty() { "Version id cannot be the empty string" } else { INVALID_ID };
        S3Error::invalid_argument(argument, text, message)
    })
}

/// Writes the id of a version, if the bucket has ever kept versions.
pub(crate) fn write_id(head: &mut ResponseHead, bucket: &Bucket, version: VersionName) {
    if bucket.versioning() != Versioning::Unversioned {
        head.header(VERSION_HEADER, version.to_string());
    }
}

/// Writes the lock of a version.
pub(crate) fn write_lock(head: &mut ResponseHead, lock: &ObjectLock) {
    if let Some(retention) = lock.retention {
        head.header("x-amz-object-lock-mode", retention.mode.name());
        head.header("x-amz-object-lock-retain-until-date", iso8601_millis(retention.until.0));
    }
    if let Some(hold) = lock.legal_hold {
        head.header("x-amz-object-lock-legal-hold", object_lock::hold_name(hold));
    }
}

/// Returns the error for tags that the engine could not return or change, or an ACL that it could not change. A delete marker
/// has neither, also if it is the current version.
pub(crate) fn subresource_error(
    error: EngineError,
    requested: Option<VersionName>,
    method: &Method,
) -> S3Error {
    let requested = match error {
        EngineError::DeleteMarker { version, .. } => Some(version),
        _ => requested,
    };
    read_error(error, requested, method)
}

/// Returns the error for a version that the engine could not return. An id that only an imported version could have, and
/// that none has, is answered like a malformed one. `requested` is `None` for the current version.
pub(crate) fn read_error(error: EngineError, requested: Option<VersionName>, method: &Method) -> S3Error {
    match (error, requested) {
        (EngineError::DeleteMarker { version, .. }, None) => S3Error::new(ErrorCode::NoSuchKey)
            .header(MARKER_HEADER, "true")
            .header(VERSION_HEADER, version.to_string()),
        (EngineError::DeleteMarker { version, last_modified }, Some(_)) => {
            S3Error::new(ErrorCode::MethodNotAllowed)
                .element("Method", method.as_str())
                .element("ResourceType", "DeleteMarker")
                .header("allow", "DELETE")
                .header(MARKER_HEADER, "true")
                .header(VERSION_HEADER, version.to_string())
                .header("last-modified", http_date(last_modified.seconds()).to_string())
        }
        (EngineError::NoSuchVersion | EngineError::NoSuchKey, Some(version)) if !version.is_expected() => {
            S3Error::invalid_argument(VERSION_ID, &version.to_string(), INVALID_ID)
        }
        (EngineError::NoSuchVersion | EngineError::NoSuchKey, Some(version)) => {
            S3Error::new(ErrorCode::NoSuchVersion).element("VersionId", version.to_string())
        }
        (error, _) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{read_error, requested};
    use crate::request::query::Query;
    use cairn_engine::EngineError;
    use cairn_http1::Method;
    use cairn_model::{Timestamp, VersionId, VersionName};

    #[test]
    fn invalid_version_ids_are_refused() {
        let version = |raw: &str| requested(&Query::parse(Some(raw)).expect("parses"));
        assert_eq!(version("x=1").expect("ok"), None);
        assert_eq!(version("versionId=null").expect("ok"), Some(VersionName::Null));
        let ten = Some(VersionName::Id(VersionId(10)));
        assert_eq!(version("versionId=000000000000000a").expect("ok"), ten);
        for raw in ["versionId", "versionId=", "versionId=%2F", "versionId=a+b"] {
            assert_eq!(version(raw).expect_err(raw).code(), "InvalidArgument");
        }
        for raw in ["versionId=x", "versionId=000000000000000A"] {
            let name = version(raw).expect("an imported version may have it");
            let refused = read_error(EngineError::NoSuchVersion, name, &Method::GET);
            assert_eq!((refused.status(), refused.code()), (400, "InvalidArgument"));
        }
        let uuid = version("versionId=2f6f7a1e-38a1-4f4a-9b43-5c2f8c7d1e00").expect("a UUID");
        assert_eq!(read_error(EngineError::NoSuchVersion, uuid, &Method::GET).code(), "NoSuchVersion");
    }

    #[test]
    fn delete_marker_is_404_as_current_and_405_by_id() {
        let marker = VersionName::Id(VersionId(10));
        let error =
            || EngineError::DeleteMarker { version: marker, last_modified: Timestamp(784_111_777_123) };
        let current = read_error(error(), None, &Method::GET);
        assert_eq!((current.status(), current.code()), (404, "NoSuchKey"));
        let named = read_error(error(), Some(marker), &Method::GET);
        assert_eq!((named.status(), named.code()), (405, "MethodNotAllowed"));
        for refused in [&current, &named] {
            let headers = refused.headers();
            assert!(headers.contains(&("x-amz-delete-marker", "true".to_owned())));
            assert!(headers.contains(&("x-amz-version-id", "000000000000000a".to_owned())));
        }
        assert!(named.headers().contains(&("allow", "DELETE".to_owned())));
        assert!(named.headers().contains(&("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT".to_owned())));
    }

    #[test]
    fn unknown_version_and_unknown_key_differ() {
        for error in [EngineError::NoSuchKey, EngineError::NoSuchVersion] {
            let refused = read_error(error, Some(VersionName::Null), &Method::GET);
            assert_eq!((refused.status(), refused.code()), (404, "NoSuchVersion"));
        }
        assert_eq!(read_error(EngineError::NoSuchKey, None, &Method::GET).code(), "NoSuchKey");
    }
}
