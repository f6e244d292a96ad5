//! The manifest of a backup, and the list of its contents.
//!
//! ```text
//! NAME.contents: u64 length of the header (little-endian), the header in JSON (`Header`);
//!                16 bytes for each page of each file, in order;
//!                for each payload 16 id, u16 slice, u16 number of extents, and for each extent u32 volume, u32 start, u32 units
//! ```

use crate::backup::error::BackupError;
use crate::backup::pack::{BlobId, Hash};
use crate::format::codec::Cursor;
use crate::format::extent::Extent;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

/// Version of the form of backups that this program writes, and the only one that it reads.
pub(super) const VERSION: u64 = 1;

/// A backup in a folder of backups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupSummary {
    /// Its name, which begins with its time.
    pub name: String,
    /// The moment that it shows, RFC 3339. Empty if the manifest cannot be read.
    pub held_at: String,
    /// Its manifest with the signature: a proof of the kind `backup`. Null if it cannot be read.
    pub proof: Value,
    /// The reason why the manifest cannot be read, if so.
    pub damage: Option<String>,
}

/// Returns whether a file can be that of a backup, by its name without extension: the digits of a time and the begin of an id.
pub(super) fn is_name(name: &str) -> bool {
    let Some((time, id)) = name.split_once('-') else { return false };
    let parts = time.strip_suffix('Z').and_then(|time| time.split_once('T'));
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.is_some_and(|(date, clock)| date.len() == 8 && are_digits(date) && are_digits(clock))
        && !id.is_empty()
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

impl BackupSummary {
    /// Returns a member of the manifest.
    pub(super) fn member(&self, name: &str) -> &Value {
        &self.proof["payload"][name]
    }
}

/// The header of the list.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) files: Vec<StoredFile>,
    pub(super) payloads: u64,
    pub(super) packs: Vec<NeededPack>,
}

/// A file of the data folder.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredFile {
    /// Path in the data folder.
    pub(super) path: String,
    /// Length in bytes.
    pub(super) bytes: u64,
    /// Pages from its beginning that are stored. What follows is empty space.
    pub(super) pages: u64,
}

/// A pack that a backup needs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NeededPack {
    pub(super) number: u32,
    /// SHA-256 at the end of its index, in hex.
    pub(super) index: String,
}

/// A payload in the volumes of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredPayload {
    pub(super) id: BlobId,
    pub(super) slice: u16,
    /// In the order of the blob.
    pub(super) extents: Vec<Extent>,
}

impl StoredPayload {
    /// Returns the length of its blob in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.extents.iter().map(Extent::bytes).sum()
    }
}

/// The content of a backup.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) header: Header,
    /// The pages of all files, one after the other.
    pub(super) pages: Vec<BlobId>,
    pub(super) payloads: Vec<StoredPayload>,
}

impl Contents {
    /// Returns the ids of all blobs that the backup needs.
    pub(super) fn blobs(&self) -> impl Iterator<Item = BlobId> + '_ {
        self.pages.iter().copied().chain(self.payloads.iter().map(|payload| payload.id))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let header = serde_json::to_vec(&self.header).expect("it has only texts and numbers");
        let mut out = (header.len() as u64).to_le_bytes().to_vec();
        out.extend_from_slice(&header);
        out.extend(self.pages.iter().flatten());
        for payload in &self.payloads {
            let count = u16::try_from(payload.extents.len())
                .expect("a payload has at most 65535 extents in its record");
            out.extend_from_slice(&payload.id);
            out.extend_from_slice(&payload.slice.to_le_bytes());
            out.extend_from_slice(&count.to_le_bytes());
            for extent in &payload.extents {
                for field in [extent.volume, extent.start, extent.units] {
                    out.extend_from_slice(&field.to_le_bytes());
                }
            }
        }
        out
    }

    /// Decodes the list of a backup.
    ///
    /// # Errors
    /// If the bytes are not a list.
    pub(super) fn decode(path: &Path, bytes: &[u8]) -> Result<Self, BackupError> {
        let damaged = || BackupError::damaged(path, "the list of this backup is damaged");
        let mut from = Cursor(bytes);
        let mut read = || -> Option<Self> {
            let length = usize::try_from(from.u64().ok()?).ok()?;
            let header: Header = serde_json::from_slice(from.bytes(length).ok()?).ok()?;
            let mut contents = Self::default();
            for _ in 0..header.files.iter().try_fold(0u64, |sum, file| sum.checked_add(file.pages))? {
                contents.pages.push(from.array().ok()?);
            }
            for _ in 0..header.payloads {
                let (id, slice, count) = (from.array().ok()?, from.u16().ok()?, from.u16().ok()?);
                let extents = (0..count).map(|_| from.extent().ok()).collect::<Option<_>>()?;
                contents.payloads.push(StoredPayload { id, slice, extents });
            }
            contents.header = header;
            from.0.is_empty().then_some(contents)
        };
        read().ok_or_else(damaged)
    }
}

/// Returns the members of a manifest, before the server adds its own and signs them.
pub(super) fn manifest(
    name: &str,
    held_at: &str,
    format_version: u32,
    contents_hash: Hash,
    figures: &[(&str, u64)],
) -> Map<String, Value> {
    let mut manifest = Map::new();
    manifest.insert("version".to_owned(), VERSION.into());
    manifest.insert("backup".to_owned(), name.into());
    manifest.insert("held_at".to_owned(), held_at.into());
    manifest.insert("format_version".to_owned(), format_version.into());
    manifest.insert("contents_sha256".to_owned(), hex::encode(contents_hash).into());
    for (figure, value) in figures {
        manifest.insert((*figure).to_owned(), (*value).into());
    }
    manifest
}

#[cfg(test)]
mod tests {
    use super::{Contents, Header, NeededPack, StoredFile, StoredPayload};
    use crate::format::extent::Extent;
    use std::path::Path;

    #[test]
    fn a_list_decodes_to_what_was_encoded_and_no_part_of_it_decodes() {
        let extent = |start| Extent { volume: 1, start, units: 7 };
        let contents = Contents {
            header: Header {
                files: vec![StoredFile { path: "a".into(), bytes: 5000, pages: 2 }],
                payloads: 1,
                packs: vec![NeededPack { number: 3, index: "ab".into() }],
            },
            pages: vec![[1; 16], [2; 16]],
            payloads: vec![StoredPayload { id: [3; 16], slice: 4, extents: vec![extent(1), extent(100)] }],
        };
        let bytes = contents.encode();
        let decoded = Contents::decode(Path::new("x"), &bytes).expect("decodes");
        assert_eq!((&decoded.pages, &decoded.payloads), (&contents.pages, &contents.payloads));
        assert_eq!(decoded.blobs().count(), 3);
        for length in 0..bytes.len() {
            assert!(Contents::decode(Path::new("x"), &bytes[..length]).is_err(), "{length}");
        }
    }
}
