//! The due index: since when each version has had its role, in order of time (tables `due` and `due_state`).
//!
//! ```text
//! due        key   u64 bucket id · u8 role (0 current, 1 non-current, 2 lone delete marker) · u64 since when, milliseconds
//!                  since the Unix epoch · u64 sequence of the version; all big-endian
//!            body  the object key
//! due_state  key   u64 bucket id, big-endian
//!            body  u8 state: 1 building, 2 complete, 3 removing; when building the key in `objects` of the last version that
//!                  is in the index, or nothing
//! ```
//! A current object has its role since it was written, a non-current version since the next newer version was written, and a
//! lone delete marker since it was written. The index knows nothing of rules, so that a change of rules changes no entry.

use crate::types::lifecycle::VersionRole;
use cairn_model::{Timestamp, VersionId};

/// Version byte of an entry.
pub(crate) const DUE_RECORD_VERSION: u8 = 1;
/// Version byte of a state.
pub(crate) const DUE_STATE_VERSION: u8 = 1;
const KEY_BYTES: usize = 8 + 1 + 8 + 8;

const BUILDING: u8 = 1;
const COMPLETE: u8 = 2;
const REMOVING: u8 = 3;

/// An entry of the due index, without the object key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct DueKey {
    /// Id of the bucket.
    pub(crate) bucket: u64,
    pub(crate) role: VersionRole,
    pub(crate) since: Timestamp,
    pub(crate) version: VersionId,
}

impl DueKey {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(KEY_BYTES);
        out.extend_from_slice(&self.bucket.to_be_bytes());
        out.push(self.role.number());
        out.extend_from_slice(&self.since.0.to_be_bytes());
        out.extend_from_slice(&self.version.0.to_be_bytes());
        out
    }

    /// Decodes a key of table `due`. Returns `None` if it is invalid.
    pub(crate) fn decode(key: &[u8]) -> Option<Self> {
        let (bucket, rest) = key.split_first_chunk::<8>()?;
        let ([role], rest) = rest.split_first_chunk::<1>()?;
        let (since, rest) = rest.split_first_chunk::<8>()?;
        Some(Self {
            bucket: u64::from_be_bytes(*bucket),
            role: VersionRole::from_number(*role)?,
            since: Timestamp(u64::from_be_bytes(*since)),
            version: VersionId(u64::from_be_bytes(rest.try_into().ok()?)),
        })
    }
}

/// Whether a slice keeps the due index of a bucket. Without a state it keeps none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DueState {
    /// The index has the versions whose key in `objects` is this or less.
    Building(Vec<u8>),
    /// The index has all versions.
    Complete,
    /// The index is being removed. It is no longer changed otherwise.
    Removing,
}

impl DueState {
    /// Returns whether the index has the version with this key in `objects`.
    pub(crate) fn has(&self, version: &[u8]) -> bool {
        match self {
            Self::Building(last) => version <= &last[..],
            Self::Complete => true,
            Self::Removing => false,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Building(last) => [&[BUILDING], &last[..]].concat(),
            Self::Complete => vec![COMPLETE],
            Self::Removing => vec![REMOVING],
        }
    }

    /// Decodes the body of a state. Returns `None` if it is invalid.
    pub(crate) fn decode(version: u8, body: &[u8]) -> Option<Self> {
        match (version, body.split_first()?) {
            (DUE_STATE_VERSION, (&BUILDING, last)) => Some(Self::Building(last.to_vec())),
            (DUE_STATE_VERSION, (&COMPLETE, [])) => Some(Self::Complete),
            (DUE_STATE_VERSION, (&REMOVING, [])) => Some(Self::Removing),
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
        let key = DueKey {
            bucket: 1,
            role: VersionRole::Noncurrent,
            since: Timestamp(0x0203),
            version: VersionId(0x0405),
        };
        let bytes = b"\0\0\0\0\0\0\0\x01\x01\0\0\0\0\0\0\x02\x03\0\0\0\0\0\0\x04\x05";
        assert_eq!(key.encode(), bytes);
        assert_eq!(DueKey::decode(bytes), Some(key));
        assert_eq!(DueKey::decode(&bytes[1..]), None);
        let unknown_role = [&[0; 8][..], &[9], &[0; 16]].concat();
        assert_eq!(DueKey::decode(&unknown_role), None);
    }

    #[test]
    fn states_decode_to_what_was_encoded_and_unknown_ones_are_refused() {
        let building = DueState::Building(b"key".to_vec());
        assert_eq!(building.encode(), b"\x01key");
        for state in [building, DueState::Building(Vec::new()), DueState::Complete, DueState::Removing] {
            assert_eq!(DueState::decode(1, &state.encode()), Some(state));
        }
        for (version, body) in [(2, &[COMPLETE][..]), (1, &[]), (1, &[9]), (1, &[COMPLETE, 0])] {
            assert_eq!(DueState::decode(version, body), None);
        }
    }

    #[test]
    fn unfinished_index_has_the_versions_up_to_its_position() {
        let building = DueState::Building(b"b".to_vec());
        assert!(building.has(b"a") && building.has(b"b") && !building.has(b"c"));
        assert!(!DueState::Building(Vec::new()).has(b"a"), "nothing yet");
        assert!(DueState::Complete.has(b"c") && !DueState::Removing.has(b"a"));
    }
}
