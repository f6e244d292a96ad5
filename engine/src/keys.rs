//! Keys of records, big-endian: `bucket id (8) · escaped key · 00 00 ·`
//! - of an object's version: `inverted sequence (8)`;
//! - of an upload: `upload id (8)`, so that uploads for a key stand in the order in which they were begun;
//! - of a part: `upload id (8) · part number (2)`;
//! - of what a key has once: nothing more.
//!
//! A zero byte of the key is escaped as `00 FF`, so that the order of encoded keys is the order of the keys' bytes
//! and no key's encoding is the beginning of another's. The sequence is inverted: newest version first. All versions
//! of a key stand together, and a prefix of a key encodes to a prefix of its encoding.

use crate::limits::ENCODED_KEY_BYTES_MAX;
use cairn_model::UploadId;

const TERMINATOR: [u8; 2] = [0, 0];
const SEQUENCE_BYTES: usize = 8;
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

/// Beginning of the encodings of all keys of a bucket that begin with `prefix`.
pub(crate) fn prefix_of(bucket: u64, prefix: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + prefix.len() + TERMINATOR.len() + SEQUENCE_BYTES);
    out.extend_from_slice(&bucket.to_be_bytes());
    escape(&mut out, prefix);
    out
}

/// Beginning of the encodings of all versions of one key; `None` when it would be too long for LMDB.
pub(crate) fn versions_of(bucket: u64, key: &[u8]) -> Option<Vec<u8>> {
    let mut out = prefix_of(bucket, key);
    out.extend_from_slice(&TERMINATOR);
    (out.len() + SEQUENCE_BYTES + NUMBER_BYTES <= ENCODED_KEY_BYTES_MAX).then_some(out)
}

/// Appends a version's sequence to what [`versions_of`] gave.
pub(crate) fn with_sequence(versions: &[u8], sequence: u64) -> Vec<u8> {
    let mut out = versions.to_vec();
    out.extend_from_slice(&(!sequence).to_be_bytes());
    out
}

/// Appends an upload's id to what [`versions_of`] gave: the upload's key, and the beginning of its parts' keys.
pub(crate) fn with_upload(versions: &[u8], upload: UploadId) -> Vec<u8> {
    let mut out = versions.to_vec();
    out.extend_from_slice(&upload.0.to_be_bytes());
    out
}

/// Appends a part's number to what [`with_upload`] gave.
pub(crate) fn with_part(upload: &[u8], number: u16) -> Vec<u8> {
    let mut out = upload.to_vec();
    out.extend_from_slice(&number.to_be_bytes());
    out
}

/// Bucket, key and id of an upload's key; `None` when it is none.
pub(crate) fn decode_upload(encoded: &[u8]) -> Option<(u64, Vec<u8>, UploadId)> {
    decode(encoded).map(|(bucket, key, inverted)| (bucket, key, UploadId(!inverted)))
}

/// Key of the upload, and number, of a part's key; `None` when it is none.
pub(crate) fn decode_part(encoded: &[u8]) -> Option<(&[u8], u16)> {
    let (upload, number) = encoded.split_last_chunk::<NUMBER_BYTES>()?;
    Some((upload, u16::from_be_bytes(*number)))
}

/// A place behind all versions of `key` and in front of the next key.
pub(crate) fn after_key(bucket: u64, key: &[u8]) -> Vec<u8> {
    let mut out = prefix_of(bucket, key);
    out.extend_from_slice(&TERMINATOR);
    behind_all_of(&out)
}

/// A place behind all that belongs to the key with this beginning (what [`versions_of`] gives) and in front of the next.
pub(crate) fn behind_all_of(versions: &[u8]) -> Vec<u8> {
    [versions, &[0xFF; SEQUENCE_BYTES + 1]].concat()
}

/// A place behind all keys that begin with `prefix`; `None` when there is none.
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

/// Bucket, key and sequence of an encoded key; `None` when it is none.
pub(crate) fn decode(encoded: &[u8]) -> Option<(u64, Vec<u8>, u64)> {
    let (bucket, rest) = encoded.split_first_chunk::<8>()?;
    let (rest, sequence) = rest.split_last_chunk::<SEQUENCE_BYTES>()?;
    let escaped = rest.strip_suffix(&TERMINATOR)?;
    let mut key = Vec::with_capacity(escaped.len());
    let mut bytes = escaped.iter();
    while let Some(&byte) = bytes.next() {
        key.push(byte);
        if byte == 0 && bytes.next() != Some(&0xFF) {
            return None;
        }
    }
    Some((u64::from_be_bytes(*bucket), key, !u64::from_be_bytes(*sequence)))
}

/// Length of the part of an encoded key that all versions of the key share.
pub(crate) const fn shared_length(encoded: &[u8]) -> usize {
    encoded.len().saturating_sub(SEQUENCE_BYTES)
}

/// Which slice holds a key: FNV-1a of bucket id and key, finished with a multiply-shift mix. Fixed for the life of a store.
pub(crate) fn slice_of(bucket: u64, key: &[u8], slices: u16) -> u16 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bucket.to_le_bytes().iter().chain(key) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^= hash >> 32;
    u16::try_from(hash % u64::from(slices.max(1))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{
        after_key, after_prefix, decode, decode_part, decode_upload, prefix_of, shared_length, slice_of,
        versions_of, with_part, with_sequence, with_upload,
    };
    use cairn_model::UploadId;
    use proptest::prelude::*;

    fn encode(bucket: u64, key: &[u8], sequence: u64) -> Vec<u8> {
        with_sequence(&versions_of(bucket, key).expect("short"), sequence)
    }

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn the_form_of_a_key_does_not_change() {
        let key = encode(1, b"a\0b", 2);
        assert_eq!(key, b"\0\0\0\0\0\0\0\x01a\0\xFFb\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFD");
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

    proptest! {
        #[test]
        fn order_of_keys_then_newest_first(a in key(), b in key(), s in 0u64..9, t in 0u64..9) {
            let by_parts = a.cmp(&b).then(t.cmp(&s));
            prop_assert_eq!(encode(7, &a, s).cmp(&encode(7, &b, t)), by_parts);
        }

        #[test]
        fn encodings_decode_to_what_was_encoded(a in key(), bucket: u64, sequence: u64) {
            let encoded = encode(bucket, &a, sequence);
            prop_assert_eq!(decode(&encoded), Some((bucket, a.clone(), sequence)));
            prop_assert_eq!(&encoded[..shared_length(&encoded)], &versions_of(bucket, &a).expect("short")[..]);
        }

        #[test]
        fn places_lie_between_keys(a in key(), b in key(), s: u64) {
            let place = after_key(7, &a);
            prop_assert_eq!(encode(7, &b, s) > place, b > a);
            prop_assert_eq!(encode(7, &b, s).starts_with(&prefix_of(7, &a)), b.starts_with(&a));
            if let Some(place) = after_prefix(7, &a) {
                prop_assert_eq!(encode(7, &b, s) >= place, b > a && !b.starts_with(&a));
            }
        }
    }
}
