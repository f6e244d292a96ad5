//! `http_chunked`: see `http1/src/fuzz.rs` for the properties that must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_http1::fuzz::http_chunked(data));
