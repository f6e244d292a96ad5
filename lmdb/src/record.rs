//! Encodes and decodes the envelope of every value: checksum, version, body and tail. `lib.rs` shows its format.

use crate::error::Error;
use crc_fast::{CrcAlgorithm, Digest};

/// Bytes before the body.
pub const RECORD_HEAD_BYTES: usize = 16;

/// A value whose checksum was verified.
#[derive(Clone, Copy, Debug)]
pub struct Record<'t> {
    /// Version of the record's format.
    pub version: u8,
    /// The part that the checksum covers.
    pub body: &'t [u8],
    /// The bytes after the body. The body contains a checksum of them.
    pub tail: &'t [u8],
}

/// Returns the checksum of a key and the covered part of its value.
fn checksum(key: &[u8], covered: &[u8]) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    digest.update(key);
    digest.update(covered);
    digest.finalize()
}

/// Encodes `body` and `tail` into `out`, which is cleared first. Returns the checksum.
pub(crate) fn encode(
    out: &mut Vec<u8>,
    key: &[u8],
    version: u8,
    body: &[u8],
    tail: &[u8],
) -> Result<u64, Error> {
    let length = u32::try_from(body.len()).map_err(|_| Error::Lmdb("a record body of 4 GiB".to_owned()))?;
    out.clear();
    out.reserve(RECORD_HEAD_BYTES + body.len() + tail.len());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&[version, 0, 0, 0]);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(body);
    assert_eq!(out.len(), RECORD_HEAD_BYTES + body.len(), "the head has its fixed length");
    let value = checksum(key, &out[8..]);
    out[..8].copy_from_slice(&value.to_le_bytes());
    out.extend_from_slice(tail);
    Ok(value)
}

/// Verifies the checksum of a stored value and decodes it.
pub(crate) fn decode<'t>(key: &[u8], value: &'t [u8]) -> Result<Record<'t>, Error> {
    let corrupt = |what| Error::Corrupt { key: hex_prefix(key), what };
    let Some((head, rest)) = value.split_first_chunk::<RECORD_HEAD_BYTES>() else {
        return Err(corrupt("shorter than its head"));
    };
    let [c0, c1, c2, c3, c4, c5, c6, c7, version, _, _, _, l0, l1, l2, l3] = *head;
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    if length > rest.len() {
        return Err(corrupt("shorter than its body"));
    }
    let (body, tail) = rest.split_at(length);
    let stored = u64::from_le_bytes([c0, c1, c2, c3, c4, c5, c6, c7]);
    if stored != checksum(key, &value[8..RECORD_HEAD_BYTES + length]) {
        return Err(corrupt("the checksum does not match"));
    }
    Ok(Record { version, body, tail })
}

/// Returns the stored checksum of a value without verifying it, for the additive hash.
pub(crate) fn stored_checksum(value: &[u8]) -> u64 {
    value.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn hex_prefix(key: &[u8]) -> String {
    hex::encode(key.get(..64).unwrap_or(key))
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn any_flipped_bit_of_key_head_or_body_is_detected() {
        let (key, mut value) = (b"some key".to_vec(), Vec::new());
        encode(&mut value, &key, 1, b"the body of it", b"").expect("small");
        assert_eq!(decode(&key, &value).expect("whole").body, b"the body of it");
        for bit in 0..value.len() * 8 {
            let mut bad = value.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&key, &bad).is_err(), "bit {bit}");
        }
        assert!(decode(b"some kez", &value).is_err());
        assert!(decode(&key, &value[..10]).is_err());
    }

    #[test]
    fn the_tail_is_returned_unchecked() {
        let mut value = Vec::new();
        encode(&mut value, b"k", 3, b"body", b"tail").expect("small");
        let record = decode(b"k", &value).expect("whole");
        assert_eq!((record.version, record.body, record.tail), (3, &b"body"[..], &b"tail"[..]));
    }

    /// Golden bytes: a change here changes the on-disk format.
    #[test]
    fn the_format_of_a_value_does_not_change() {
        let mut value = Vec::new();
        encode(&mut value, b"key", 1, &[0xaa, 0xbb], &[0xcc]).expect("small");
        assert_eq!(value[8..], [1, 0, 0, 0, 2, 0, 0, 0, 0xaa, 0xbb, 0xcc]);
        assert_eq!(value.len(), 19);
    }
}
