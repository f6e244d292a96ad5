//! The due index: since when each version has had its role, in order of time (tables `due` and `due_state`).
//!
//! ```text
//! due        key   u64 bucket id · u8 role (0 current, 1 non-current, 2 lone delete marker, 3 unfinished upload) · u64 since
//!                  when, milliseconds since the Unix epoch · u64 sequence of the version, or id of the upload; all big-endian ·
//!                  of an imported version the first 16 bytes of the SHA-256 of the object key
//!            body  the object key
//! due_state  key   u64 bucket id, big-endian
//!            body  version 2: u8 state: 1 building the entries of versions, 2 complete, 3 removing, 4 building the entries of
//!                  uploads; when building the key in `objects` or `uploads` of the last one in the index, or nothing
//! ```
//! A current object has its role since it was written, a non-current version since the next newer version was written, a lone
//! delete marker since it was written, and an upload since it was begun. The index knows nothing of rules, so that a change of
//! rules changes no entry. Imported versions of the same time have the same number if their object keys differ.
//!
//! In version 1 of the state, an index had no entries of uploads. A complete one lacks only these.

use crate::types::lifecycle::VersionRole;
use cairn_model::{Timestamp, UploadId, VersionId};
use sha2::{Digest as _, Sha256};

/// Version byte of an entry.
pub(crate) const DUE_RECORD_VERSION: u8 = 1;
/// Version byte of a state.
pub(crate) const DUE_STATE_VERSION: u8 = 2;
const KEY_BYTES: usize = 8 + 1 + 8 + 8;
const OBJECT_HASH_BYTES: usize = 16;

const BUILDING: u8 = 1;
const COMPLETE: u8 = 2;
const REMOVING: u8 = 3;
const BUILDING_UPLOADS: u8 = 4;

/// An entry of the due index, without the object key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct DueKey {
    /// Id of the bucket.
    pub(crate) bucket: u64,
    pub(crate) role: VersionRole,
    pub(crate) since: Timestamp,
    /// Of an upload its id, which has the same form.
    pub(crate) version: VersionId,
    /// Hash of the object key, if the version was imported.
    pub(crate) object: Option<[u8; OBJECT_HASH_BYTES]>,
}

impl DueKey {
    /// Returns the entry of a version of an object.
    pub(crate) fn of_version(
        bucket: u64,
        (role, since): (VersionRole, Timestamp),
        version: VersionId,
        object: &[u8],
    ) -> Self {
        let hash = || *Sha256::digest(object).first_chunk().expect("a digest has 32 bytes");
        let object = version.is_imported().then(hash);
        Self { bucket, role, since, version, object }
    }

    /// Returns the entry of an unfinished upload.
    pub(crate) const fn of_upload(bucket: u64, since: Timestamp, id: UploadId) -> Self {
        let (role, version) = (VersionRole::UnfinishedUpload, VersionId(id.0));
        Self { bucket, role, since, version, object: None }
    }

    /// Returns a key before all entries of a role since this time.
    pub(crate) const fn before_all(bucket: u64, role: VersionRole, since: Timestamp) -> Self {
        // No version has this sequence.
        Self { bucket, role, since, version: VersionId(0), object: None }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(KEY_BYTES + OBJECT_HASH_BYTES);
        out.extend_from_slice(&self.bucket.to_be_bytes());
        out.push(self.role.number());
        out.extend_from_slice(&self.since.0.to_be_bytes());
        out.extend_from_slice(&self.version.0.to_be_bytes());
        out.extend_from_slice(self.object.as_ref().map_or(&[], <[u8; OBJECT_HASH_BYTES]>::as_slice));
        out
    }

    /// Decodes a key of table `due`. Returns `None` if it is invalid.
    pub(crate) fn decode(key: &[u8]) -> Option<Self> {
        let (bucket, rest) = key.split_first_chunk::<8>()?;
        let ([role], rest) = rest.split_first_chunk::<1>()?;
        let (since, rest) = rest.split_first_chunk::<8>()?;
        let (version, rest) = rest.split_first_chunk::<8>()?;
        let object = if rest.is_empty() { None } else { Some(rest.try_into().ok()?) };
        Some(Self {
            bucket: u64::from_be_bytes(*bucket),
            role: VersionRole::from_number(*role)?,
            since: Timestamp(u64::from_be_bytes(*since)),
            version: VersionId(u64::from_be_bytes(*version)),
            object,
        })
    }
}

/// The state of a bucket's due index in a slice. Without a state the slice keeps none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DueState {
    /// The index has the versions whose key in `objects` is this or less.
    Building(Vec<u8>),
    /// The index has all versions, and the uploads whose key in `uploads` is this or less.
    BuildingUploads(Vec<u8>),
    /// The index has all versions and uploads.
    Complete,
    /// The index is being removed. It is no longer changed otherwise.
    Removing,
}

impl DueState {
    /// Returns whether the index has the version with this key in `objects`.
    pub(crate) fn has(&self, version: &[u8]) -> bool {
        match self {
            Self::Building(last) => version <= &last[..],
            Self::BuildingUploads(_) | Self::Complete => true,
            Self::Removing => false,
        }
    }

