//! ListObjectVersions. Source: API Reference, ListObjectVersions.
//!
//! The engine fills a page; this file parses the request and writes the page. The next page starts after the last
//! version, named by key and version id, or after the last common prefix, named by the key marker.

use crate::access::account;
use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::{S3Error, S3Result};
use crate::headers::version;
use crate::ops::list_page::{self, ENTRY_BYTES};
use crate::ops::name_encoding::NameEncoding;
use crate::reply::Reply;
use crate::request::query::Query;
use crate::xml::writer::XmlWriter;
use cairn_engine::{Bucket, EngineError, ListVersions, ListedVersion, VersionPosition, VersionsPage};
use cairn_model::ObjectKey;
use std::sync::Arc;

const KEY_MARKER: &str = "key-marker";
const VERSION_MARKER: &str = "version-id-marker";

/// The parsed query.
#[derive(Debug)]
struct ListRequest<'a> {
    prefix: &'a str,
    delimiter: Option<&'a str>,
    max: usize,
    key_marker: &'a str,
    version_marker: &'a str,
    after: Option<VersionPosition>,
    encoding: NameEncoding,
}

pub(crate) fn list_object_versions(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let mut request = list_request(call.query, call.compatibility)?;
    refuse_unknown_marker(call, &bucket, &request)?;
    let list = ListVersions {
        prefix: request.prefix.as_bytes(),
        delimiter: request.delimiter.map(str::as_bytes),
        after: request.after.take(),
        max: request.max,
    };
    // A page with max 0 is never truncated, even if entries exist.
    let page =
        if request.max == 0 { VersionsPage::default() } else { call.engine.list_versions(&bucket, &list)? };
    Ok(Reply::xml(document(bucket.name.as_str(), &request, &page)?))
}

fn list_request<'a>(query: &'a Query<'_>, mode: Compatibility) -> S3Result<ListRequest<'a>> {
    let prefix = query.get("prefix").unwrap_or_default();
    let delimiter = query.get_non_empty("delimiter");
    let key_marker = query.get(KEY_MARKER).unwrap_or_default();
    let version_marker = query.get(VERSION_MARKER);
    let invalid = |message| S3Error::invalid_argument(VERSION_MARKER, version_marker.unwrap_or(""), message);
    let after = match version_marker {
        None => position_of_key(prefix, delimiter, key_marker, mode),
        Some("") => return Err(invalid("A version-id marker cannot be empty.")),
        Some(_) if key_marker.is_empty() => {
            return Err(invalid("A version-id marker cannot be specified without a key marker."));
        }
        Some(text) => {
            let name = version::parse(VERSION_MARKER, text)?;
            Some(VersionPosition::AfterVersion(key_marker.as_bytes().to_vec(), name))
        }
    };
    Ok(ListRequest {
        prefix,
        delimiter,
        max: list_page::max_keys(query, mode)?,
        key_marker,
        version_marker: version_marker.unwrap_or_default(),
        after,
        encoding: NameEncoding::parse(query.get("encoding-type"), mode)?,
    })
}

/// Refuses the id of a version marker that only an imported version could have, if none has it, like a malformed one.
fn refuse_unknown_marker(call: &Call<'_>, bucket: &Arc<Bucket>, request: &ListRequest<'_>) -> S3Result<()> {
    let Some(VersionPosition::AfterVersion(_, name)) = &request.after else { return Ok(()) };
    if name.is_expected() {
        return Ok(());
    }
    let found = ObjectKey::parse(request.key_marker).is_ok_and(|key| {
        match call.engine.head_object(bucket, &key, Some(*name)) {
            Ok(_) | Err(EngineError::DeleteMarker { .. }) => true,
            Err(_) => false,
        }
    });
    if found {
        Ok(())
    } else {
        Err(S3Error::invalid_argument(VERSION_MARKER, request.version_marker, version::INVALID_ID))
    }
}

/// Returns the position of a key marker. A marker that is a common prefix of this list skips all keys with the prefix.
fn position_of_key(
    prefix: &str,
    delimiter: Option<&str>,
    key_marker: &str,
    mode: Compatibility,
) -> Option<VersionPosition> {
    if key_marker.is_empty() {
        return None;
    }
    Some(match list_page::common_prefix(key_marker, prefix, delimiter, mode) {
        Some(prefix) => VersionPosition::AfterPrefix(prefix.as_bytes().to_vec()),
        None => VersionPosition::AfterKey(key_marker.as_bytes().to_vec()),
    })
}

