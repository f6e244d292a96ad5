//! `object_key`: see `engine/src/fuzz.rs` for the properties that must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_engine::fuzz::object_key(data));
