//! JSON forms of objects: a short one for lists and a full one for a single object.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_engine::{Bucket, ChecksumAlgorithm, ChecksumKind, ObjectInfo, Versioning};
use cairn_http1::iso8601_millis;
use cairn_transfer::stored_content_type;
use serde::Serialize;

use super::headers::{CONTENT_TYPE, METADATA_PREFIX};
use super::lock::RetentionBody;

/// An object in a list.
#[derive(Serialize)]
pub(crate) struct ObjectBody {
    key: String,
    size: u64,
    etag: String,
    last_modified: String,
    content_type: String,
    /// Only if versioning is enabled or suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    version_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retention: Option<RetentionBody>,
    legal_hold: bool,
}

impl ObjectBody {
    pub(crate) fn new(bucket: &Bucket, key: String, info: &ObjectInfo) -> Self {
        let is_versioned = bucket.versioning() != Versioning::Unversioned;
        Self {
            key,
            size: info.size,
            etag: info.etag.to_string(),
            last_modified: iso8601_millis(info.last_modified.0),
            content_type: stored_content_type(&info.attributes),
            version_id: is_versioned.then(|| info.version_name().to_string()),
            retention: info.lock.retention.map(RetentionBody::from),
            legal_hold: info.lock.legal_hold == Some(true),
        }
    }
}

/// All metadata of an object.
#[derive(Serialize)]
pub(crate) struct ObjectRecord {
    #[serde(flatten)]
    object: ObjectBody,
    /// The user metadata; names without their prefix.
    metadata: BTreeMap<String, String>,
    /// The other stored headers.
    headers: BTreeMap<String, String>,
    /// Checksums in Base64. A composite checksum is followed by `-` and the number of parts.
    checksums: BTreeMap<&'static str, String>,
    /// The parts of a multipart upload.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<PartBody>,
    encrypted: bool,
}

#[derive(Serialize)]
struct PartBody {
    part_number: u32,
    size: u64,
}

impl ObjectRecord {
    pub(crate) fn new(bucket: &Bucket, key: String, info: &ObjectInfo) -> Self {
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
            (checksum_name(*algorithm), text)
        };
        Self {
            object: ObjectBody::new(bucket, key, info),
            metadata,
            headers,
            checksums: attributes.checksums.iter().map(checksum).collect(),
            parts: parts(info),
            encrypted: info.encrypted,
        }
    }
}

fn parts(info: &ObjectInfo) -> Vec<PartBody> {
    let of_run = |run: &cairn_engine::PartRun| {
        let (first, size) = (u32::from(run.first), run.size);
        (first..first + u32::from(run.count)).map(move |part_number| PartBody { part_number, size })
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
    }
}
