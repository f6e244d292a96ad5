//! Text that is safe to print on a terminal: control characters and direction marks are removed or escaped.

use std::fmt::Write as _;

use serde_json::Value;

/// Formats a JSON value: text without its quotes, anything else as JSON.
pub(crate) fn word(value: &Value) -> String {
    plain(value.as_str().map_or_else(|| value.to_string(), str::to_owned).as_str())
}

/// Removes characters that could control the terminal or change the order in which text is shown.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|&character| !is_unsafe(character)).collect()
}

/// Like [`plain`], for text of our own with line ends.
pub(crate) fn lines(text: &str) -> String {
    text.chars().filter(|&character| character == '\n' || !is_unsafe(character)).collect()
}

/// Formats JSON for machines that is also safe on a terminal: control characters are escaped, which does not change the value.
pub(crate) fn json(value: &Value) -> String {
    // The alternate form is the pretty one.
    escaped(&format!("{value:#}\n"))
}

/// Like [`json`], on one line.
pub(crate) fn json_line(value: &Value) -> String {
    escaped(&format!("{value}\n"))
}

fn escaped(json: &str) -> String {
    let mut text = String::new();
    for character in json.chars() {
        if is_unsafe(character) && character != '\n' {
            // Writing to a string does not fail. All of these are below U+10000.
            let _ = write!(text, "\\u{:04x}", u32::from(character));
        } else {
            text.push(character);
        }
    }
    text
}

/// Returns whether a character is a control character, a line separator or a direction mark.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn control_characters_are_removed_or_escaped() {
        let hostile = "a\u{1b}[2J\u{9b}31m\u{7f}\r\n\u{202e}z\u{2028}";
        assert_eq!(plain(hostile), "a[2J31mz");
        let value = json!({"name": hostile, hostile: [1, {"x": null}]});
        let text = json(&value);
        assert!(!text.chars().any(|character| is_unsafe(character) && character != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(value.clone()));
        let line = json_line(&value);
        assert_eq!(line.lines().count(), 1, "{line:?}");
        assert_eq!(serde_json::from_str::<Value>(&line).ok(), Some(value));
        assert_eq!(json(&json!({"b": 1})), "{\n  \"b\": 1\n}\n");
    }
}