/// Checks properties that hold for every query of a list.
///
/// # Panics
/// If a property does not hold.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_query(query: &Query<'_>) {
    let Ok(found) = list_request(query, Compatibility::Extended) else { return };
    assert!(found.max <= list_page::KEYS_MAX);
    assert_eq!(found.after.is_some(), !found.key_marker.is_empty());
    let page = VersionsPage { next: found.after.clone(), ..VersionsPage::default() };
    if let Ok(xml) = document("bucket", &found, &page) {
        crate::xml::reader::parse(&xml.finish()).expect("an answer is well-formed");
    }
}

fn document(bucket: &str, request: &ListRequest<'_>, page: &VersionsPage) -> S3Result<XmlWriter> {
    let names = request.encoding;
    let entries = page.versions.len() + page.common_prefixes.len();
    assert!(entries <= request.max, "a page has at most as many entries as were requested");
    let mut xml = XmlWriter::with_capacity(1024 + ENTRY_BYTES * entries);
    xml.open_root("ListVersionsResult");
    xml.text("Name", bucket);
    names.write(&mut xml, "Prefix", request.prefix)?;
    names.write(&mut xml, "KeyMarker", request.key_marker)?;
    xml.text("VersionIdMarker", request.version_marker);
    if let Some(next) = &page.next {
        write_next(&mut xml, names, next)?;
    }
    xml.value("MaxKeys", request.max);
    if let Some(delimiter) = request.delimiter {
        names.write(&mut xml, "Delimiter", delimiter)?;
    }
    if names == NameEncoding::Url {
        xml.text("EncodingType", "url");
    }
    xml.value("IsTruncated", page.next.is_some());
    for version in &page.versions {
        write_version(&mut xml, names, version)?;
    }
    list_page::write_common_prefixes(&mut xml, names, &page.common_prefixes)?;
    xml.close("ListVersionsResult");
    Ok(xml)
}

fn write_next(xml: &mut XmlWriter, names: NameEncoding, next: &VersionPosition) -> S3Result<()> {
    let (key, version) = match next {
        VersionPosition::AfterKey(key) | VersionPosition::AfterPrefix(key) => (key, None),
        VersionPosition::AfterVersion(key, version) => (key, Some(version)),
    };
    names.write(xml, "NextKeyMarker", list_page::prefix_text(key)?)?;
    if let Some(version) = version {
        xml.value("NextVersionIdMarker", version);
    }
    Ok(())
}

