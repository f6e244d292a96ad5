//! ListParts. Source: API Reference, ListParts.

use crate::account;
use crate::call::Call;
use crate::checksum;
use crate::errors::{S3Error, S3Result};
use crate::multipart::{named_upload, refuse_beside, write_upload_checksum};
use crate::ops::list_page;
use crate::ops::names::NameEncoding;
use crate::query::Query;
use crate::reply::Reply;
use crate::xml::writer::XmlWriter;
use cairn_engine::{PartInfo, PartsPage};
use cairn_http1::iso8601_millis;

/// Bytes of XML around one part, for the first allocation.
const ENTRY_BYTES: usize = 192;

/// What the query asks for.
#[derive(Debug)]
struct Asked {
    max: usize,
    after: u16,
    encoding: NameEncoding,
}

pub(crate) fn list_parts(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key, id) = named_upload(call)?;
    refuse_beside(call, "uploadId", "partNumber")?;
    let asked = asked(call.query)?;
    let mut page = call.engine.list_parts(&bucket, &key, id, asked.after, asked.max.max(1))?;
    if asked.max == 0 {
        // A page of none is never truncated, though more may follow.
        page = PartsPage { parts: Vec::new(), is_truncated: false, ..page };
    }
    Ok(Reply::xml(document((bucket.name.as_str(), key.as_str()), &asked, &page)?))
}

fn asked(query: &Query<'_>) -> S3Result<Asked> {
    let after = match query.get_non_empty("part-number-marker") {
        None => 0,
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().unwrap_or(u16::MAX),
        Some(text) => {
            let message = "Provided part-number-marker is not a non-negative integer.";
            return Err(S3Error::invalid_argument("part-number-marker", text, message));
        }
    };
    let max = list_page::page_size(query, "max-parts")?;
    Ok(Asked { max, after, encoding: NameEncoding::parse(query.get("encoding-type"))? })
}

fn document((bucket, key): (&str, &str), asked: &Asked, page: &PartsPage) -> S3Result<XmlWriter> {
    let mut xml = XmlWriter::with_capacity(1024 + ENTRY_BYTES * page.parts.len());
    xml.open_root("ListPartsResult");
    xml.text("Bucket", bucket);
    asked.encoding.write(&mut xml, "Key", key)?;
    if asked.encoding == NameEncoding::Url {
        xml.text("EncodingType", "url");
    }
    xml.value("UploadId", page.upload.id);
    account::write_owner_as(&mut xml, "Initiator");
    account::write_owner(&mut xml);
    xml.text("StorageClass", "STANDARD");
    xml.value("PartNumberMarker", asked.after);
    if let (true, Some(last)) = (page.is_truncated, page.parts.last()) {
        xml.value("NextPartNumberMarker", last.number);
    }
    xml.value("MaxParts", asked.max);
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
    xml.value("LastModified", iso8601_millis(part.last_modified.0));
    xml.value("ETag", format_args!("&quot;{}&quot;", hex::encode(part.md5)));
    xml.value("Size", part.size);
    if let Some((algorithm, digest)) = &part.checksum {
        xml.text(checksum::element(*algorithm), &checksum::text(digest));
    }
    xml.close("Part");
}

#[cfg(test)]
mod tests {
    use super::{asked, document};
    use crate::query::Query;
    use crate::xml::reader::{Element, parse};
    use cairn_engine::{
        ChecksumAlgorithm, ChecksumKind, NewUpload, PartInfo, PartsPage, UploadChecksum, UploadInfo,
    };
    use cairn_model::{Timestamp, UploadId};

    #[test]
    fn a_page_tells_its_parts_and_where_the_next_begins() {
        let query = Query::parse(Some("max-parts=1&part-number-marker=6&encoding-type=url")).expect("parses");
        let checksum = UploadChecksum { algorithm: ChecksumAlgorithm::Crc32, kind: ChecksumKind::FullObject };
        let upload = NewUpload { checksum: Some(checksum), ..NewUpload::default() };
        let part = PartInfo {
            number: 7,
            size: 3,
            md5: [0xab; 16],
            last_modified: Timestamp(784_111_777_123),
            checksum: Some((ChecksumAlgorithm::Crc32, vec![0, 0, 0, 1])),
        };
        let page = PartsPage {
            upload: UploadInfo { id: UploadId(10), initiated: Timestamp(0), upload },
            parts: vec![part],
            is_truncated: true,
        };
        let xml = document(("photos", "a b"), &asked(&query).expect("valid"), &page).expect("writes");
        let root = parse(&xml.finish()).expect("well-formed");
        let text = |name| root.child(name).map(Element::text);
        for (name, value) in [
            ("Bucket", "photos"),
            ("Key", "a%20b"),
            ("EncodingType", "url"),
            ("UploadId", "000000000000000a"),
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
            ("LastModified", "1994-11-06T08:49:37.123Z"),
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
        let asked_of = |raw: &str| asked(&Query::parse(Some(raw)).expect("parses"));
        assert_eq!(asked_of("max-parts=5000&part-number-marker=99999").expect("ok").after, u16::MAX);
        assert_eq!(asked_of("max-parts=5000").expect("ok").max, 1000);
        for bad in ["max-parts=-1", "max-parts=x", "part-number-marker=x", "part-number-marker=-1"] {
            assert_eq!(asked_of(bad).expect_err(bad).code(), "InvalidArgument");
        }
    }
}
