//! `config_value`: see `server/src/fuzz.rs` for the properties that must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_server::fuzz::config_value(data));
