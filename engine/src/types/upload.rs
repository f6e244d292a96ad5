//! Multipart uploads and their lists, as callers of the engine see them.

use crate::types::object::{Attributes, ChecksumAlgorithm, ChecksumKind, ObjectInfo};
use crate::types::object_lock::ObjectLock;
use cairn_model::{Etag, Timestamp, UploadId};

/// The checksum that an upload was begun with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadChecksum {
    /// The algorithm of every part.
    pub algorithm: ChecksumAlgorithm,
    /// The data that the checksum of the object covers.
    pub kind: ChecksumKind,
}

/// The settings of a new upload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewUpload {
    /// Stored headers of the future object. Its checksums are set by the completion.
    pub attributes: Attributes,
    /// Lock of the future object. Without a retention it gets the bucket's default.
    pub lock: ObjectLock,
    /// The checksum of its parts.
    pub checksum: Option<UploadChecksum>,
}

/// An upload in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadInfo {
    /// Its id.
    pub id: UploadId,
    /// The time when it was created.
    pub initiated: Timestamp,
    /// The settings that it was begun with.
    pub upload: NewUpload,
}

/// A part that has been uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartInfo {
    /// Number of the part, 1 to 10 000.
    pub number: u16,
    /// Size in bytes.
    pub size: u64,
    /// MD5 of its bytes, or any bytes if its entity tag is opaque.
    pub md5: [u8; 16],
    /// Whether its entity tag is opaque.
    pub is_opaque: bool,
    /// The time when it was uploaded.
    pub last_modified: Timestamp,
    /// Its declared checksum, if it has one.
    pub checksum: Option<(ChecksumAlgorithm, Vec<u8>)>,
}

impl PartInfo {
    /// Returns its entity tag.
    #[must_use]
    pub const fn etag(&self) -> Etag {
        if self.is_opaque { Etag::opaque(self.md5) } else { Etag::single(self.md5) }
    }
}

/// One page of an upload's parts.
#[derive(Clone, Debug)]
pub struct PartsPage {
    /// The upload.
    pub upload: UploadInfo,
    /// The parts in order of their numbers.
    pub parts: Vec<PartInfo>,
    /// Whether more follow.
    pub is_truncated: bool,
}

/// An object and a page of the parts that it was made of.
#[derive(Clone, Debug)]
pub struct ObjectParts {
    /// The version's metadata.
    pub info: ObjectInfo,
    /// The parts in order of their numbers.
    pub parts: Vec<PartInfo>,
    /// Whether more follow.
    pub is_truncated: bool,
}

/// Parameters of a list of uploads.
#[derive(Clone, Debug)]
pub struct ListUploads<'a> {
    /// Keys must begin with this.
    pub prefix: &'a [u8],
    /// Keys with this delimiter after the prefix are grouped into a common prefix. Never empty.
    pub delimiter: Option<&'a [u8]>,
    /// The position after which the page begins.
    pub after: Option<UploadPosition>,
    /// Maximum of uploads and common prefixes together.
    pub max: usize,
}

/// A position in a list of uploads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UploadPosition {
    /// After all uploads of this key.
    AfterKey(Vec<u8>),
    /// After all keys that begin with this prefix.
    AfterPrefix(Vec<u8>),
    /// After this upload of this key, and before later ones of the key.
    AfterUpload(Vec<u8>, UploadId),
}

/// One page of uploads.
#[derive(Clone, Debug, Default)]
pub struct UploadsPage {
    /// In order of their keys. Uploads of one key are in the order in which they were begun.
    pub uploads: Vec<ListedUpload>,
    /// Common prefixes in order.
    pub common_prefixes: Vec<Vec<u8>>,
    /// The start of the next page. `None` for the last page.
    pub next: Option<UploadPosition>,
}

/// An upload in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedUpload {
    /// The key of the future object.
    pub key: String,
    /// Its id.
    pub id: UploadId,
    /// The time when it was created.
    pub initiated: Timestamp,
    /// The checksum of its parts.
    pub checksum: Option<UploadChecksum>,
}

/// Returns the entity tag of an object of these parts: the MD5 of their MD5s, with the number of parts (AWS: "Checking object
/// integrity").
#[must_use]
pub fn composite_etag(parts: impl Iterator<Item = [u8; 16]>) -> Etag {
    let mut digests = Vec::new();
    let mut count = 0;
    for md5 in parts {
        digests.extend_from_slice(&md5);
        count += 1;
    }
    Etag { md5: cairn_md5::md5_digest(&digests), parts: count }
}

#[cfg(test)]
mod tests {
    use super::composite_etag;

    /// The expected value was computed with `md5sum` from the digest of "a", twice.
    #[test]
    fn composite_etag_is_the_md5_of_the_parts_md5s() {
        let a = cairn_md5::md5_digest(b"a");
        assert_eq!(composite_etag([a, a].into_iter()).to_string(), "7b3c799ee8b11a11c798c8b41bed8502-2");
    }
}
