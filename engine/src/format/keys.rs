//! Keys of records, big-endian: `bucket id (8) · escaped key · 00 00 ·`
//! - of an object's version: `inverted sequence (8)`;
//! - of an imported version: `FF FF FF FF FF FF FF FF · inverted number (8)`;
//! - of an imported version's id: the id's text;
//! - of an upload: `upload id (8)`, so that the uploads of a key are in the order in which they were begun;
//! - of a part: `upload id (8) · part number (2)`;
//! - of a record that a key has at most once: nothing more.
//!
//! A zero byte of the key is escaped as `00 FF`, so that the order of encoded keys is the order of the keys' bytes
//! and no key's encoding is a prefix of another's. The sequence is inverted, so that the newest version comes first. Imported
//! versions come after the others; the highest bit of their number is set. All versions of a key are adjacent, and a prefix
//! of a key encodes to a prefix of its encoding.

use crate::limits::ENCODED_KEY_BYTES_MAX;
use cairn_model::{ImportedId, UploadId, VersionId};

const TERMINATOR: [u8; 2] = [0, 0];
const SEQUENCE_BYTES: usize = 8;
/// Stands before the inverted number of an imported version. No version has sequence 0.
const IMPORTED: [u8; SEQUENCE_BYTES] = [0xFF; SEQUENCE_BYTES];
const NUMBER_BYTES: usize = 2;

/// Appends the escaped form of `key`.
fn escape(out: &mut Vec<u8>, key: &[u8]) {
    for &byte in key {
        out.push(byte);
        if byte == 0 {
            out.push(0xFF);
        }
    }
}

/// Returns the common prefix of the encodings of all keys of a bucket that begin with `prefix`.
pub(crate) fn prefix_of(bucket: u64, prefix: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + prefix.len() + TERMINATOR.len() + SEQUENCE_BYTES);
    out.extend_from_slice(&bucket.to_be_bytes());
    escape(&mut out, prefix);
    out
}

/// Returns the common prefix of the encodings of all versions of one key. `None` if it is too long for LMDB.
pub(crate) fn versions_of(bucket: u64, key: &[u8]) -> Option<Vec<u8>> {
    let mut out = prefix_of(bucket, key);
    out.extend_from_slice(&TERMINATOR);
    (out.len() + SEQUENCE_BYTES + NUMBER_BYTES <= ENCODED_KEY_BYTES_MAX).then_some(out)
}

/// Appends a version's sequence, or the number of an imported version, to the result of [`versions_of`].
pub(crate) fn with_sequence(versions: &[u8], sequence: u64) -> Vec<u8> {
    let mut out = versions.to_vec();
    if VersionId(sequence).is_imported() {
        out.extend_from_slice(&IMPORTED);
    }
    out.extend_from_slice(&(!sequence).to_be_bytes());
    out
}

/// Appends the id of an imported version to the result of [`versions_of`].
pub(crate) fn with_imported_id(versions: &[u8], id: &ImportedId) -> Vec<u8> {
    [versions, id.as_str().as_bytes()].concat()
}

/// Appends an upload's id to the result of [`versions_of`]. Returns the upload's key, which is the prefix of its parts' keys.
pub(crate) fn with_upload(versions: &[u8], upload: UploadId) -> Vec<u8> {
    let mut out = versions.to_vec();
    out.extend_from_slice(&upload.0.to_be_bytes());
    out
}

/// Appends a part's number to the result of [`with_upload`].
pub(crate) fn with_part(upload: &[u8], number: u16) -> Vec<u8> {
    let mut out = upload.to_vec();
    out.extend_from_slice(&number.to_be_bytes());
    out
}

/// Decodes bucket, key and id of an upload's key. Returns `None` if it is invalid.
pub(crate) fn decode_upload(encoded: &[u8]) -> Option<(u64, Vec<u8>, UploadId)> {
    let (versions, id) = encoded.split_last_chunk::<SEQUENCE_BYTES>()?;
    let (bucket, key) = decode_versions(versions)?;
    Some((bucket, key, UploadId(u64::from_be_bytes(*id))))
}

