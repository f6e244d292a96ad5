//! Objects: lists, versions, uploads, metadata, locks, copies.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::buckets::RetentionMode;
use crate::lifecycle::Tag;
use crate::optional::or_default;
use crate::reading::tolerant;
use crate::text::{BucketName, EntityTag, ObjectKey, Time, UploadId, VersionId};

/// Until when a version cannot be deleted.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retention {
    pub mode: RetentionMode,
    pub retain_until: Time,
}

/// The retention of a version.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RetentionOfVersion {
    pub retention: Option<Retention>,
}

/// retain_until must be in the future. bypass_governance allows a retention with GOVERNANCE to be made shorter, weaker or
/// be removed.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["retention"]))]
pub struct SetRetention {
    /// Null removes the retention.
    #[serde(deserialize_with = "Option::deserialize")]
    pub retention: Option<Retention>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<bool>")]
    pub bypass_governance: bool,
}

/// The legal hold of a version. While it is on, the version cannot be deleted.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LegalHold {
    pub legal_hold: bool,
}

/// An object in a list.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ObjectEntry {
    pub key: ObjectKey,
    pub size: u64,
    pub etag: EntityTag,
    pub last_modified: Time,
    pub content_type: String,
    /// Only if versioning is enabled or suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_id: Option<VersionId>,
    #[serde(default, deserialize_with = "tolerant", skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    pub legal_hold: bool,
}

/// A page of current objects in key order.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ObjectPage {
    #[schemars(length(max = 1000))]
    pub objects: Vec<ObjectEntry>,
    #[schemars(length(max = 1000))]
    pub common_prefixes: Vec<String>,
    /// Null on the last page.
    pub next_continuation_token: Option<String>,
}

/// A part of a multipart upload.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ObjectPart {
    #[schemars(range(min = 1, max = 10000))]
    pub part_number: u32,
    pub size: u64,
}

/// All metadata of an object.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ObjectRecord {
    #[serde(flatten)]
    pub object: ObjectEntry,
    /// x-amz-meta-*, names without the prefix.
    pub metadata: BTreeMap<String, String>,
    /// The other stored headers.
    pub headers: BTreeMap<String, String>,
    /// In Base64. A composite checksum is followed by - and the number of parts.
    #[schemars(extend("additionalProperties" = false, "properties" = {
        "crc32": {"type": "string"}, "crc32c": {"type": "string"}, "crc64nvme": {"type": "string"},
        "sha1": {"type": "string"}, "sha256": {"type": "string"}, "sha512": {"type": "string"},
        "md5": {"type": "string"}, "xxhash64": {"type": "string"}, "xxhash3": {"type": "string"},
        "xxhash128": {"type": "string"},
    }))]
    pub checksums: BTreeMap<String, String>,
    /// Left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub tags: Vec<Tag>,
    /// The parts, if the object was uploaded in parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000))]
    pub parts: Vec<ObjectPart>,
    pub encrypted: bool,
}

/// A version or a delete marker. A delete marker has no entity tag and 0 bytes.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ObjectVersion {
    pub key: ObjectKey,
    pub version_id: VersionId,
    pub is_latest: bool,
    pub is_delete_marker: bool,
    pub size: u64,
    pub etag: Option<EntityTag>,
    pub last_modified: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    pub legal_hold: bool,
    /// Whether it was imported from another store. Left out if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
}

/// A page of versions in key order, the newest of a key first. Both markers are null on the last page. The version marker is
/// also null if the page ends with the last version of a key.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct VersionPage {
    #[schemars(length(max = 1000))]
    pub versions: Vec<ObjectVersion>,
    pub next_key_marker: Option<String>,
    pub next_version_id_marker: Option<String>,
}

/// An unfinished multipart upload.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Upload {
    pub key: ObjectKey,
    pub upload_id: UploadId,
    pub initiated_at: Time,
}

/// A page of unfinished uploads in key order. Both markers are null on the last page.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct UploadPage {
    #[schemars(length(max = 1000))]
    pub multipart_uploads: Vec<Upload>,
    pub next_key_marker: Option<String>,
    pub next_upload_id_marker: Option<String>,
}

/// The tags of a version. They replace those that it has.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectTags {
    #[schemars(length(max = 10))]
    pub tags: Vec<Tag>,
}

