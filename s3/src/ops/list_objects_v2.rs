//! ListObjectsV2. Source: API Reference, ListObjectsV2.
//!
//! The engine fills a page; this file parses the request and writes the page. A page may be shorter than requested and
//! still not be the last: `IsTruncated` decides.

use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::{S3Error, S3Result};
use crate::ops::list_page::{self, ENTRY_BYTES, Owners};
use crate::ops::name_encoding::NameEncoding;
use crate::reply::Reply;
use crate::request::query::Query;
use crate::xml::writer::XmlWriter;
use cairn_engine::{ListObjects, ListPage, ListPosition};
use cairn_transfer::list_token;

/// The parsed query.
#[derive(Debug)]
struct ListRequest<'a> {
    prefix: &'a str,
    delimiter: Option<&'a str>,
    max: usize,
    start_after: Option<&'a str>,
    token: Option<&'a str>,
    after: Option<ListPosition>,
    encoding: NameEncoding,
    owners: Owners,
}

pub(crate) fn list_objects_v2(call: &Call<'_>) -> S3Result<Reply> {
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
    let token = query.get("continuation-token");
    let start_after = query.get_non_empty("start-after");
    let after = match token {
        Some(text) => Some(list_token::to_position(text).ok_or_else(|| {
            let message = "The continuation token provided is incorrect.";
            match text {
                "" => S3Error::invalid_argument_name("continuation-token", message),
                text => S3Error::invalid_argument("continuation-token", text, message),
            }
        })?),
        None => start_after.map(|key| ListPosition::AfterKey(key.as_bytes().to_vec())),
    };
    Ok(ListRequest {
        prefix: query.get("prefix").unwrap_or_default(),
        delimiter: query.get_non_empty("delimiter"),
        max: list_page::max_keys(query, mode)?,
        // It is ignored beside a token, and AWS then does not name it.
        start_after: start_after.filter(|_| token.is_none() || mode == Compatibility::Strict),
        token,
        after,
        encoding: NameEncoding::parse(query.get("encoding-type"), mode)?,
        owners: match query.get("fetch-owner") {
            Some(value) if value.eq_ignore_ascii_case("true") => Owners::Named,
            _ => Owners::Omitted,
        },
    })
}

/// Checks properties that hold for every query of a list.
///
/// # Panics
/// If a property does not hold.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_query(query: &Query<'_>) {
    let Ok(request) = list_request(query, Compatibility::Extended) else { return };
    assert!(request.max <= list_page::KEYS_MAX);
    assert!(request.after.is_some() || request.token.is_none());
    let page = ListPage { next: request.after.clone(), ..ListPage::default() };
    if let Ok(xml) = document("bucket", &request, &page) {
        let root = crate::xml::reader::parse(&xml.finish()).expect("an answer is well-formed");
        let next = root.child("NextContinuationToken").map(|token| list_token::to_position(token.text()));
        assert!(next.is_none_or(|next| next == request.after) || request.token.is_none());
    }
}

