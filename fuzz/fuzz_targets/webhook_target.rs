//! `webhook_target`: see `webhooks/src/fuzz.rs` for the properties that must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_webhooks::fuzz::webhook_target(data));
