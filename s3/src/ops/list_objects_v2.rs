//! ListObjectsV2. Source: API Reference, ListObjectsV2.
//!
//! The engine decides what is on a page; this file reads the request and writes the page. A page may be shorter than
//! asked for and still not be the last: `IsTruncated` is what counts.

use crate::account;
use crate::call::Call;
use crate::errors::{S3Error, S3Result};
use crate::ops::list_page::{self, ENTRY_BYTES};
use crate::ops::names::NameEncoding;
use crate::query::Query;
use crate::reply::Reply;
use crate::token;
use crate::xml::writer::XmlWriter;
use cairn_engine::{ListObjects, ListPage, ListPosition, ListedObject};
use cairn_http1::iso8601_millis;

/// What the query asks for.
#[derive(Debug)]
struct Asked<'a> {
    prefix: &'a str,
    delimiter: Option<&'a str>,
    max: usize,
    start_after: Option<&'a str>,
    token: Option<&'a str>,
    after: Option<ListPosition>,
    encoding: NameEncoding,
    fetch_owner: bool,
}

pub(crate) fn list_objects_v2(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let mut asked = asked(call.query)?;
    let list = ListObjects {
        prefix: asked.prefix.as_bytes(),
        delimiter: asked.delimiter.map(str::as_bytes),
        after: asked.after.take(),
        max: asked.max,
    };
    // A page of none is never truncated, though more may follow.
    let page = if asked.max == 0 { ListPage::default() } else { call.engine.list_objects(&bucket, &list)? };
    Ok(Reply::xml(document(bucket.name.as_str(), &asked, &page)?))
}

fn asked<'a>(query: &'a Query<'_>) -> S3Result<Asked<'a>> {
    let start_after = query.get_non_empty("start-after");
    let token = query.get("continuation-token");
    let after = match token {
        Some(text) => Some(token::to_position(text).ok_or_else(|| {
            let message = "The continuation token provided is incorrect.";
            S3Error::invalid_argument("continuation-token", text, message)
        })?),
        None => start_after.map(|key| ListPosition::AfterKey(key.as_bytes().to_vec())),
    };
    Ok(Asked {
        prefix: query.get("prefix").unwrap_or_default(),
        delimiter: query.get_non_empty("delimiter"),
        max: list_page::max_keys(query)?,
        start_after,
        token,
        after,
        encoding: NameEncoding::parse(query.get("encoding-type"))?,
        fetch_owner: query.get("fetch-owner").is_some_and(|value| value.eq_ignore_ascii_case("true")),
    })
}

/// What must hold of a list's query, whatever it is.
///
/// # Panics
/// When it does not.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_query(query: &Query<'_>) {
    let Ok(asked) = asked(query) else { return };
    assert!(asked.max <= list_page::KEYS_MAX);
    assert!(asked.after.is_some() || asked.token.is_none());
    let page = ListPage { next: asked.after.clone(), ..ListPage::default() };
    if let Ok(xml) = document("bucket", &asked, &page) {
        let root = crate::xml::reader::parse(&xml.finish()).expect("an answer is well-formed");
        let next = root.child("NextContinuationToken").map(|token| token::to_position(token.text()));
        assert!(next.is_none_or(|next| next == asked.after) || asked.token.is_none());
    }
}

fn document(bucket: &str, asked: &Asked<'_>, page: &ListPage) -> S3Result<XmlWriter> {
    let names = asked.encoding;
    let entries = page.objects.len() + page.common_prefixes.len();
    let mut xml = XmlWriter::with_capacity(1024 + ENTRY_BYTES * entries);
    xml.open_root("ListBucketResult");
    xml.text("Name", bucket);
    names.write(&mut xml, "Prefix", asked.prefix)?;
    if let Some(delimiter) = asked.delimiter {
        names.write(&mut xml, "Delimiter", delimiter)?;
    }
    if names == NameEncoding::Url {
        xml.text("EncodingType", "url");
    }
    xml.value("MaxKeys", asked.max);
    xml.value("KeyCount", entries);
    xml.value("IsTruncated", page.next.is_some());
    if let Some(token) = asked.token {
        xml.text("ContinuationToken", token);
    }
    if let Some(next) = &page.next {
        xml.text("NextContinuationToken", &token::of_position(next));
    }
    if let Some(start_after) = asked.start_after {
        names.write(&mut xml, "StartAfter", start_after)?;
    }
    for object in &page.objects {
        write_object(&mut xml, asked, object)?;
    }
    list_page::write_common_prefixes(&mut xml, names, &page.common_prefixes)?;
    xml.close("ListBucketResult");
    Ok(xml)
}

