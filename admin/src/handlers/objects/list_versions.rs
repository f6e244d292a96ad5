//! `GET /api/v1/buckets/{bucket}/object-versions`: pages of all versions and delete markers.
//!
//! They are in key order, the newest version of a key first.

use cairn_api::{ObjectVersion, VersionPage};
use cairn_engine::{ListVersions, ListedVersion, VersionPosition};
use cairn_model::{u64_of, usize_of};
use http::StatusCode;

use super::lock::retention_body;
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::LIST_ENTRIES_MAX;
use crate::reply::Reply;
use crate::request::names::version_name;
use crate::request::query::Parameters;

fn version_body(version: ListedVersion) -> ObjectVersion {
    let ListedVersion { object, name, is_latest, is_delete_marker, lock } = version;
    ObjectVersion {
        imported: object.version.is_imported(),
        key: object.key.into(),
        version_id: name.to_string().into(),
        is_latest,
        is_delete_marker,
        size: object.size,
        etag: (!is_delete_marker).then(|| object.etag.to_string().into()),
        last_modified: object.last_modified.into(),
        retention: lock.retention.map(retention_body),
        legal_hold: lock.legal_hold == Some(true),
    }
}

pub(crate) async fn list_versions(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let query = &call.parameters;
    let limit = query.number("limit", 1..=u64_of(LIST_ENTRIES_MAX))?;
    let list = ListVersions {
        prefix: query.text("prefix").unwrap_or_default().as_bytes(),
        delimiter: None,
        after: position(query)?,
        max: limit.map_or(LIST_ENTRIES_MAX, usize_of),
    };
    let page = call.engine()?.list_versions(&bucket, &list)?;
    let text = |key: Vec<u8>| Some(String::from_utf8_lossy(&key).into_owned());
    let (next_key_marker, next_version_id_marker) = match page.next {
        None => (None, None),
        Some(VersionPosition::AfterVersion(key, name)) => (text(key), Some(name.to_string())),
        Some(VersionPosition::AfterKey(key) | VersionPosition::AfterPrefix(key)) => (text(key), None),
    };
    let versions = page.versions.into_iter().map(version_body).collect();
    Reply::json(StatusCode::OK, &VersionPage { versions, next_key_marker, next_version_id_marker })
}

/// Returns the position after which the page begins: a version, or all versions of a key.
fn position(query: &Parameters) -> Result<Option<VersionPosition>, AdminError> {
    let key = query.text("key_marker").filter(|key| !key.is_empty()).map(|key| key.as_bytes().to_vec());
    match (key, query.text("version_id_marker")) {
        (None, None) => Ok(None),
        (Some(key), None) => Ok(Some(VersionPosition::AfterKey(key))),
        (None, Some(_)) => Err(AdminError::invalid("version_id_marker needs a key_marker")),
        (Some(key), Some(text)) => {
            let name = version_name(text)
                .map_err(|_| AdminError::invalid("version_id_marker is not a valid version id"))?;
            Ok(Some(VersionPosition::AfterVersion(key, name)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::position;
    use crate::routes::query_of;
    use cairn_engine::VersionPosition;
    use cairn_model::VersionName;

    #[test]
    fn markers_are_a_key_or_a_key_with_version() {
        let read = |query| position(&query_of("list_object_versions", query).expect("declared"));
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("key_marker=a"), Ok(Some(VersionPosition::AfterKey(b"a".to_vec()))));
        let version = VersionPosition::AfterVersion(b"a".to_vec(), VersionName::Null);
        assert_eq!(read("key_marker=a&version_id_marker=null"), Ok(Some(version)));
        for wrong in [
            "version_id_marker=null",
            "key_marker=a&version_id_marker=%2F",
            "key_marker=a&version_id_marker=",
        ] {
            assert_eq!(read(wrong).map_err(|error| error.code()), Err("INVALID_REQUEST"), "{wrong}");
        }
    }
}
