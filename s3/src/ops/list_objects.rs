//! ListObjects, the first version. Source: API Reference, ListObjects.
//!
//! A list continues after its `marker`: a key, or a common prefix of the page before. `NextMarker` is sent with a
//! delimiter, as on AWS; without one, clients continue after the last key. A page that ends elsewhere, because the engine
//! passed over deleted keys, has it too.

use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::{S3Error, S3Result};
use crate::ops::list_page::{self, ENTRY_BYTES, Owners};
use crate::ops::name_encoding::NameEncoding;
use crate::reply::Reply;
use crate::request::query::Query;
use crate::xml::writer::XmlWriter;
use cairn_engine::{ListObjects, ListPage, ListPosition};

const LIST_TYPE: &str = "list-type";

/// The parsed query.
#[derive(Debug)]
struct ListRequest<'a> {
    prefix: &'a str,
    delimiter: Option<&'a str>,
    max: usize,
    marker: &'a str,
    after: Option<ListPosition>,
    encoding: NameEncoding,
}

pub(crate) fn list_objects(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let mut request = list_request(call.query, call.compatibility)?;
    let list = ListObjects {
        prefix: request.prefix.as_bytes(),
        delimiter: request.delimiter.map(str::as_bytes),
        after: request.after.take(),
        max: request.max,
    };
    // A page with max 0 is never truncated, even if entries exist.
    let page =
        if request.max == 0 { ListPage::default() } else { call.engine.list_objects(&bucket, &list)? };
    Ok(Reply::xml(document(bucket.name.as_str(), &request, &page)?))
}

fn list_request<'a>(query: &'a Query<'_>, mode: Compatibility) -> S3Result<ListRequest<'a>> {
    if let Some(kind) = query.get(LIST_TYPE).filter(|kind| *kind != "1") {
        let message = "The list type must be 2, or absent for the first version of the list.";
        return Err(S3Error::invalid_argument(LIST_TYPE, kind, message));
    }
    let prefix = query.get("prefix").unwrap_or_default();
    let delimiter = query.get_non_empty("delimiter");
    let marker = query.get("marker").unwrap_or_default();
    let after =
        (!marker.is_empty()).then(|| match list_page::common_prefix(marker, prefix, delimiter, mode) {
            Some(prefix) => ListPosition::AfterPrefix(prefix.as_bytes().to_vec()),
            None => ListPosition::AfterKey(marker.as_bytes().to_vec()),
        });
    Ok(ListRequest {
        prefix,
        delimiter,
        max: list_page::max_keys(query, mode)?,
        marker,
        after,
        encoding: NameEncoding::parse(query.get("encoding-type"), mode)?,
    })
}

/// Returns the marker of the next page, if the page must name it.
fn next_marker<'p>(request: &ListRequest<'_>, page: &'p ListPage) -> S3Result<Option<&'p str>> {
    let Some(ListPosition::AfterKey(next) | ListPosition::AfterPrefix(next)) = &page.next else {
        return Ok(None);
    };
    let next = list_page::prefix_text(next)?;
    let is_last_key = page.objects.last().is_some_and(|object| object.key == next);
    Ok((request.delimiter.is_some() || !is_last_key).then_some(next))
}

/// Checks properties that hold for every query of a list.
///
/// # Panics
/// If a property does not hold.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_query(query: &Query<'_>) {
    let Ok(request) = list_request(query, Compatibility::Extended) else { return };
    assert!(request.max <= list_page::KEYS_MAX);
    assert_eq!(request.after.is_some(), !request.marker.is_empty());
    let page = ListPage { next: request.after.clone(), ..ListPage::default() };
    if let Ok(xml) = document("bucket", &request, &page) {
        let root = crate::xml::reader::parse(&xml.finish()).expect("an answer is well-formed");
        assert_eq!(root.child("NextMarker").is_some(), page.next.is_some(), "an empty page names its end");
    }
}

fn document(bucket: &str, request: &ListRequest<'_>, page: &ListPage) -> S3Result<XmlWriter> {
    let names = request.encoding;
    let entries = page.objects.len() + page.common_prefixes.len();
    assert!(entries <= request.max, "a page has at most as many entries as were requested");
    let mut xml = XmlWriter::with_capacity(1024 + 2 * ENTRY_BYTES * entries);
    xml.open_root("ListBucketResult");
    xml.text("Name", bucket);
    names.write(&mut xml, "Prefix", request.prefix)?;
    names.write(&mut xml, "Marker", request.marker)?;
    if let Some(next) = next_marker(request, page)? {
        names.write(&mut xml, "NextMarker", next)?;
    }
    xml.value("MaxKeys", request.max);
    if let Some(delimiter) = request.delimiter {
        names.write(&mut xml, "Delimiter", delimiter)?;
    }
    if names == NameEncoding::Url {
        xml.text("EncodingType", "url");
    }
    xml.value("IsTruncated", page.next.is_some());
    for object in &page.objects {
        list_page::write_object(&mut xml, names, Owners::Named, object)?;
    }
    list_page::write_common_prefixes(&mut xml, names, &page.common_prefixes)?;
    xml.close("ListBucketResult");
    Ok(xml)
}

