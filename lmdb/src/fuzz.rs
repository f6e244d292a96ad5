//! The body of this crate's fuzz target in `fuzz/`. `cargo test` runs it on the stored corpus and on mutations of it.

use crate::record::{decode, encode, stored_checksum};

/// A function that a fuzz target calls with its input. It panics when a property does not hold.
pub type Body = fn(&[u8]);

/// The bodies of this crate with the names of their targets.
pub const BODIES: &[(&str, Body)] = &[("lmdb_envelope", lmdb_envelope)];

/// Takes a key and a value, with the key's length in the first byte. What decodes can be encoded again, what is encoded
/// decodes, and it does not decode with another key or body.
///
/// # Panics
/// Panics when a property does not hold.
pub fn lmdb_envelope(data: &[u8]) {
    let Some((&length, rest)) = data.split_first() else { return };
    let (key, value) = rest.split_at(usize::from(length).min(rest.len()));
    let mut encoded = Vec::new();
    if let Ok(record) = decode(key, value) {
        assert_eq!(16 + record.body.len() + record.tail.len(), value.len());
        assert!(encode(&mut encoded, key, record.version, record.body, record.tail).is_ok());
        let again = decode(key, &encoded).expect("an encoded value decodes");
        assert_eq!((again.version, again.body, again.tail), (record.version, record.body, record.tail));
    }
    // A fuzzer finds no valid checksum by chance, so the value is also used as a body.
    let (body, tail) = value.split_at(value.len() / 2);
    let checksum = encode(&mut encoded, key, length, body, tail).expect("it is short");
    assert_eq!(stored_checksum(&encoded), checksum);
    let record = decode(key, &encoded).expect("an encoded value decodes");
    assert_eq!((record.version, record.body, record.tail), (length, body, tail));
    let covered = encoded.len() - tail.len();
    let at = usize::from(length) % covered;
    encoded[at] ^= 1 << (length % 8);
    assert!(decode(key, &encoded).is_err(), "a flipped bit at {at} is detected");
}

#[cfg(test)]
#[path = "../../fuzz/short_run.rs"]
mod short_run;
