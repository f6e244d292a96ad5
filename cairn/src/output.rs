//! The one place that prints. A closed pipe is no reason to fail: whoever reads has seen what it wanted.

use std::io::Write;

/// To the standard output, as it stands.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// To the standard error output, as it stands.
pub(crate) fn print_error(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// A value as one word or sentence: text without its quotes, anything else as JSON writes it.
pub(crate) fn word(value: &serde_json::Value) -> String {
    plain(value.as_str().map_or_else(|| value.to_string(), str::to_owned).as_str())
}

/// Without control characters: what a server sends must not drive the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).collect()
}
