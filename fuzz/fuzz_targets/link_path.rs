//! `link_path`: see `sharing/src/fuzz.rs` for the properties that must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_sharing::fuzz::link_path(data));