fn document(bucket: &str, request: &ListRequest<'_>, page: &ListPage) -> S3Result<XmlWriter> {
    let names = request.encoding;
    let entries = page.objects.len() + page.common_prefixes.len();
    assert!(entries <= request.max, "a page has at most as many entries as were requested");
    let mut xml = XmlWriter::with_capacity(1024 + ENTRY_BYTES * entries);
    xml.open_root("ListBucketResult");
    xml.text("Name", bucket);
    names.write(&mut xml, "Prefix", request.prefix)?;
    if let Some(delimiter) = request.delimiter {
        names.write(&mut xml, "Delimiter", delimiter)?;
    }
    if names == NameEncoding::Url {
        xml.text("EncodingType", "url");
    }
    xml.value("MaxKeys", request.max);
    xml.value("KeyCount", entries);
    xml.value("IsTruncated", page.next.is_some());
    if let Some(token) = request.token {
        xml.text("ContinuationToken", token);
    }
    if let Some(next) = &page.next {
        xml.text("NextContinuationToken", &list_token::of_position(next));
    }
    if let Some(start_after) = request.start_after {
        names.write(&mut xml, "StartAfter", start_after)?;
    }
    for object in &page.objects {
        list_page::write_object(&mut xml, names, request.owners, object)?;
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
    use cairn_transfer::list_token;

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

    #[test]
    fn max_keys_is_at_most_a_thousand() {
        for (raw, max) in [
            ("", 1000),
            ("max-keys=0", 0),
            ("max-keys=7", 7),
            ("max-keys=1001", 1000),
            ("max-keys=2147483647", 1000),
            ("max-keys=", 1000),
        ] {
            assert_eq!(
                list_request(&Query::parse(Some(raw)).expect("parses"), Compatibility::Extended)
                    .expect(raw)
                    .max,
                max,
                "{raw}"
            );
        }
        for raw in [
            "max-keys=-1",
            "max-keys=x",
            "max-keys=2147483648",
            "max-keys=99999999999999999999999",
            "max-keys=1.5",
            "continuation-token=",
            "continuation-token=bad",
            "encoding-type=base64",
        ] {
            let query = Query::parse(Some(raw)).expect("parses");
            let refused = list_request(&query, Compatibility::Extended).expect_err(raw);
            assert_eq!((refused.status(), refused.code()), (400, "InvalidArgument"), "{raw}");
        }
    }

    #[test]
    fn token_overrides_start_after() {
        let position = ListPosition::AfterPrefix(b"a/".to_vec());
        let token = list_token::of_position(&position);
        let raw = format!("start-after=b&continuation-token={token}");
        let query = Query::parse(Some(&raw)).expect("parses");
        assert_eq!(list_request(&query, Compatibility::Extended).expect("valid").after, Some(position));
        let root = written(&raw, &ListPage::default());
        assert_eq!(text(&root, "StartAfter"), None, "AWS does not name it beside a token");
        assert_eq!(text(&root, "ContinuationToken"), Some(&*token));
        assert_eq!(text(&root, "NextContinuationToken"), None);
        assert_eq!(text(&root, "IsTruncated"), Some("false"));
    }

    #[test]
    fn page_lists_keys_prefixes_and_the_next_token() {
        let page = ListPage {
            objects: vec![listed("a b")],
            common_prefixes: vec![b"a/".to_vec(), b"c/".to_vec()],
            next: Some(ListPosition::AfterPrefix(b"c/".to_vec())),
        };
        let root = written("delimiter=/&max-keys=3&fetch-owner=true&encoding-type=url", &page);
        assert_eq!(text(&root, "KeyCount"), Some("3"));
        assert_eq!(text(&root, "MaxKeys"), Some("3"));
        assert_eq!(text(&root, "IsTruncated"), Some("true"));
        assert_eq!(text(&root, "EncodingType"), Some("url"));
        assert_eq!(text(&root, "Delimiter"), Some("/"));
        let token = text(&root, "NextContinuationToken").expect("truncated");
        assert_eq!(list_token::to_position(token), page.next);
        let object = root.child("Contents").expect("one");
        assert_eq!(text(object, "Key"), Some("a%20b"));
        assert_eq!(text(object, "LastModified"), Some("1994-11-06T08:49:37.000Z"));
        assert_eq!(text(object, "ETag"), Some(&*format!("\"{}\"", "ab".repeat(16))));
        assert_eq!(text(object, "StorageClass"), Some("STANDARD"));
        assert!(object.child("Owner").is_some());
        assert_eq!(root.child("CommonPrefixes").and_then(|p| text(p, "Prefix")), Some("a/"));
    }

    #[test]
    fn key_that_xml_cannot_represent_needs_url_encoding() {
        let page = ListPage { objects: vec![listed("\u{1}")], ..ListPage::default() };
        let query = Query::default();
        let refused =
            document("photos", &list_request(&query, Compatibility::Extended).expect("valid"), &page)
                .err()
                .expect("refused");
        assert_eq!(refused.code(), "InvalidRequest");
        assert_eq!(
            text(written("encoding-type=url", &page).child("Contents").expect("one"), "Key"),
            Some("%01")
        );
    }
}
