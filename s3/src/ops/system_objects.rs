//! The objects that the server answers for the Smart Object Storage API.
//!
//! Source: Veeam Smart Object Storage API 1.0.
//! Veeam reads `ProtocolVersion` and `ModelName` with double quotes in their text, and takes `APIEndpoints` for a promise of
//! IAM and STS, and `SystemRecommendations` for limits that were agreed with it. So both are left out.

use crate::call::Call;
use crate::headers::version;
use crate::request::sosapi::SystemObject;
use crate::xml::writer::XmlWriter;
use cairn_engine::{Attributes, Bucket, ObjectInfo, ObjectLock};
use cairn_md5::Md5;
use cairn_model::{Etag, VersionId, VersionName, u64_of};

/// Bytes that hold either document.
const DOCUMENT_BYTES: usize = 512;

/// An object that is made for one request.
pub(crate) struct MadeObject {
    pub(crate) info: ObjectInfo,
    pub(crate) content: Vec<u8>,
}

/// Returns the object that the server answers itself, if the request asks for the current version of one, or for the version
/// `null`. Other versions of its key can only be stored ones.
pub(crate) fn made_object(call: &Call<'_>, bucket: &Bucket) -> Option<MadeObject> {
    let object = call.system_object()?;
    if !matches!(version::requested(call.query), Ok(None | Some(VersionName::Null))) {
        return None;
    }
    let (content, last_modified) = match object {
        SystemObject::System => (system(), bucket.created_at),
        SystemObject::Capacity => (capacity(call, bucket), call.now),
    };
    let mut md5 = Md5::new();
    md5.update(&content);
    let headers = vec![("content-type".to_owned(), b"application/xml".to_vec())];
    let info = ObjectInfo {
        size: u64_of(content.len()),
        etag: Etag::single(md5.finish()),
        last_modified,
        version: VersionId(0),
        is_null: true,
        imported: None,
        attributes: Attributes { headers, ..Attributes::default() },
        encrypted: false,
        lock: ObjectLock::default(),
        parts: Vec::new(),
    };
    Some(MadeObject { info, content })
}

fn system() -> Vec<u8> {
    let mut xml = XmlWriter::with_capacity(DOCUMENT_BYTES);
    xml.open("SystemInfo");
    xml.value("ProtocolVersion", "\"1.0\"");
    xml.value("ModelName", "\"Cairn\"");
    xml.open("ProtocolCapabilities");
    xml.value("CapacityInfo", true);
    xml.value("UploadSessions", false);
    xml.value("IAMSTS", false);
    xml.close("ProtocolCapabilities");
    xml.close("SystemInfo");
    xml.finish()
}

/// Without a quota, the capacity is that of the file system, and versions and parts count as used. With one, the three
/// figures are about what counts against it.
fn capacity(call: &Call<'_>, bucket: &Bucket) -> Vec<u8> {
    let (usage, room) = (bucket.usage(), call.engine.store().room());
    let (capacity, available, used) = match bucket.settings().quota.bytes {
        Some(quota) => (quota, room.writable_bytes.min(quota.saturating_sub(usage.bytes)), usage.bytes),
        None => {
            let used = usage.version_bytes.saturating_add(usage.part_bytes);
            (room.capacity_bytes, room.writable_bytes, used)
        }
    };
    let mut xml = XmlWriter::with_capacity(DOCUMENT_BYTES);
    xml.open("CapacityInfo");
    xml.value("Capacity", capacity);
    xml.value("Available", available);
    xml.value("Used", used);
    xml.close("CapacityInfo");
    xml.finish()
}