/// Decodes the upload's key and the number of a part's key. Returns `None` if it is invalid.
pub(crate) fn decode_part(encoded: &[u8]) -> Option<(&[u8], u16)> {
    let (upload, number) = encoded.split_last_chunk::<NUMBER_BYTES>()?;
    Some((upload, u16::from_be_bytes(*number)))
}

/// Returns a position after all versions of `key` and before the next key.
pub(crate) fn after_key(bucket: u64, key: &[u8]) -> Vec<u8> {
    let mut out = prefix_of(bucket, key);
    out.extend_from_slice(&TERMINATOR);
    after_all_of(&out)
}

/// Returns a position after everything with this prefix (the result of [`versions_of`]) and before the next key.
pub(crate) fn after_all_of(versions: &[u8]) -> Vec<u8> {
    [versions, &[0xFF; SEQUENCE_BYTES + 1]].concat()
}

/// Returns a position after all keys that begin with `prefix`. `None` if no key can follow.
pub(crate) fn after_prefix(bucket: u64, prefix: &[u8]) -> Option<Vec<u8>> {
    let mut out = prefix_of(bucket, prefix);
    while let Some(last) = out.pop() {
        if last < 0xFF {
            out.push(last + 1);
            return Some(out);
        }
    }
    None
}

/// Decodes bucket, key and sequence of an encoded key. Returns `None` if it is invalid.
pub(crate) fn decode(encoded: &[u8]) -> Option<(u64, Vec<u8>, u64)> {
    let (versions, inverted) = encoded.split_at_checked(shared_length(encoded))?;
    let (bucket, key) = decode_versions(versions)?;
    let (imported, inverted) = inverted.split_last_chunk::<SEQUENCE_BYTES>()?;
    let sequence = !u64::from_be_bytes(*inverted);
    (VersionId(sequence).is_imported() != imported.is_empty()).then_some((bucket, key, sequence))
}

/// Decodes bucket, key and id of an imported version's id. Returns `None` if it is invalid.
pub(crate) fn decode_imported_id(encoded: &[u8]) -> Option<(u64, Vec<u8>, ImportedId)> {
    let after_bucket = encoded.get(8..)?;
    // Ids have no zero bytes.
    let end = after_bucket.windows(TERMINATOR.len()).rposition(|two| two == TERMINATOR)? + TERMINATOR.len();
    let (versions, id) = encoded.split_at(8 + end);
    let (bucket, key) = decode_versions(versions)?;
    Some((bucket, key, ImportedId::parse(std::str::from_utf8(id).ok()?)?))
}

/// Decodes bucket and key of a result of [`versions_of`]. Returns `None` if it is invalid.
pub(crate) fn decode_versions(versions: &[u8]) -> Option<(u64, Vec<u8>)> {
    let (bucket, rest) = versions.split_first_chunk::<8>()?;
    let escaped = rest.strip_suffix(&TERMINATOR)?;
    let mut key = Vec::with_capacity(escaped.len());
    let mut bytes = escaped.iter();
    while let Some(&byte) = bytes.next() {
        key.push(byte);
        if byte == 0 && bytes.next() != Some(&0xFF) {
            return None;
        }
    }
    Some((u64::from_be_bytes(*bucket), key))
}

/// Returns the length of the prefix that all versions of an encoded key share.
pub(crate) fn shared_length(encoded: &[u8]) -> usize {
    let length = encoded.len().saturating_sub(SEQUENCE_BYTES);
    // The terminator is before the sequence of any other version, and ends with zero.
    let is_imported = encoded[..length].ends_with(&IMPORTED);
    if is_imported { length - IMPORTED.len() } else { length }
}

/// Returns the slice that holds a key: FNV-1a of bucket id and key, with a multiply-shift finalizer. Fixed for the life of a
/// store.
///
/// # Panics
/// If there are no slices.
pub(crate) fn slice_of(bucket: u64, key: &[u8], slices: u16) -> u16 {
    assert!(slices > 0, "a store has at least one slice");
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bucket.to_le_bytes().iter().chain(key) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^= hash >> 32;
    u16::try_from(hash % u64::from(slices)).expect("a remainder is less than the number of slices")
}