/// Content type, headers and metadata of an object. They replace all that it has.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetObjectMetadata {
    /// Null: binary/octet-stream.
    pub content_type: Option<String>,
    /// The other stored headers.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<BTreeMap<String, String>>", extend("additionalProperties" = false, "properties" = {
        "cache-control": {"type": "string"}, "content-disposition": {"type": "string"},
        "content-encoding": {"type": "string"}, "content-language": {"type": "string"},
        "expires": {"type": "string"},
    }))]
    pub headers: BTreeMap<String, String>,
    /// x-amz-meta-*, names without the prefix.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub metadata: BTreeMap<String, String>,
    /// The entity tag that the object must have. The commit decides, so no write in between is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_match: Option<String>,
    /// The time at which the object must have been written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_last_modified: Option<Time>,
}

/// A request to copy an object: the destination, and the version.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyObject {
    pub destination_bucket: BucketName,
    pub destination_key: ObjectKey,
    /// Null: the current version.
    pub version_id: Option<VersionId>,
    /// Whether an object that the destination already has is kept. The commit decides, so no write in between is lost.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<bool>")]
    pub if_absent: bool,
}

/// A request to move an object: the destination.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveObject {
    pub destination_bucket: BucketName,
    pub destination_key: ObjectKey,
    /// Whether an object that the destination already has is kept. The commit decides, so no write in between is lost.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<bool>")]
    pub if_absent: bool,
}

/// The objects of an archive.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArchiveObjects {
    /// A key that is repeated counts once.
    #[schemars(length(min = 1, max = 1000))]
    pub keys: Vec<ObjectKey>,
}

/// A key whose newest version is a delete marker over an object.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DeletedObject {
    pub key: ObjectKey,
    /// The newest version that is no delete marker.
    pub version_id: VersionId,
    pub size: u64,
    pub deleted_at: Time,
    /// The principal that deleted it, while its storage event is kept.
    pub deleted_by: Option<String>,
    pub marker_version_id: VersionId,
}

/// Objects and versions to delete.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteObjects {
    #[schemars(length(min = 1, max = 1000))]
    pub objects: Vec<NamedVersion>,
}

/// An object, or a version of it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedVersion {
    pub key: ObjectKey,
    /// This version or delete marker is deleted permanently. By default the current object is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_id: Option<VersionId>,
}

/// The outcome of deleting objects and versions.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DeletedObjects {
    pub deleted: u64,
    /// Those that did not exist.
    pub skipped: u64,
    #[schemars(length(max = 1000))]
    pub failed: Vec<FailedDeletion>,
}

/// An object or version that was not deleted.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct FailedDeletion {
    /// Its place in the request, from 0.
    pub index: u64,
    /// The code of the error, as the route for one object answers it.
    pub code: String,
    pub message: String,
}

/// A page of deleted objects in key order.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DeletedPage {
    #[schemars(length(max = 1000))]
    pub objects: Vec<DeletedObject>,
    #[schemars(length(max = 1000))]
    pub common_prefixes: Vec<String>,
    /// Null on the last page.
    pub next_continuation_token: Option<String>,
}

/// The objects whose delete markers are removed: these keys, or all below a prefix. Exactly one of the two is given.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Undelete {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    pub keys: Option<Vec<ObjectKey>>,
    /// Empty means all keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub prefix: Option<String>,
    /// Only with a prefix: objects that were deleted at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_since: Option<Time>,
}

/// The outcome of undeleting objects.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Undeleted {
    /// Whether everything was looked at. Otherwise the request can be sent again.
    pub complete: bool,
    pub undeleted: u64,
    /// Keys that have a current object, or none to bring back.
    pub skipped: u64,
    pub failed: u64,
}

/// A moment whose objects become the current ones again.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreBucket {
    pub at: Time,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<String>", length(max = 1024))]
    pub prefix: String,
    /// Only counts, and changes nothing.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<bool>")]
    pub dry_run: bool,
    /// Objects that did not exist at that moment stay, and count as unchanged.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Option<bool>")]
    pub keep_newer: bool,
}

/// The action of a restoration on a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestoreAction {
    /// The version of that moment becomes the current one.
    Restore,
    /// There was no object: a delete marker is written.
    Delete,
}

/// A key that a restoration changes.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RestoredKey {
    pub key: ObjectKey,
    pub action: RestoreAction,
    /// The version that is restored, or the current one that is deleted.
    pub version_id: VersionId,
}

