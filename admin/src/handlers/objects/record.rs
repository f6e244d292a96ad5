//! JSON forms of objects: a short one for lists and a full one for a single object.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_api::{ObjectEntry, ObjectPart, ObjectRecord, Tag};
use cairn_engine::{Bucket, ChecksumAlgorithm, ChecksumKind, ObjectInfo, Versioning};
use cairn_transfer::stored_content_type;

use super::headers::{CONTENT_TYPE, METADATA_PREFIX};
use super::lock::retention_body;

/// Returns the body of an object in a list.
pub(crate) fn object_entry(bucket: &Bucket, key: String, info: &ObjectInfo) -> ObjectEntry {
    let is_versioned = bucket.versioning() != Versioning::Unversioned;
    ObjectEntry {
        key: key.into(),
        size: info.size,
        etag: info.etag.to_string().into(),
        last_modified: info.last_modified.into(),
        content_type: stored_content_type(&info.attributes),
        version_id: is_versioned.then(|| info.version_name().to_string().into()),
        retention: info.lock.retention.map(retention_body),
        legal_hold: info.lock.legal_hold == Some(true),
    }
}

/// Returns the body of an object with all its metadata.
pub(crate) fn object_record(bucket: &Bucket, key: String, info: &ObjectInfo) -> ObjectRecord {
    let attributes = &info.attributes;
    let (mut metadata, mut headers) = (BTreeMap::new(), BTreeMap::new());
    for (name, value) in &attributes.headers {
        // Clients may have sent bytes that are not UTF-8.
        let value = String::from_utf8_lossy(value).into_owned();
        if let Some(name) = name.strip_prefix(METADATA_PREFIX) {
            metadata.insert(name.to_owned(), value);
        } else if name != CONTENT_TYPE {
            headers.insert(name.clone(), value);
        }
    }
    let checksum = |(algorithm, digest): &(ChecksumAlgorithm, Vec<u8>)| {
        let digest = STANDARD.encode(digest);
        let text = match attributes.checksum_kind {
            ChecksumKind::FullObject => digest,
            ChecksumKind::Composite => format!("{digest}-{}", info.etag.parts),
        };
        (checksum_name(*algorithm).to_owned(), text)
    };
    ObjectRecord {
        object: object_entry(bucket, key, info),
        metadata,
        headers,
        checksums: attributes.checksums.iter().map(checksum).collect(),
        tags: attributes
            .tags
            .iter()
            .map(|(key, value)| Tag { key: key.to_owned(), value: value.to_owned() })
            .collect(),
        parts: parts(info),
        encrypted: info.encrypted,
    }
}

fn parts(info: &ObjectInfo) -> Vec<ObjectPart> {
    let of_run = |run: &cairn_engine::PartRun| {
        let (first, size) = (u32::from(run.first), run.size);
        (first..first + u32::from(run.count)).map(move |part_number| ObjectPart { part_number, size })
    };
    info.parts.iter().flat_map(of_run).collect()
}

const fn checksum_name(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Crc32 => "crc32",
        ChecksumAlgorithm::Crc32c => "crc32c",
        ChecksumAlgorithm::Crc64Nvme => "crc64nvme",
        ChecksumAlgorithm::Sha1 => "sha1",
        ChecksumAlgorithm::Sha256 => "sha256",
        ChecksumAlgorithm::Sha512 => "sha512",
        ChecksumAlgorithm::Md5 => "md5",
        ChecksumAlgorithm::XxHash64 => "xxhash64",
        ChecksumAlgorithm::XxHash3 => "xxhash3",
        ChecksumAlgorithm::XxHash128 => "xxhash128",
    }
}
