//! ListMultipartUploads. Source: API Reference, ListMultipartUploads.
//!
//! The engine fills a page; this file parses the request and writes the page. Unlike a page of objects, a page has as
//! many entries as were requested, if they exist.

use crate::access::account;
use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::{S3Error, S3Result};
use crate::multipart::write_upload_checksum;
use crate::ops::list_page;
use crate::ops::name_encoding::NameEncoding;
use crate::reply::Reply;
use crate::request::query::Query;
use crate::xml::writer::XmlWriter;
use cairn_engine::{ListUploads, ListedUpload, UploadPosition, UploadsPage};
use cairn_model::UploadId;
use futures_lite::future::yield_now;

/// Estimated bytes of XML for one upload, to size the first allocation.
const ENTRY_BYTES: usize = 512;

/// The parsed query.
#[derive(Debug)]
struct ListRequest<'a> {
    prefix: &'a str,
    delimiter: Option<&'a str>,
    max: usize,
    key_marker: &'a str,
    upload_id_marker: &'a str,
    after: Option<UploadPosition>,
    encoding: NameEncoding,
    mode: Compatibility,
}

pub(crate) async fn list_multipart_uploads(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let mut request = list_request(call.query, call.compatibility)?;
    let mut page = UploadsPage { next: request.after.take(), ..UploadsPage::default() };
    // A page with max 0 is never truncated, even if entries exist.
    while page.uploads.len() + page.common_prefixes.len() < request.max {
        let list = ListUploads {
            prefix: request.prefix.as_bytes(),
            delimiter: request.delimiter.map(str::as_bytes),
            after: page.next.take(),
            max: request.max - page.uploads.len() - page.common_prefixes.len(),
        };
        let mut more = call.engine.list_uploads(&bucket, &list)?;
        page.uploads.append(&mut more.uploads);
        page.common_prefixes.append(&mut more.common_prefixes);
        page.next = more.next;
        if page.next.is_none() {
            break;
        }
        yield_now().await;
    }
    if request.max == 0 {
        page.next = None;
    }
    Ok(Reply::xml(document(bucket.name.as_str(), &request, &page)?))
}

fn list_request<'a>(query: &'a Query<'_>, mode: Compatibility) -> S3Result<ListRequest<'a>> {
    let prefix = query.get("prefix").unwrap_or_default();
    let delimiter = query.get_non_empty("delimiter");
    let key_marker = query.get("key-marker").unwrap_or_default();
    // It is ignored without a key marker, as on AWS.
    let upload_id_marker = query.get_non_empty("upload-id-marker").filter(|_| !key_marker.is_empty());
    let after = match upload_id_marker {
        _ if key_marker.is_empty() => None,
        Some(text) => {
            let id = UploadId::parse(text).ok_or_else(|| {
                S3Error::invalid_argument("upload-id-marker", text, "Invalid uploadId marker")
            })?;
            Some(UploadPosition::AfterUpload(key_marker.as_bytes().to_vec(), id))
        }
        None => Some(match list_page::common_prefix(key_marker, prefix, delimiter, mode) {
            Some(prefix) => UploadPosition::AfterPrefix(prefix.as_bytes().to_vec()),
            None => UploadPosition::AfterKey(key_marker.as_bytes().to_vec()),
        }),
    };
    Ok(ListRequest {
        prefix,
        delimiter,
        max: list_page::page_size(query, "max-uploads", mode)?,
        key_marker,
        upload_id_marker: upload_id_marker.unwrap_or_default(),
        after,
        mode,
        encoding: NameEncoding::parse(query.get("encoding-type"), mode)?,
    })
}

fn document(bucket: &str, request: &ListRequest<'_>, page: &UploadsPage) -> S3Result<XmlWriter> {
    let names = request.encoding;
    let entries = page.uploads.len() + page.common_prefixes.len();
    assert!(entries <= request.max, "a page has at most as many entries as were requested");
    let mut xml = XmlWriter::with_capacity(1024 + ENTRY_BYTES * entries);
    xml.open_root("ListMultipartUploadsResult");
    xml.text("Bucket", bucket);
    names.write(&mut xml, "KeyMarker", request.key_marker)?;
    xml.text("UploadIdMarker", request.upload_id_marker);
    match (&page.next, request.mode) {
        (Some(UploadPosition::AfterKey(key) | UploadPosition::AfterPrefix(key)), _) => {
            write_next_marker(&mut xml, names, utf8(key)?, None)?;
        }
        (Some(UploadPosition::AfterUpload(key, id)), _) => {
            write_next_marker(&mut xml, names, utf8(key)?, Some(*id))?;
        }
        // As on AWS, the last page names its last upload.
        (None, Compatibility::Extended) => {
            let last = page.uploads.last();
            write_next_marker(&mut xml, names, last.map_or("", |last| &last.key), last.map(|last| last.id))?;
        }
        (None, Compatibility::Strict) => {}
    }
    if !request.prefix.is_empty() || request.mode == Compatibility::Strict {
        names.write(&mut xml, "Prefix", request.prefix)?;
    }
    if let Some(delimiter) = request.delimiter {
        names.write(&mut xml, "Delimiter", delimiter)?;
    }
    if names == NameEncoding::Url {
        xml.text("EncodingType", "url");
    }
    xml.value("MaxUploads", request.max);
    xml.value("IsTruncated", page.next.is_some());
    for upload in &page.uploads {
        write_upload(&mut xml, names, upload)?;
    }
    list_page::write_common_prefixes(&mut xml, names, &page.common_prefixes)?;
    xml.close("ListMultipartUploadsResult");
    Ok(xml)
}

