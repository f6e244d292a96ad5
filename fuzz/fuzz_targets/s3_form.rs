//! `s3_form`: see `s3/src/fuzz.rs` for the properties that must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_s3::fuzz::s3_form(data));