#[cfg(test)]
mod tests {
    use super::{
        after_key, after_prefix, decode, decode_imported_id, decode_part, decode_upload, prefix_of,
        shared_length, slice_of, versions_of, with_imported_id, with_part, with_sequence, with_upload,
    };
    use cairn_model::{ImportedId, UploadId, VersionId};
    use proptest::prelude::*;

    fn encode(bucket: u64, key: &[u8], sequence: u64) -> Vec<u8> {
        with_sequence(&versions_of(bucket, key).expect("short"), sequence)
    }

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn encoded_bytes_do_not_change() {
        let key = encode(1, b"a\0b", 2);
        assert_eq!(key, b"\0\0\0\0\0\0\0\x01a\0\xFFb\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFD");
        let imported = encode(1, b"a", VersionId::imported_at(3).expect("early").0);
        assert_eq!(
            imported,
            b"\0\0\0\0\0\0\0\x01a\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F\xFF\xFF\xFF\xFF\xCF\xFF\xFF"
        );
        let id = ImportedId::parse("x-1").expect("well-formed");
        let of_id = with_imported_id(&versions_of(1, b"a").expect("short"), &id);
        assert_eq!(of_id, b"\0\0\0\0\0\0\0\x01a\0\0x-1");
        assert_eq!(decode_imported_id(&of_id), Some((1, b"a".to_vec(), id)));
        let upload = with_upload(&versions_of(1, b"a").expect("short"), UploadId(2));
        assert_eq!(upload, b"\0\0\0\0\0\0\0\x01a\0\0\0\0\0\0\0\0\0\x02");
        let part = with_part(&upload, 0x0304);
        assert_eq!((&part[..upload.len()], &part[upload.len()..]), (&upload[..], &b"\x03\x04"[..]));
        assert_eq!(decode_upload(&upload), Some((1, b"a".to_vec(), UploadId(2))));
        assert_eq!(decode_part(&part), Some((&upload[..], 0x0304)));
        assert_eq!([slice_of(1, b"a", 64), slice_of(1, b"b", 64), slice_of(9, b"some/key", 7)], [24, 62, 2]);
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(
            prop_oneof![Just(0u8), Just(1), Just(b'/'), Just(0xFE), Just(0xFF), any::<u8>()],
            0..12,
        )
    }

    /// Sequences of a slice, and numbers of imported versions.
    fn sequence() -> impl Strategy<Value = u64> {
        let imported = |time| VersionId::imported_at(time).expect("early").0;
        prop_oneof![1u64..9, (0u64..9).prop_map(imported), 1..u64::MAX]
    }

    proptest! {
        #[test]
        fn encodings_sort_by_key_and_newest_first(a in key(), b in key(), s in sequence(), t in sequence()) {
            let by_parts = a.cmp(&b).then(VersionId(t).cmp(&VersionId(s)));
            prop_assert_eq!(encode(7, &a, s).cmp(&encode(7, &b, t)), by_parts);
        }

        #[test]
        fn keys_decode_to_what_was_encoded(a in key(), bucket: u64, sequence in sequence()) {
            let encoded = encode(bucket, &a, sequence);
            prop_assert_eq!(decode(&encoded), Some((bucket, a.clone(), sequence)));
            prop_assert_eq!(&encoded[..shared_length(&encoded)], &versions_of(bucket, &a).expect("short")[..]);
            let id = ImportedId::parse("7f.A_-").expect("well-formed");
            let of_id = with_imported_id(&versions_of(bucket, &a).expect("short"), &id);
            prop_assert_eq!(decode_imported_id(&of_id), Some((bucket, a.clone(), id)));
        }

        #[test]
        fn positions_are_between_keys(a in key(), b in key(), s in sequence()) {
            let position = after_key(7, &a);
            prop_assert_eq!(encode(7, &b, s) > position, b > a);
            prop_assert_eq!(encode(7, &b, s).starts_with(&prefix_of(7, &a)), b.starts_with(&a));
            if let Some(position) = after_prefix(7, &a) {
                prop_assert_eq!(encode(7, &b, s) >= position, b > a && !b.starts_with(&a));
            }
        }
    }
}