fn write_version(xml: &mut XmlWriter, names: NameEncoding, version: &ListedVersion) -> S3Result<()> {
    let ListedVersion { object, name, is_latest, is_delete_marker, lock: _ } = version;
    let element = if *is_delete_marker { "DeleteMarker" } else { "Version" };
    xml.open(element);
    names.write(xml, "Key", &object.key)?;
    xml.value("VersionId", name);
    xml.value("IsLatest", is_latest);
    xml.time("LastModified", object.last_modified);
    if !is_delete_marker {
        xml.value("ETag", format_args!("&quot;{}&quot;", object.etag));
        list_page::write_checksums(xml, object);
        xml.value("Size", object.size);
        xml.text("StorageClass", "STANDARD");
    }
    account::write_owner(xml);
    xml.close(element);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{document, list_request};
    use crate::compatibility::Compatibility;
    use crate::request::query::Query;
    use crate::xml::reader::{Element, parse};
    use cairn_engine::{
        ChecksumAlgorithm, ChecksumKind, ListedObject, ListedVersion, VersionPosition, VersionsPage,
    };
    use cairn_model::{Etag, Timestamp, VersionId, VersionName};

    fn listed(key: &str, name: VersionName, is_delete_marker: bool) -> ListedVersion {
        let object = ListedObject {
            key: key.to_owned(),
            size: 3,
            etag: Etag::single([0xab; 16]),
            last_modified: Timestamp(784_111_777_123),
            version: VersionId(1),
            checksum_algorithms: vec![ChecksumAlgorithm::Crc32],
            checksum_kind: ChecksumKind::Composite,
        };
        ListedVersion {
            object,
            name,
            is_latest: is_delete_marker,
            is_delete_marker,
            lock: Default::default(),
        }
    }

    fn text<'e>(element: &'e Element, name: &str) -> Option<&'e str> {
        element.child(name).map(Element::text)
    }

    #[test]
    fn markers_set_the_position() {
        let key = |key: &str| Some(VersionPosition::AfterKey(key.as_bytes().to_vec()));
        let prefix = |prefix: &str| Some(VersionPosition::AfterPrefix(prefix.as_bytes().to_vec()));
        let version = |key: &str, name| Some(VersionPosition::AfterVersion(key.as_bytes().to_vec(), name));
        for (raw, after) in [
            ("key-marker=", None),
            ("key-marker=a/", key("a/")),
            ("key-marker=a/&delimiter=/", prefix("a/")),
            ("key-marker=a/b&delimiter=/", prefix("a/")),
            ("key-marker=a/b/&delimiter=/&prefix=a/", prefix("a/b/")),
            ("key-marker=a/&delimiter=/&prefix=a/", key("a/")),
            ("key-marker=b/&delimiter=/&prefix=a/", key("b/")),
            ("key-marker=a&version-id-marker=null", version("a", VersionName::Null)),
            (
                "key-marker=a/&delimiter=/&version-id-marker=0000000000000001",
                version("a/", VersionName::Id(VersionId(1))),
            ),
        ] {
            let query = Query::parse(Some(raw)).expect("parses");
            assert_eq!(list_request(&query, Compatibility::Extended).expect(raw).after, after, "{raw}");
        }
        for raw in [
            "version-id-marker=null",
            "key-marker=&version-id-marker=null",
            "key-marker=a&version-id-marker=",
            "key-marker=a&version-id-marker=%2F",
            "max-keys=-1",
            "encoding-type=x",
        ] {
            let query = Query::parse(Some(raw)).expect("parses");
            let refused = list_request(&query, Compatibility::Extended).expect_err(raw);
            assert_eq!((refused.status(), refused.code()), (400, "InvalidArgument"), "{raw}");
        }
    }

    #[test]
    fn page_lists_versions_and_the_next_markers() {
        let ten = VersionName::Id(VersionId(10));
        let page = VersionsPage {
            versions: vec![listed("a b", ten, true), listed("a b", VersionName::Null, false)],
            common_prefixes: vec![b"c/".to_vec()],
            next: Some(VersionPosition::AfterVersion(b"a b".to_vec(), VersionName::Null)),
        };
        let raw = "delimiter=/&max-keys=3&encoding-type=url&key-marker=%20&version-id-marker=null";
        let query = Query::parse(Some(raw)).expect("parses");
        let xml = document("photos", &list_request(&query, Compatibility::Extended).expect("valid"), &page)
            .expect("writes")
            .finish();
        let root = parse(&xml).expect("well-formed");
        for (name, value) in [
            ("Name", "photos"),
            ("KeyMarker", "%20"),
            ("VersionIdMarker", "null"),
            ("NextKeyMarker", "a%20b"),
            ("NextVersionIdMarker", "null"),
            ("MaxKeys", "3"),
            ("IsTruncated", "true"),
            ("EncodingType", "url"),
            ("Delimiter", "/"),
        ] {
            assert_eq!(text(&root, name), Some(value), "{name}");
        }
        let names: Vec<&str> = root.children().iter().map(Element::name).collect();
        assert!(names.ends_with(&["DeleteMarker", "Version", "CommonPrefixes"]), "{names:?}");
        let marker = root.child("DeleteMarker").expect("one");
        assert_eq!((text(marker, "VersionId"), text(marker, "ETag")), (Some("000000000000000a"), None));
        assert_eq!((text(marker, "IsLatest"), text(marker, "Key")), (Some("true"), Some("a%20b")));
        let version = root.child("Version").expect("one");
        assert_eq!((text(version, "VersionId"), text(version, "Size")), (Some("null"), Some("3")));
        assert_eq!(
            (text(version, "IsLatest"), text(version, "StorageClass")),
            (Some("false"), Some("STANDARD"))
        );
        assert_eq!(text(version, "ChecksumType"), Some("COMPOSITE"));
        assert!(marker.child("Owner").is_some() && version.child("Owner").is_some());
    }

    #[test]
    fn next_marker_after_a_prefix_has_no_version() {
        let query = Query::parse(Some("delimiter=/")).expect("parses");
        let page = VersionsPage {
            next: Some(VersionPosition::AfterPrefix(b"a/".to_vec())),
            ..VersionsPage::default()
        };
        let xml = document("photos", &list_request(&query, Compatibility::Extended).expect("valid"), &page)
            .expect("writes")
            .finish();
        let root = parse(&xml).expect("well-formed");
        assert_eq!((text(&root, "NextKeyMarker"), text(&root, "NextVersionIdMarker")), (Some("a/"), None));
    }
}