#[cfg(test)]
mod tests {
    use super::{document, list_request};
    use crate::compatibility::Compatibility;
    use crate::request::query::Query;
    use crate::xml::reader::{Element, parse};
    use cairn_engine::{ChecksumKind, ListPage, ListPosition, ListedObject};
    use cairn_model::{Etag, Timestamp, VersionId};

    fn listed(key: &str) -> ListedObject {
        ListedObject {
            key: key.to_owned(),
            size: 3,
            etag: Etag::single([0xab; 16]),
            last_modified: Timestamp(784_111_777_123),
            version: VersionId(1),
            checksum_algorithms: Vec::new(),
            checksum_kind: ChecksumKind::FullObject,
        }
    }

    fn written(query: &str, page: &ListPage) -> Element {
        let query = Query::parse(Some(query)).expect("parses");
        let xml = document("photos", &list_request(&query, Compatibility::Extended).expect("valid"), page)
            .expect("writes")
            .finish();
        parse(&xml).expect("well-formed")
    }

    fn text<'e>(element: &'e Element, name: &str) -> Option<&'e str> {
        element.child(name).map(Element::text)
    }

    fn page_after(keys: &[&str], next: ListPosition) -> ListPage {
        ListPage {
            objects: keys.iter().map(|key| listed(key)).collect(),
            next: Some(next),
            ..ListPage::default()
        }
    }

    #[test]
    fn next_marker_is_sent_with_a_delimiter_only() {
        let key = |key: &str| ListPosition::AfterKey(key.as_bytes().to_vec());
        let prefix = ListPosition::AfterPrefix(b"b c/".to_vec());
        for (query, page, expected) in [
            ("", page_after(&["a"], key("a")), None),
            ("delimiter=/", page_after(&["a"], key("a")), Some("a")),
            ("delimiter=/&encoding-type=url", page_after(&["a"], prefix), Some("b%20c/")),
            // The engine passed over deleted keys: without the marker, a client would ask for this page again.
            ("", page_after(&["a"], key("deleted")), Some("deleted")),
            ("", page_after(&[], key("deleted")), Some("deleted")),
        ] {
            let root = written(query, &page);
            assert_eq!(text(&root, "NextMarker"), expected, "{query}");
            assert_eq!(text(&root, "IsTruncated"), Some("true"));
        }
        let root = written("delimiter=/", &ListPage::default());
        assert_eq!((text(&root, "NextMarker"), text(&root, "IsTruncated")), (None, Some("false")));
    }

    #[test]
    fn marker_that_is_a_common_prefix_skips_its_keys() {
        for (query, expected) in [
            ("", None),
            ("marker=", None),
            ("marker=a/", Some(ListPosition::AfterKey(b"a/".to_vec()))),
            ("marker=a/&delimiter=/", Some(ListPosition::AfterPrefix(b"a/".to_vec()))),
            ("marker=a/b&delimiter=/", Some(ListPosition::AfterPrefix(b"a/".to_vec()))),
            ("marker=a/b/&prefix=a/&delimiter=/", Some(ListPosition::AfterPrefix(b"a/b/".to_vec()))),
        ] {
            let query = Query::parse(Some(query)).expect("parses");
            assert_eq!(
                list_request(&query, Compatibility::Extended).expect("valid").after,
                expected,
                "{query:?}"
            );
        }
    }

    #[test]
    fn page_names_its_owner_and_its_request() {
        let page = ListPage { objects: vec![listed("a b")], ..ListPage::default() };
        let root = written("prefix=a&marker=a%20a&max-keys=7&encoding-type=url&list-type=1", &page);
        for (name, expected) in [
            ("Name", Some("photos")),
            ("Prefix", Some("a")),
            ("Marker", Some("a%20a")),
            ("MaxKeys", Some("7")),
            ("EncodingType", Some("url")),
            ("Delimiter", None),
            ("KeyCount", None),
        ] {
            assert_eq!(text(&root, name), expected, "{name}");
        }
        let object = root.child("Contents").expect("one");
        assert_eq!(text(object, "Key"), Some("a%20b"));
        assert!(object.child("Owner").is_some());
    }

    #[test]
    fn another_list_type_is_refused() {
        for query in ["list-type=3", "list-type", "max-keys=x", "encoding-type=base64"] {
            let query = Query::parse(Some(query)).expect("parses");
            let refused = list_request(&query, Compatibility::Extended).expect_err("refused");
            assert_eq!((refused.status(), refused.code()), (400, "InvalidArgument"), "{query:?}");
        }
    }
}
