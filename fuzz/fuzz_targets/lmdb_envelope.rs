//! `lmdb_envelope`: see `lmdb/src/fuzz.rs` for the properties that must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_lmdb::fuzz::lmdb_envelope(data));