/// The result of a restoration, or of its dry run.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RestoredBucket {
    /// Whether everything was looked at. Otherwise the request can be sent again.
    pub complete: bool,
    pub restored: u64,
    pub deleted: u64,
    pub unchanged: u64,
    /// Bytes of the restored objects.
    pub bytes: u64,
    pub failed: u64,
    /// Restoring to this moment brings back what was there before.
    pub undo_at: Time,
    /// The first keys that are changed.
    #[schemars(length(max = 100))]
    pub sample: Vec<RestoredKey>,
}

/// The version that is restored.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreObject {
    pub version_id: VersionId,
}

/// The objects that a search has found, in key order.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct FoundPage {
    #[schemars(length(max = 1000))]
    pub objects: Vec<ObjectEntry>,
    /// Keys that this request has looked at.
    pub examined: u64,
    /// Whether everything was looked at. Otherwise the token continues.
    pub complete: bool,
    /// Null when everything was looked at.
    pub next_continuation_token: Option<String>,
}

/// The size of a folder: the number of its objects, and their bytes.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct FolderEntry {
    /// The beginning of their keys, with the slash at its end.
    pub prefix: String,
    pub objects: u64,
    pub bytes: u64,
}

/// The size of the current objects below a prefix, or of a part of them. The sum of all pages is the whole.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct FolderUsage {
    /// Those with the most bytes if there are more than 1000, in the order of their prefixes. The first and the last one may
    /// continue in other pages, and are there in any case.
    #[schemars(length(max = 1002))]
    pub folders: Vec<FolderEntry>,
    /// The number of folders of this page that are not in `folders`. None of them continues in another page.
    pub folders_left_out: u64,
    /// The objects that were counted, also those in no folder.
    pub objects: u64,
    pub bytes: u64,
    /// Whether all objects were counted, and all folders are there.
    pub complete: bool,
    /// Null when all objects were counted.
    pub next_continuation_token: Option<String>,
}

/// The kind of an entry in an object's history.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistoryKind {
    /// It was written where no object existed.
    Written,
    /// It was overwritten, or another version was written over it.
    Overwritten,
    /// It got a delete marker, or a version was deleted.
    Deleted,
    /// An older version became the current one again.
    Restored,
    /// A lifecycle rule deleted it, or a version of it.
    Expired,
    /// A share was created.
    Shared,
    /// An embed was created.
    Embedded,
}

/// Something that has happened to an object. What is no longer known is null.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    pub time: Time,
    pub kind: HistoryKind,
    /// The version that was written, deleted, or is the only one that the link shows.
    pub version_id: Option<VersionId>,
    /// Bytes of that version.
    pub size: Option<u64>,
    pub principal: Option<String>,
    pub request_id: Option<String>,
    /// The lifecycle rule that acted.
    pub rule_id: Option<String>,
    /// The client's address, from the audit trail, for those who may read it.
    pub source_ip: Option<String>,
}

/// The history of an object, the latest entry first.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ObjectHistory {
    #[schemars(length(max = 1000))]
    pub entries: Vec<HistoryEntry>,
    /// Whether everything that is kept was looked at.
    pub complete: bool,
}

/// The changes in an interval.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ChangeStep {
    /// The start of the interval. It ends where the next one begins.
    pub since: Time,
    /// Objects that were created, overwritten or restored.
    pub written: u64,
    /// Objects and versions that were deleted.
    pub deleted: u64,
    /// Those of them that lifecycle rules deleted.
    pub deleted_by_rules: u64,
    /// Whether all events of the interval were counted. If not, the numbers are the least.
    pub complete: bool,
}

/// Deletions of one caller or lifecycle rule in an interval.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct LargeDeletion {
    /// The time when the first object was deleted.
    pub time: Time,
    pub principal: Option<String>,
    pub rule_id: Option<String>,
    pub objects: u64,
    /// Whether all of them were counted.
    pub complete: bool,
}

/// The changes of a bucket, or of all, between two times, in equal intervals, as far as storage events are kept.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    pub until: Time,
    #[schemars(length(min = 1, max = 168))]
    pub steps: Vec<ChangeStep>,
    /// The largest ones, of at least 10 objects each.
    #[schemars(length(max = 20))]
    pub deletions: Vec<LargeDeletion>,
}
