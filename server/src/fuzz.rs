//! What must hold of configuration values for any text: the body of the fuzz target in `fuzz/`, which `cargo test` runs on
//! the kept corpus and on mutations of it.

use crate::config::{ALL_KEYS, Kind, Value, expected, parse_text};

/// What a fuzz target calls with its input; it panics when a property does not hold.
pub type Body = fn(&[u8]);

/// The bodies of this crate, by the names of their targets.
pub const BODIES: &[(&str, Body)] = &[("config_value", config_value)];

/// A text as the value of every key: what is accepted, written out, is accepted as the same; what is refused is refused
/// with what the value must be, and never with what it was. Addresses are left out: they ask the resolver.
///
/// # Panics
/// When a property does not hold.
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
#[path = "../../fuzz/slice.rs"]
mod slice;
