//! GetObjectAttributes. Source: API Reference, GetObjectAttributes.
//!
//! The parts of an object are listed only if its checksum is a composite, as on AWS; otherwise only their number is
//! returned.

use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::{S3Error, S3Result};
use crate::headers::checksum;
use crate::headers::version;
use crate::ops::list_page::{self, KEYS_MAX};
use crate::reply::Reply;
use crate::request::fields::Fields;
use crate::xml::writer::XmlWriter;
use cairn_engine::{ChecksumKind, ObjectInfo, ObjectParts};
use cairn_http1::http_date;

const ATTRIBUTES: &str = "x-amz-object-attributes";
const MAX_PARTS: &str = "x-amz-max-parts";
const PART_MARKER: &str = "x-amz-part-number-marker";

/// The attributes that the client asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    etag: bool,
    checksum: bool,
    parts: bool,
    storage_class: bool,
    size: bool,
    /// Most parts of the page.
    max: usize,
    /// The parts of the page have higher numbers.
    after: u16,
}

pub(crate) fn get_object_attributes(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let version = version::requested(call.query)?;
    let wanted = wanted(call.fields)?;
    let found = call.engine.object_parts(&bucket, &key, version, wanted.after, wanted.max);
    let found = found.map_err(|error| version::read_error(error, version, call.head.method()))?;
    let mut reply = Reply::xml(document(&wanted, &found));
    reply.head.header("last-modified", http_date(found.info.last_modified.seconds()));
    version::write_id(&mut reply.head, &bucket, found.info.version_name());
    Ok(reply)
}

/// Parses what the client asks for.
///
/// # Errors
/// `InvalidArgument` for no attribute, an unknown one, or an invalid page.
fn wanted(fields: Fields<'_>) -> S3Result<Wanted> {
    let number = |name| match fields.amz(name) {
        None => Ok(None),
        Some(text) => list_page::number(name, text, Compatibility::Extended).map(Some),
    };
    let mut wanted = Wanted {
        max: number(MAX_PARTS)?.unwrap_or(KEYS_MAX).min(KEYS_MAX),
        after: u16::try_from(number(PART_MARKER)?.unwrap_or(0)).unwrap_or(u16::MAX),
        ..Wanted::default()
    };
    let headers = fields.headers().iter().filter(|(name, _)| *name == ATTRIBUTES);
    let headers = headers.map(|(_, value)| std::str::from_utf8(value).unwrap_or("\u{fffd}"));
    let hoisted = fields.hoisted().filter(|(name, _)| *name == ATTRIBUTES).map(|(_, value)| value);
    let names = headers.chain(hoisted).flat_map(|value| value.split(',')).map(str::trim);
    let mut count = 0;
    for name in names.filter(|name| !name.is_empty()) {
        count += 1;
        *match name {
            "ETag" => &mut wanted.etag,
            "Checksum" => &mut wanted.checksum,
            "ObjectParts" => &mut wanted.parts,
            "StorageClass" => &mut wanted.storage_class,
            "ObjectSize" => &mut wanted.size,
            _ => {
                return Err(S3Error::invalid_argument(ATTRIBUTES, name, "Invalid attribute name specified."));
            }
        } = true;
    }
    if count == 0 {
        let message = "The x-amz-object-attributes header specifying the attributes to be retrieved is either missing or empty";
        return Err(S3Error::invalid_argument(ATTRIBUTES, "", message));
    }
    Ok(wanted)
}

fn document(wanted: &Wanted, found: &ObjectParts) -> XmlWriter {
    let info = &found.info;
    let mut xml = XmlWriter::with_capacity(512 + 128 * found.parts.len());
    xml.open_root("GetObjectAttributesResponse");
    if wanted.etag {
        // Without quotes, as on AWS.
        xml.value("ETag", info.etag);
    }
    if wanted.checksum && !info.attributes.checksums.is_empty() {
        xml.open("Checksum");
        for (algorithm, digest) in &info.attributes.checksums {
            // Without the number of parts, as on AWS.
            xml.text(checksum::element(*algorithm), &checksum::text(digest));
        }
        xml.text("ChecksumType", checksum::kind_name(info.attributes.checksum_kind));
        xml.close("Checksum");
    }
    if wanted.parts && !info.parts.is_empty() {
        write_parts(&mut xml, wanted, found);
    }
    if wanted.storage_class {
        xml.text("StorageClass", "STANDARD");
    }
    if wanted.size {
        xml.value("ObjectSize", info.size);
    }
    xml.close("GetObjectAttributesResponse");
    xml
}

