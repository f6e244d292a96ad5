//! The one place that prints. What could not be written is a failure. A closed pipe is none: whoever reads has seen what
//! it wanted; but a secret that is shown once must have been taken.

use std::fmt::Write as _;
use std::io::{ErrorKind, Result, Write};

use serde_json::Value;

use crate::failure::Outcome;

/// To the standard output, as it stands. Fails when it cannot be written, but not when the reader has closed the pipe.
pub(crate) fn print(text: &str) -> Outcome {
    match write(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("the answer could not be written: {error}").into())
        }
        _ => Ok(()),
    }
}

/// As [`print`], of what is lost when nobody reads it: fails on a closed pipe too, and says `lost` then.
pub(crate) fn print_secret(text: &str, lost: &str) -> Outcome {
    write(text).map_err(|error| format!("the answer could not be written: {error}\n  {lost}").into())
}

fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// To the standard error output, as it stands.
pub(crate) fn print_error(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// A value as one word or sentence: text without its quotes, anything else as JSON writes it.
pub(crate) fn word(value: &Value) -> String {
    plain(value.as_str().map_or_else(|| value.to_string(), str::to_owned).as_str())
}

/// Without what could drive the terminal, or show text in another order than it has: what a server sends is only text.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|&character| !is_driving(character)).collect()
}

/// JSON for machines that may also be read on a terminal: characters that could drive it are escaped, which leaves the
/// value the same.
pub(crate) fn json(value: &Value) -> String {
    let mut text = String::new();
    // The alternate form is the pretty one.
    for character in format!("{value:#}\n").chars() {
        if is_driving(character) && character != '\n' {
            // Writing to a string does not fail. None of these lies beyond U+FFFF.
            let _ = write!(text, "\\u{:04x}", u32::from(character));
        } else {
            text.push(character);
        }
    }
    text
}

/// Control characters, line separators and marks of direction.
fn is_driving(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_that_drives_a_terminal_is_left_and_json_stays_the_same_value() {
        let hostile = "a\u{1b}[2J\u{9b}31m\u{7f}\r\n\u{202e}z\u{2028}";
        assert_eq!(plain(hostile), "a[2J31mz");
        let value = json!({"name": hostile, hostile: [1, {"x": null}]});
        let text = json(&value);
        assert!(!text.chars().any(|character| is_driving(character) && character != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(value));
        assert_eq!(json(&json!({"b": 1})), "{\n  \"b\": 1\n}\n");
    }
}
