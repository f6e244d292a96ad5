//! What must hold of stored values for any bytes: the body of the fuzz target in `fuzz/`, which `cargo test` runs on
//! the kept corpus and on mutations of it.

use crate::record::{open, seal, stored_check};

/// What a fuzz target calls with its input; it panics when a property does not hold.
pub type Body = fn(&[u8]);

/// The bodies of this crate, by the names of their targets.
pub const BODIES: &[(&str, Body)] = &[("lmdb_envelope", lmdb_envelope)];

/// A key and a value, the key's length in the first byte: what opens was sealed so, what is sealed opens, and no other
/// key or body opens it.
///
/// # Panics
/// When a property does not hold.
pub fn lmdb_envelope(data: &[u8]) {
    let Some((&length, rest)) = data.split_first() else { return };
    let (key, value) = rest.split_at(usize::from(length).min(rest.len()));
    let mut sealed = Vec::new();
    if let Ok(record) = open(key, value) {
        assert_eq!(16 + record.body.len() + record.tail.len(), value.len());
        assert!(seal(&mut sealed, key, record.version, record.body, record.tail).is_ok());
        let again = open(key, &sealed).expect("what was sealed opens");
        assert_eq!((again.version, again.body, again.tail), (record.version, record.body, record.tail));
    }
    // The fuzzer finds no check by chance, so that the value is also taken for a body.
    let (body, tail) = value.split_at(value.len() / 2);
    let check = seal(&mut sealed, key, length, body, tail).expect("it is short");
    assert_eq!(stored_check(&sealed), check);
    let record = open(key, &sealed).expect("what was sealed opens");
    assert_eq!((record.version, record.body, record.tail), (length, body, tail));
    let covered = sealed.len() - tail.len();
    let at = usize::from(length) % covered;
    sealed[at] ^= 1 << (length % 8);
    assert!(open(key, &sealed).is_err(), "a flipped bit at {at} is found");
}

#[cfg(test)]
#[path = "../../fuzz/slice.rs"]
mod slice;
