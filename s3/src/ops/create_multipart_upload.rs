//! CreateMultipartUpload. Source: API Reference, CreateMultipartUpload; "Checking object integrity" for checksum types.

use crate::body::declared::named_algorithm;
use crate::call::Call;
use crate::errors::{S3Error, S3Result};
use crate::headers::attributes;
use crate::headers::checksum;
use crate::headers::encryption;
use crate::headers::expiration;
use crate::headers::object_lock;
use crate::headers::write_conditions;
use crate::multipart::refuse_conflicting_parameter;
use crate::reply::Reply;
use crate::request::fields::Fields;
use crate::xml::writer::{XmlWriter, xml_can_represent};
use cairn_engine::{NewUpload, UploadChecksum};

pub(crate) async fn create_multipart_upload(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    refuse_conflicting_parameter(call, "uploads", "uploadId")?;
    write_conditions::refuse_on_upload_step(call.fields, call.operation)?;
    if !xml_can_represent(key.as_str()) {
        return Err(S3Error::invalid_request(
            "The key has characters that XML 1.0 cannot represent, so no response could name it: put the object with PutObject.",
        ));
    }
    let attributes = attributes::from_request(call.fields)?;
    let lock = object_lock::of_new_version(call.fields, &bucket.settings(), call.now)?;
    let checksum = upload_checksum(call.fields)?;
    let upload = NewUpload { attributes, lock, checksum };
    let begun = call.engine.create_upload(&bucket, &key, upload).await?;

    let mut xml = XmlWriter::with_capacity(512);
    xml.open_root("InitiateMultipartUploadResult");
    xml.text("Bucket", bucket.name.as_str());
    xml.text("Key", key.as_str());
    xml.value("UploadId", begun.id);
    xml.close("InitiateMultipartUploadResult");
    let mut reply = Reply::xml(xml);
    encryption::write(&mut reply.head, call.compatibility, call.engine.store().encrypts_at_rest());
    if let Some(UploadChecksum { algorithm, kind }) = checksum {
        reply.head.header("x-amz-checksum-algorithm", checksum::name(algorithm));
        reply.head.header("x-amz-checksum-type", checksum::kind_name(kind));
    }
    expiration::write_abort_headers(&mut reply.head, call.engine.store(), &bucket, &key, begun.initiated);
    Ok(reply)
}

/// Parses the checksum that the headers ask for.
///
/// # Errors
/// `NotImplemented` for an unknown algorithm; `InvalidRequest` for an unknown type, a type that the algorithm does not
/// have, and a type without an algorithm.
fn upload_checksum(fields: Fields<'_>) -> S3Result<Option<UploadChecksum>> {
    const ALGORITHM: &str = "x-amz-checksum-algorithm";
    let kind =
        match fields.text("x-amz-checksum-type") {
            None => None,
            Some(text) => Some(checksum::of_kind_name(text).ok_or_else(|| {
                S3Error::invalid_request("Value for x-amz-checksum-type header is invalid.")
            })?),
        };
    let Some(named) = fields.text(ALGORITHM).filter(|named| !named.is_empty()) else {
        return match kind {
            None => Ok(None),
            Some(_) => Err(S3Error::invalid_request(
                "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.",
            )),
        };
    };
    let algorithm = named_algorithm(ALGORITHM, named)?;
    let kinds = checksum::kinds_in_parts(algorithm);
    let kind = kind.unwrap_or(kinds[0]);
    if kinds.contains(&kind) {
        return Ok(Some(UploadChecksum { algorithm, kind }));
    }
    let (kind, name) = (checksum::kind_name(kind), checksum::name(algorithm));
    Err(S3Error::invalid_request(format!(
        "The {kind} checksum type cannot be used with the {name} checksum algorithm."
    )))
}

#[cfg(test)]
mod tests {
    use super::upload_checksum;
    use crate::errors::S3Result;
    use crate::request::fields::Fields;
    use crate::request::query::Query;
    use cairn_engine::ChecksumAlgorithm::{
        Crc32, Crc32c, Crc64Nvme, Md5, Sha1, Sha256, Sha512, XxHash3, XxHash64, XxHash128,
    };
    use cairn_engine::ChecksumKind::{Composite, FullObject};
    use cairn_engine::UploadChecksum;

    fn parsed(algorithm: Option<&str>, kind: Option<&str>) -> S3Result<Option<UploadChecksum>> {
        let mut headers: Vec<(&str, &[u8])> = Vec::new();
        headers.extend(algorithm.map(|text| ("x-amz-checksum-algorithm", text.as_bytes())));
        headers.extend(kind.map(|text| ("x-amz-checksum-type", text.as_bytes())));
        upload_checksum(Fields::new(&headers, &Query::default()))
    }

    #[test]
    fn algorithms_have_the_types_of_aws() {
        for (name, algorithm, kind) in [
            ("CRC32", Crc32, Composite),
            ("crc32c", Crc32c, Composite),
            ("CRC64NVME", Crc64Nvme, FullObject),
            ("SHA1", Sha1, Composite),
            ("SHA256", Sha256, Composite),
            ("SHA512", Sha512, Composite),
            ("MD5", Md5, Composite),
            ("XXHASH64", XxHash64, Composite),
            ("xxhash3", XxHash3, Composite),
            ("XXHASH128", XxHash128, Composite),
        ] {
            assert_eq!(parsed(Some(name), None).expect(name), Some(UploadChecksum { algorithm, kind }));
        }
        for (name, kind, allowed) in [
            ("CRC32", "FULL_OBJECT", true),
            ("CRC32C", "full_object", true),
            ("CRC64NVME", "FULL_OBJECT", true),
            ("SHA256", "COMPOSITE", true),
            ("SHA1", "FULL_OBJECT", false),
            ("SHA256", "FULL_OBJECT", false),
            ("SHA512", "FULL_OBJECT", false),
            ("MD5", "FULL_OBJECT", false),
            ("XXHASH64", "FULL_OBJECT", false),
            ("XXHASH3", "FULL_OBJECT", false),
            ("XXHASH128", "FULL_OBJECT", false),
            ("XXHASH128", "COMPOSITE", true),
            ("CRC64NVME", "COMPOSITE", false),
            ("CRC32", "NONE", false),
            ("", "COMPOSITE", false),
        ] {
            let found = parsed(Some(name), Some(kind));
            assert_eq!(found.is_ok(), allowed, "{name} {kind}");
            assert!(found.is_ok_and(|found| found.is_some()) || !allowed, "{name} {kind}");
        }
        assert_eq!(parsed(None, None).expect("none"), None);
        assert_eq!(parsed(None, Some("COMPOSITE")).expect_err("no algorithm").code(), "InvalidRequest");
        assert_eq!(parsed(Some("XXHASH32"), None).expect_err("unknown").status(), 501);
    }
}
