//! What the engine says about multipart uploads: plain values of its public surface.

use crate::bucket::Bucket;
use crate::lock::ObjectLock;
use crate::object::{Attributes, ChecksumAlgorithm, ChecksumKind, WriteCondition};
use crate::writer::StagedPayload;
use cairn_model::{Etag, ObjectKey, Timestamp, UploadId};
use std::sync::Arc;

/// The checksum that an upload was begun with: what its parts carry, and what becomes of that when it is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadChecksum {
    /// The algorithm of every part.
    pub algorithm: ChecksumAlgorithm,
    /// What the object gets.
    pub kind: ChecksumKind,
}

/// What an upload is begun with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewUpload {
    /// Stored headers of the object to come; its checksums come when it is completed.
    pub attributes: Attributes,
    /// What locks the object to come, beside the bucket's default.
    pub lock: ObjectLock,
    /// The checksum of its parts.
    pub checksum: Option<UploadChecksum>,
}

/// An upload that has been begun and neither completed nor aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadInfo {
    /// Its id.
    pub id: UploadId,
    /// When it was begun.
    pub initiated: Timestamp,
    /// What it was begun with.
    pub upload: NewUpload,
}

/// A part as it goes to the committer.
pub struct PutPart {
    /// The bucket.
    pub bucket: Arc<Bucket>,
    /// The key that the upload is for.
    pub key: ObjectKey,
    /// The upload.
    pub upload: UploadId,
    /// 1 to 10 000.
    pub number: u16,
    /// The part's bytes, with all their writes completed; written for the key ([`crate::Engine::write_payload`]).
    pub payload: StagedPayload,
    /// Digest of the part, found right.
    pub checksum: Option<(ChecksumAlgorithm, Vec<u8>)>,
}

/// A part that has been uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartInfo {
    /// 1 to 10 000.
    pub number: u16,
    /// Bytes.
    pub size: u64,
    /// MD5 of its bytes: its entity tag.
    pub md5: [u8; 16],
    /// When it was uploaded.
    pub last_modified: Timestamp,
    /// Its digest, if it has one.
    pub checksum: Option<(ChecksumAlgorithm, Vec<u8>)>,
}

/// One page of an upload's parts.
#[derive(Clone, Debug)]
pub struct PartsPage {
    /// The upload.
    pub upload: UploadInfo,
    /// In order of their numbers.
    pub parts: Vec<PartInfo>,
    /// Whether more follow.
    pub is_truncated: bool,
}

/// The completion of an upload as it goes to the committer.
pub struct CompleteUpload {
    /// The bucket.
    pub bucket: Arc<Bucket>,
    /// The key that the upload is for.
    pub key: ObjectKey,
    /// The upload.
    pub upload: UploadId,
    /// Numbers and MD5 of the parts that make the object, in rising order of their numbers. Others are dropped.
    pub parts: Vec<(u16, [u8; 16])>,
    /// Checksums of the object.
    pub checksums: Vec<(ChecksumAlgorithm, Vec<u8>)>,
    /// Conditions on the current object.
    pub condition: WriteCondition,
}

/// What is asked of a list of uploads.
#[derive(Clone, Debug)]
pub struct ListUploads<'a> {
    /// Keys must begin with this.
    pub prefix: &'a [u8],
    /// Keys that go on with this after the prefix are folded into a common prefix; never empty.
    pub delimiter: Option<&'a [u8]>,
    /// Where to go on, exclusive.
    pub after: Option<UploadPosition>,
    /// Most uploads and common prefixes together.
    pub max: usize,
}

/// Where a list of uploads goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UploadPosition {
    /// Behind all uploads for this key.
    AfterKey(Vec<u8>),
    /// Behind all keys that begin with this.
    AfterPrefix(Vec<u8>),
    /// Behind this upload for this key, and in front of later ones for it.
    AfterUpload(Vec<u8>, UploadId),
}

/// One page of a list of uploads.
#[derive(Clone, Debug, Default)]
pub struct UploadsPage {
    /// In order of their keys, and for one key in the order in which they were begun.
    pub uploads: Vec<ListedUpload>,
    /// Common prefixes in order.
    pub common_prefixes: Vec<Vec<u8>>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<UploadPosition>,
}

/// An upload in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedUpload {
    /// The key that it is for.
    pub key: String,
    /// Its id.
    pub id: UploadId,
    /// When it was begun.
    pub initiated: Timestamp,
    /// The checksum of its parts.
    pub checksum: Option<UploadChecksum>,
}

/// Entity tag of an object of these parts: the MD5 of their MD5s, with their number (AWS: "Checking object integrity").
#[must_use]
pub fn composite_etag(parts: impl Iterator<Item = [u8; 16]>) -> Etag {
    let mut digests = Vec::new();
    let mut count = 0;
    for md5 in parts {
        digests.extend_from_slice(&md5);
        count += 1;
    }
    Etag { md5: crate::md5::md5_digest(&digests), parts: count }
}

#[cfg(test)]
mod tests {
    use super::composite_etag;

    /// The value is the one that `md5sum` gives for two times the digest of "a".
    #[test]
    fn the_tag_of_a_composite_is_the_md5_of_its_parts_md5s() {
        let a = crate::md5::md5_digest(b"a");
        assert_eq!(composite_etag([a, a].into_iter()).to_string(), "7b3c799ee8b11a11c798c8b41bed8502-2");
    }
}
