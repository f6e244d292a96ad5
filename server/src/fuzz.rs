//! The fuzz target for configuration values. `cargo test` runs it on the stored corpus and on mutations of it.

use crate::config::{ALL_KEYS, Kind, Value, expected, parse_text};

/// The body of a fuzz target. Panics if a property does not hold for the input.
pub type Body = fn(&[u8]);

/// The bodies of this crate, with the names of their targets.
pub const BODIES: &[(&str, Body)] = &[("config_value", config_value)];

/// Parses a text as the value of every key. An accepted value must be accepted again, as the same value, when it is formatted.
/// The error for a refused value must say what the value must be and must not repeat it. Addresses are excluded, because
/// parsing them calls the resolver.
///
/// # Panics
/// If a property does not hold.
pub fn config_value(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for key in ALL_KEYS.iter().filter(|key| !matches!(key.kind, Kind::Address)) {
        match parse_text(key.kind, text) {
            Ok(Value::Secret(secret)) => assert_eq!(secret.expose(), text),
            Ok(value) => assert_eq!(parse_text(key.kind, &value.to_string()).as_ref(), Ok(&value)),
            Err(_) if matches!(key.kind, Kind::LogFilter) => {}
            Err(told) => assert_eq!(told, expected(key.kind)),
        }
    }
}

#[cfg(test)]
#[path = "../../fuzz/short_run.rs"]
mod short_run;