    /// Returns whether the index has the unfinished upload with this key in `uploads`.
    pub(crate) fn has_upload(&self, upload: &[u8]) -> bool {
        match self {
            Self::BuildingUploads(last) => upload <= &last[..],
            Self::Complete => true,
            Self::Building(_) | Self::Removing => false,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Building(last) => [&[BUILDING], &last[..]].concat(),
            Self::BuildingUploads(last) => [&[BUILDING_UPLOADS], &last[..]].concat(),
            Self::Complete => vec![COMPLETE],
            Self::Removing => vec![REMOVING],
        }
    }

    /// Decodes the body of a state. Returns `None` if it is invalid.
    pub(crate) fn decode(version: u8, body: &[u8]) -> Option<Self> {
        match (version, body.split_first()?) {
            (1 | DUE_STATE_VERSION, (&BUILDING, last)) => Some(Self::Building(last.to_vec())),
            (1, (&COMPLETE, [])) => Some(Self::BuildingUploads(Vec::new())),
            (DUE_STATE_VERSION, (&COMPLETE, [])) => Some(Self::Complete),
            (1 | DUE_STATE_VERSION, (&REMOVING, [])) => Some(Self::Removing),
            (DUE_STATE_VERSION, (&BUILDING_UPLOADS, last)) => Some(Self::BuildingUploads(last.to_vec())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{COMPLETE, DueKey, DueState};
    use crate::types::lifecycle::VersionRole;
    use cairn_model::{Timestamp, VersionId};

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn encoded_bytes_do_not_change() {
        let role = (VersionRole::Noncurrent, Timestamp(0x0203));
        let key = DueKey::of_version(1, role, VersionId(0x0405), b"key");
        let bytes = b"\0\0\0\0\0\0\0\x01\x01\0\0\0\0\0\0\x02\x03\0\0\0\0\0\0\x04\x05";
        assert_eq!(key.encode(), bytes);
        assert_eq!(DueKey::decode(bytes), Some(key));
        assert_eq!(DueKey::decode(&bytes[1..]), None);
        let unknown_role = [&[0; 8][..], &[9], &[0; 16]].concat();
        assert_eq!(DueKey::decode(&unknown_role), None);
        let imported = VersionId::imported_at(0x0203).expect("before the year 2248");
        let key = DueKey::of_version(1, role, imported, b"key");
        let hash =
            [0x2c, 0x70, 0xe1, 0x2b, 0x7a, 0x06, 0x46, 0xf9, 0x22, 0x79, 0xf4, 0x27, 0xc7, 0xb3, 0x8e, 0x73];
        let bytes = [&bytes[..17], &imported.0.to_be_bytes(), &hash].concat();
        assert_eq!(key.encode(), bytes);
        assert_eq!(DueKey::decode(&bytes), Some(key));
        assert_eq!(DueKey::decode(&bytes[..40]), None);
        assert_ne!(DueKey::of_version(1, role, imported, b"another key"), key);
    }

    #[test]
    fn states_decode_to_what_was_encoded_and_unknown_ones_are_refused() {
        let building = DueState::Building(b"key".to_vec());
        assert_eq!(building.encode(), b"\x01key");
        let uploads = DueState::BuildingUploads(b"up".to_vec());
        assert_eq!(uploads.encode(), b"\x04up");
        let states =
            [building, DueState::Building(Vec::new()), uploads, DueState::Complete, DueState::Removing];
        for state in states {
            assert_eq!(DueState::decode(2, &state.encode()), Some(state));
        }
        for (version, body) in
            [(3, &[COMPLETE][..]), (2, &[]), (2, &[9]), (2, &[COMPLETE, 0]), (1, b"\x04up")]
        {
            assert_eq!(DueState::decode(version, body), None);
        }
    }

    /// The golden bytes of version 1, whose indexes had no uploads.
    #[test]
    fn complete_index_of_version_1_lacks_uploads() {
        for (body, expected) in [
            (&b"\x01key"[..], DueState::Building(b"key".to_vec())),
            (b"\x02", DueState::BuildingUploads(Vec::new())),
            (b"\x03", DueState::Removing),
        ] {
            assert_eq!(DueState::decode(1, body), Some(expected));
        }
    }

    #[test]
    fn unfinished_index_has_the_versions_up_to_its_position() {
        let building = DueState::Building(b"b".to_vec());
        assert!(building.has(b"a") && building.has(b"b") && !building.has(b"c"));
        assert!(!DueState::Building(Vec::new()).has(b"a"), "nothing yet");
        assert!(DueState::Complete.has(b"c") && !DueState::Removing.has(b"a"));
        let uploads = DueState::BuildingUploads(b"b".to_vec());
        assert!(uploads.has(b"c") && uploads.has_upload(b"b") && !uploads.has_upload(b"c"));
        assert!(DueState::Complete.has_upload(b"c") && !building.has_upload(b"a"));
    }
}