fn write_next_marker(
    xml: &mut XmlWriter,
    names: NameEncoding,
    key: &str,
    upload: Option<UploadId>,
) -> S3Result<()> {
    names.write(xml, "NextKeyMarker", key)?;
    match upload {
        Some(id) => xml.value("NextUploadIdMarker", id),
        None => xml.text("NextUploadIdMarker", ""),
    }
    Ok(())
}

fn write_upload(xml: &mut XmlWriter, names: NameEncoding, upload: &ListedUpload) -> S3Result<()> {
    xml.open("Upload");
    names.write(xml, "Key", &upload.key)?;
    xml.value("UploadId", upload.id);
    account::write_owner_as(xml, "Initiator");
    account::write_owner(xml);
    xml.text("StorageClass", "STANDARD");
    xml.time("Initiated", upload.initiated);
    write_upload_checksum(xml, upload.checksum);
    xml.close("Upload");
    Ok(())
}

/// Converts a key or common prefix. Keys and delimiters are UTF-8, and so is every text that ends with either.
fn utf8(name: &[u8]) -> S3Result<&str> {
    std::str::from_utf8(name).map_err(|_| S3Error::internal("a name in a list of uploads is not UTF-8"))
}

/// Checks properties that hold for every query of a list of uploads.
///
/// # Panics
/// If a property does not hold.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_query(query: &Query<'_>) {
    let Ok(request) = list_request(query, Compatibility::Extended) else { return };
    assert!(request.max <= list_page::KEYS_MAX);
    assert_eq!(request.after.is_none(), request.key_marker.is_empty());
    let page = UploadsPage { next: request.after.clone(), ..UploadsPage::default() };
    let Ok(xml) = document("bucket", &request, &page) else { return };
    let root = crate::xml::reader::parse(&xml.finish()).expect("an answer is well-formed");
    assert!(root.child("NextKeyMarker").is_some());
}

#[cfg(test)]
mod tests {
    use super::{document, list_request};
    use crate::compatibility::Compatibility;
    use crate::request::query::Query;
    use crate::xml::reader::{Element, parse};
    use cairn_engine::{ChecksumAlgorithm, ChecksumKind, ListedUpload, UploadChecksum};
    use cairn_engine::{UploadPosition, UploadsPage};
    use cairn_model::{Timestamp, UploadId};

    fn after(raw: &str) -> Option<UploadPosition> {
        list_request(&Query::parse(Some(raw)).expect("parses"), Compatibility::Extended).expect("valid").after
    }

    #[test]
    fn markers_set_the_position() {
        let id = "000000000000000a";
        assert_eq!(after(""), None);
        assert_eq!(after(&format!("upload-id-marker={id}")), None);
        assert_eq!(after("key-marker=a/b"), Some(UploadPosition::AfterKey(b"a/b".to_vec())));
        assert_eq!(
            after(&format!("key-marker=a/b&upload-id-marker={id}")),
            Some(UploadPosition::AfterUpload(b"a/b".to_vec(), UploadId(10)))
        );
        let prefix = |text: &str| Some(UploadPosition::AfterPrefix(text.as_bytes().to_vec()));
        assert_eq!(after("key-marker=a/&delimiter=/"), prefix("a/"));
        assert_eq!(after("key-marker=a/b/&delimiter=/&prefix=a/"), prefix("a/b/"));
        // A marker within a common prefix counts as the prefix.
        assert_eq!(after("key-marker=a/b&delimiter=/"), prefix("a/"));
        assert_eq!(after("key-marker=a/&prefix=b"), Some(UploadPosition::AfterKey(b"a/".to_vec())));
        for bad in ["max-uploads=-1", "max-uploads=x", "key-marker=a&upload-id-marker=x", "encoding-type=x"] {
            let query = Query::parse(Some(bad)).expect("parses");
            assert_eq!(
                list_request(&query, Compatibility::Extended).expect_err(bad).code(),
                "InvalidArgument"
            );
        }
    }

    #[test]
    fn page_lists_uploads_and_the_next_markers() {
        let checksum = UploadChecksum { algorithm: ChecksumAlgorithm::Sha256, kind: ChecksumKind::Composite };
        let upload = ListedUpload {
            key: "a b".to_owned(),
            id: UploadId(10),
            initiated: Timestamp(784_111_777_123),
            checksum: Some(checksum),
        };
        let page = UploadsPage {
            uploads: vec![upload],
            common_prefixes: vec![b"c/".to_vec()],
            next: Some(UploadPosition::AfterUpload(b"d e".to_vec(), UploadId(11))),
        };
        let query = Query::parse(Some("max-uploads=2&delimiter=/&encoding-type=url")).expect("parses");
        let xml = document("photos", &list_request(&query, Compatibility::Extended).expect("valid"), &page)
            .expect("writes");
        let root = parse(&xml.finish()).expect("well-formed");
        for (name, value) in [
            ("Bucket", "photos"),
            ("NextKeyMarker", "d%20e"),
            ("NextUploadIdMarker", "u000000000000000b"),
            ("MaxUploads", "2"),
            ("IsTruncated", "true"),
            ("Delimiter", "/"),
        ] {
            assert_eq!(root.child(name).map(Element::text), Some(value), "{name}");
        }
        let upload = root.child("Upload").expect("one");
        for (name, value) in [
            ("Key", "a%20b"),
            ("UploadId", "u000000000000000a"),
            ("Initiated", "1994-11-06T08:49:37.000Z"),
            ("ChecksumAlgorithm", "SHA256"),
            ("ChecksumType", "COMPOSITE"),
        ] {
            assert_eq!(upload.child(name).map(Element::text), Some(value), "{name}");
        }
        assert_eq!(
            root.child("CommonPrefixes").and_then(|p| p.child("Prefix")).map(Element::text),
            Some("c/")
        );
    }
}