fn write_object(xml: &mut XmlWriter, asked: &Asked<'_>, object: &ListedObject) -> S3Result<()> {
    xml.open("Contents");
    asked.encoding.write(xml, "Key", &object.key)?;
    xml.value("LastModified", iso8601_millis(object.last_modified.0));
    xml.value("ETag", format_args!("&quot;{}&quot;", object.etag));
    list_page::write_checksums(xml, object);
    xml.value("Size", object.size);
    if asked.fetch_owner {
        account::write_owner(xml);
    }
    xml.text("StorageClass", "STANDARD");
    xml.close("Contents");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{asked, document};
    use crate::query::Query;
    use crate::token;
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
        let xml = document("photos", &asked(&query).expect("valid"), page).expect("writes").finish();
        parse(&xml).expect("well-formed")
    }

    fn text<'e>(element: &'e Element, name: &str) -> Option<&'e str> {
        element.child(name).map(Element::text)
    }

    #[test]
    fn max_keys_is_a_number_and_at_most_a_thousand() {
        for (raw, max) in [
            ("", 1000),
            ("max-keys=0", 0),
            ("max-keys=7", 7),
            ("max-keys=1001", 1000),
            ("max-keys=99999999999999999999999", 1000),
        ] {
            assert_eq!(asked(&Query::parse(Some(raw)).expect("parses")).expect(raw).max, max, "{raw}");
        }
        for raw in [
            "max-keys=-1",
            "max-keys=x",
            "max-keys=",
            "max-keys=1.5",
            "continuation-token=",
            "continuation-token=bad",
            "encoding-type=base64",
        ] {
            let query = Query::parse(Some(raw)).expect("parses");
            let refused = asked(&query).expect_err(raw);
            assert_eq!((refused.status(), refused.code()), (400, "InvalidArgument"), "{raw}");
        }
    }

    #[test]
    fn a_token_goes_before_start_after_and_both_are_echoed() {
        let position = ListPosition::AfterPrefix(b"a/".to_vec());
        let token = token::of_position(&position);
        let raw = format!("start-after=b&continuation-token={token}");
        let query = Query::parse(Some(&raw)).expect("parses");
        assert_eq!(asked(&query).expect("valid").after, Some(position));
        let root = written(&raw, &ListPage::default());
        assert_eq!(text(&root, "StartAfter"), Some("b"));
        assert_eq!(text(&root, "ContinuationToken"), Some(&*token));
        assert_eq!(text(&root, "NextContinuationToken"), None);
        assert_eq!(text(&root, "IsTruncated"), Some("false"));
    }

    #[test]
    fn keys_and_prefixes_are_counted_together_and_a_next_page_has_a_token() {
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
        assert_eq!(token::to_position(token), page.next);
        let object = root.child("Contents").expect("one");
        assert_eq!(text(object, "Key"), Some("a%20b"));
        assert_eq!(text(object, "LastModified"), Some("1994-11-06T08:49:37.123Z"));
        assert_eq!(text(object, "ETag"), Some(&*format!("\"{}\"", "ab".repeat(16))));
        assert_eq!(text(object, "StorageClass"), Some("STANDARD"));
        assert!(object.child("Owner").is_some());
        assert_eq!(root.child("CommonPrefixes").and_then(|p| text(p, "Prefix")), Some("a/"));
    }

    #[test]
    fn a_key_that_xml_cannot_carry_needs_url_encoding() {
        let page = ListPage { objects: vec![listed("\u{1}")], ..ListPage::default() };
        let query = Query::default();
        let refused = document("photos", &asked(&query).expect("valid"), &page).err().expect("refused");
        assert_eq!(refused.code(), "InvalidRequest");
        assert_eq!(
            text(written("encoding-type=url", &page).child("Contents").expect("one"), "Key"),
            Some("%01")
        );
    }
}