fn write_parts(xml: &mut XmlWriter, wanted: &Wanted, found: &ObjectParts) {
    xml.open("ObjectParts");
    if lists_parts(&found.info) {
        xml.value("PartNumberMarker", wanted.after);
        xml.value("NextPartNumberMarker", found.parts.last().map_or(0, |last| last.number));
        xml.value("MaxParts", wanted.max);
        // As in lists, a page of no parts has no next one.
        xml.value("IsTruncated", found.is_truncated && wanted.max > 0);
        for part in &found.parts {
            xml.open("Part");
            if let Some((algorithm, digest)) = &part.checksum {
                xml.text(checksum::element(*algorithm), &checksum::text(digest));
            }
            xml.value("PartNumber", part.number);
            xml.value("Size", part.size);
            xml.close("Part");
        }
    }
    xml.value("PartsCount", found.info.etag.parts);
    xml.close("ObjectParts");
}

fn lists_parts(info: &ObjectInfo) -> bool {
    info.attributes.checksum_kind == ChecksumKind::Composite && !info.attributes.checksums.is_empty()
}

#[cfg(test)]
mod tests {
    use super::{Wanted, document, wanted};
    use crate::errors::S3Result;
    use crate::request::fields::Fields;
    use crate::request::query::Query;
    use crate::xml::reader::parse;
    use cairn_engine::{
        Attributes, ChecksumAlgorithm, ChecksumKind, ObjectInfo, ObjectLock, ObjectParts, PartInfo, PartRun,
    };
    use cairn_model::{Etag, Timestamp, VersionId};

    fn asked(headers: &[(&str, &str)]) -> S3Result<Wanted> {
        let headers: Vec<(&str, &[u8])> =
            headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        wanted(Fields::new(&headers, &Query::default()))
    }

    #[test]
    fn attributes_are_named_in_one_header_or_several() {
        let found = asked(&[
            ("x-amz-object-attributes", "ETag, ObjectSize"),
            ("x-amz-object-attributes", "StorageClass"),
            ("x-amz-max-parts", "2147483647"),
            ("x-amz-part-number-marker", "7"),
        ]);
        let expected =
            Wanted { etag: true, size: true, storage_class: true, max: 1000, after: 7, ..Wanted::default() };
        assert_eq!(found.expect("ok"), expected);
        for bad in [
            &[][..],
            &[("x-amz-object-attributes", "")][..],
            &[("x-amz-object-attributes", "ETag"), ("x-amz-max-parts", "2147483648")],
            &[("x-amz-object-attributes", "etag")],
            &[("x-amz-object-attributes", "ETag,Owner")],
            &[("x-amz-object-attributes", "ETag"), ("x-amz-max-parts", "-1")],
            &[("x-amz-object-attributes", "ETag"), ("x-amz-part-number-marker", "x")],
        ] {
            assert_eq!(asked(bad).expect_err("refused").code(), "InvalidArgument", "{bad:?}");
        }
    }

    #[test]
    fn parts_are_listed_only_with_a_composite_checksum() {
        let part = |number| PartInfo {
            number,
            size: 5,
            md5: [0; 16],
            is_opaque: false,
            last_modified: Timestamp(0),
            checksum: Some((ChecksumAlgorithm::Crc32, vec![0, 0, 0, 1])),
        };
        let found = |checksums, checksum_kind| ObjectParts {
            info: ObjectInfo {
                size: 15,
                etag: Etag { md5: [0xab; 16], parts: 3 },
                last_modified: Timestamp(0),
                version: VersionId(1),
                is_null: true,
                imported: None,
                attributes: Attributes { checksums, checksum_kind, ..Attributes::default() },
                encrypted: false,
                lock: ObjectLock::default(),
                parts: vec![PartRun { first: 1, count: 3, size: 5 }],
            },
            parts: vec![part(2)],
            is_truncated: true,
        };
        let all = Wanted {
            etag: true,
            checksum: true,
            parts: true,
            storage_class: true,
            size: true,
            max: 1,
            after: 1,
        };
        let names = |found: &ObjectParts| {
            let root = parse(&document(&all, found).finish()).expect("well-formed");
            assert_eq!(
                root.child("ETag").map(|etag| etag.text().to_owned()),
                Some(format!("{}-3", "ab".repeat(16)))
            );
            let parts = root.child("ObjectParts").expect("there");
            let parts = parts.children().iter().map(|child| format!("{}={}", child.name(), child.text()));
            (parts.collect::<Vec<_>>(), root.child("Checksum").is_some())
        };
        let only_count = || vec!["PartsCount=3".to_owned()];
        assert_eq!(names(&found(Vec::new(), ChecksumKind::Composite)), (only_count(), false));
        let listed = [
            "PartNumberMarker=1",
            "NextPartNumberMarker=2",
            "MaxParts=1",
            "IsTruncated=true",
            "Part=",
            "PartsCount=3",
        ];
        let checksums = vec![(ChecksumAlgorithm::Crc32, vec![0, 0, 0, 1])];
        assert_eq!(names(&found(checksums.clone(), ChecksumKind::FullObject)), (only_count(), true));
        let listed = listed.map(str::to_owned).to_vec();
        assert_eq!(names(&found(checksums, ChecksumKind::Composite)), (listed, true));
    }
}
