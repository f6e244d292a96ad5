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

/// Without control characters: what a server sends must not drive the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).collect()
}
