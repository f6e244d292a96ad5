//! ListParts. Source: API Reference, ListParts.

use crate::access::account;
use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::S3Result;
use crate::headers::checksum;
use crate::headers::expiration;
use crate::multipart::{named_upload, refuse_conflicting_parameter, write_upload_checksum};
use crate::ops::list_page;
use crate::ops::name_encoding::NameEncoding;
use crate::reply::Reply;
use crate::request::query::Query;
use crate::xml::writer::XmlWriter;
use cairn_engine::{PartInfo, PartsPage};

/// Estimated bytes of XML for one part, to size the first allocation.
const ENTRY_BYTES: usize = 192;

/// The parsed query.
#[derive(Debug)]
struct ListRequest {
    max: usize,
    /// As it was sent; no part has a number above 10 000.
    after: usize,
    mode: Compatibility,
    encoding: NameEncoding,
}

pub(crate) fn list_parts(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key, id) = named_upload(call)?;
    refuse_conflicting_parameter(call, "uploadId", "partNumber")?;
    let request = list_request(call.query, call.compatibility)?;
    let after = u16::try_from(request.after).unwrap_or(u16::MAX);
    let mut page = call.engine.list_parts(&bucket, &key, id, after, request.max.max(1))?;
    if request.max == 0 {
        // A page with max 0 is never truncated, even if parts exist.
        page = PartsPage { parts: Vec::new(), is_truncated: false, ..page };
    }
    let mut reply = Reply::xml(document((bucket.name.as_str(), key.as_str()), &request, &page)?);
    let initiated = page.upload.initiated;
    expiration::write_abort_headers(&mut reply.head, call.engine.store(), &bucket, &key, initiated);
    Ok(reply)
}

fn list_request(query: &Query<'_>, mode: Compatibility) -> S3Result<ListRequest> {
    let after = match query.get_non_empty("part-number-marker") {
        None => 0,
        Some(text) => list_page::number("part-number-marker", text, mode)?,
    };
    let max = list_page::page_size(query, "max-parts", mode)?;
    Ok(ListRequest { max, after, mode, encoding: NameEncoding::parse(query.get("encoding-type"), mode)? })
}

fn document((bucket, key): (&str, &str), request: &ListRequest, page: &PartsPage) -> S3Result<XmlWriter> {
    assert!(page.parts.len() <= request.max, "a page has at most as many parts as were requested");
    let mut xml = XmlWriter::with_capacity(1024 + ENTRY_BYTES * page.parts.len());
    xml.open_root("ListPartsResult");
    xml.text("Bucket", bucket);
    request.encoding.write(&mut xml, "Key", key)?;
    if request.encoding == NameEncoding::Url {
        xml.text("EncodingType", "url");
    }
    xml.value("UploadId", page.upload.id);
    account::write_owner_as(&mut xml, "Initiator");
    account::write_owner(&mut xml);
    xml.text("StorageClass", "STANDARD");
    xml.value("PartNumberMarker", request.after);
    let last = page.parts.last().map_or(0, |last| last.number);
    // As on AWS, the last page names its last part.
    if request.mode == Compatibility::Extended || (page.is_truncated && last > 0) {
        xml.value("NextPartNumberMarker", last);
    }
    xml.value("MaxParts", request.max);
    xml.value("IsTruncated", page.is_truncated);
    write_upload_checksum(&mut xml, page.upload.upload.checksum);
    for part in &page.parts {
        write_part(&mut xml, part);
    }
    xml.close("ListPartsResult");
    Ok(xml)
}

fn write_part(xml: &mut XmlWriter, part: &PartInfo) {
    xml.open("Part");
    xml.value("PartNumber", part.number);
    xml.time("LastModified", part.last_modified);
    xml.value("ETag", format_args!("&quot;{}&quot;", part.etag()));
    xml.value("Size", part.size);
    if let Some((algorithm, digest)) = &part.checksum {
        xml.text(checksum::element(*algorithm), &checksum::text(digest));
    }
    xml.close("Part");
}

#[cfg(test)]
mod tests {
    use super::{document, list_request};
    use crate::compatibility::Compatibility;
    use crate::request::query::Query;
    use crate::xml::reader::{Element, parse};
    use cairn_engine::{
        ChecksumAlgorithm, ChecksumKind, NewUpload, PartInfo, PartsPage, UploadChecksum, UploadInfo,
    };
    use cairn_model::{Timestamp, UploadId};

    #[test]
    fn page_lists_parts_and_the_next_marker() {
        let query = Query::parse(Some("max-parts=1&part-number-marker=6&encoding-type=url")).expect("parses");
        let checksum = UploadChecksum { algorithm: ChecksumAlgorithm::Crc32, kind: ChecksumKind::FullObject };
        let upload = NewUpload { checksum: Some(checksum), ..NewUpload::default() };
        let part = PartInfo {
            number: 7,
            size: 3,
            md5: [0xab; 16],
            is_opaque: false,
            last_modified: Timestamp(784_111_777_123),
            checksum: Some((ChecksumAlgorithm::Crc32, vec![0, 0, 0, 1])),
        };
        let page = PartsPage {
            upload: UploadInfo { id: UploadId(10), initiated: Timestamp(0), upload },
            parts: vec![part],
            is_truncated: true,
        };
        let xml = document(
            ("photos", "a b"),
            &list_request(&query, Compatibility::Extended).expect("valid"),
            &page,
        )
        .expect("writes");
        let root = parse(&xml.finish()).expect("well-formed");
        let text = |name| root.child(name).map(Element::text);
        for (name, value) in [
            ("Bucket", "photos"),
            ("Key", "a%20b"),
            ("EncodingType", "url"),
            ("UploadId", "u000000000000000a"),
            ("PartNumberMarker", "6"),
            ("NextPartNumberMarker", "7"),
            ("MaxParts", "1"),
            ("IsTruncated", "true"),
            ("ChecksumAlgorithm", "CRC32"),
            ("ChecksumType", "FULL_OBJECT"),
        ] {
            assert_eq!(text(name), Some(value), "{name}");
        }
        let part = root.child("Part").expect("one");
        for (name, value) in [
            ("PartNumber", "7"),
            ("LastModified", "1994-11-06T08:49:37.000Z"),
            ("ETag", &*format!("\"{}\"", "ab".repeat(16))),
            ("Size", "3"),
            ("ChecksumCRC32", "AAAAAQ=="),
        ] {
            assert_eq!(part.child(name).map(Element::text), Some(value), "{name}");
        }
        assert!(root.child("Initiator").is_some() && root.child("Owner").is_some());
    }

    #[test]
    fn markers_and_page_sizes_are_numbers() {
        let parsed =
            |raw: &str| list_request(&Query::parse(Some(raw)).expect("parses"), Compatibility::Extended);
        assert_eq!(parsed("max-parts=5000&part-number-marker=99999").expect("ok").after, 99999);
        assert_eq!(parsed("max-parts=5000").expect("ok").max, 1000);
        for bad in ["max-parts=-1", "max-parts=x", "part-number-marker=x", "part-number-marker=-1"] {
            assert_eq!(parsed(bad).expect_err(bad).code(), "InvalidArgument");
        }
    }
}
