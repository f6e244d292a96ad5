//! Formats log lines into a byte buffer: timestamps, numbers, JSON strings, `key=value` text.
//!
//! Written by hand because the request log formats a line for every request. All text from clients is escaped here, so that no
//! value can end a line, forge another line or control a terminal.

use cairn_model::calendar::{SECONDS_PER_DAY, date_of_days};
use cairn_model::usize_of;
use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

/// The format of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// `time level target: message key=value …`
    Text,
    /// One JSON object per line.
    Json,
}

/// `YYYY-MM-DDTHH:MM:SS`
const SECOND_TEXT_BYTES: usize = 19;

thread_local! {
    /// The second that this thread formatted last, and its text. A busy executor formats thousands of lines per second.
    static LAST_SECOND: RefCell<(u64, [u8; SECOND_TEXT_BYTES])> = const { RefCell::new((u64::MAX, [0; SECOND_TEXT_BYTES])) };
}

/// Appends the current time in RFC 3339, UTC, with microseconds.
pub(crate) fn push_now(out: &mut Vec<u8>) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    push_time(out, since.as_secs(), since.subsec_micros());
}

/// Appends a time, given as `seconds` since the Unix epoch and `micros` of the second, in RFC 3339, UTC.
pub(crate) fn push_time(out: &mut Vec<u8>, seconds: u64, micros: u32) {
    LAST_SECOND.with_borrow_mut(|(last, text)| {
        if *last != seconds {
            *text = second_text(seconds);
            *last = seconds;
        }
        out.extend_from_slice(text);
    });
    out.push(b'.');
    push_padded(out, u64::from(micros), 6);
    out.push(b'Z');
}

fn second_text(seconds: u64) -> [u8; SECOND_TEXT_BYTES] {
    let (year, month, day) = date_of_days(seconds / SECONDS_PER_DAY);
    let of_day = seconds % SECONDS_PER_DAY;
    let mut line = Vec::with_capacity(SECOND_TEXT_BYTES);
    for (value, digits, separator) in [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b'T'),
        (of_day / 3600, 2, b':'),
        (of_day / 60 % 60, 2, b':'),
        (of_day % 60, 2, b' '),
    ] {
        push_padded(&mut line, value, digits);
        line.push(separator);
    }
    let mut text = [b'0'; SECOND_TEXT_BYTES];
    text.copy_from_slice(&line[..SECOND_TEXT_BYTES]);
    text
}

/// Appends `value` in decimal.
pub(crate) fn push_decimal(out: &mut Vec<u8>, value: u64) {
    push_padded(out, value, 1);
}

/// Appends `value` in decimal with leading zeros up to `digits_min`.
pub(crate) fn push_padded(out: &mut Vec<u8>, mut value: u64, digits_min: usize) {
    /// Digits of `u64::MAX`.
    const DIGITS_MAX: usize = 20;
    let mut digits = [b'0'; DIGITS_MAX];
    let mut start = DIGITS_MAX;
    while value > 0 {
        start -= 1;
        digits[start] = DECIMAL[usize_of(value % 10)];
        value /= 10;
    }
    let start = start.min(DIGITS_MAX - digits_min.min(DIGITS_MAX));
    out.extend_from_slice(&digits[start..]);
}

const DECIMAL: [u8; 10] = *b"0123456789";
const HEX: [u8; 16] = *b"0123456789abcdef";

/// Appends `text` as a JSON string with its quotes (RFC 8259 section 7). DEL and the C1 controls are escaped too, although
/// JSON allows them, because log files are read on terminals.
pub(crate) fn push_json_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Appends `text` with quotes, backslashes, control characters and line separators escaped as in JSON.
pub(crate) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    if text.bytes().all(plain) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                push_unicode_escape(out, character)
            }
            _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Appends `\uXXXX` for a character of the basic multilingual plane.
fn push_unicode_escape(out: &mut Vec<u8>, character: char) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        let nibble = (u32::from(character) >> shift) & 0xf;
        out.push(HEX[nibble as usize]);
    }
}

/// Appends a value of the text format: bare if it is one plain word, otherwise quoted and escaped.
pub(crate) fn push_text_value(out: &mut Vec<u8>, text: &str) {
    let bare = |byte: u8| (0x21..0x7f).contains(&byte) && !matches!(byte, b'"' | b'\\' | b'=');
    if !text.is_empty() && text.bytes().all(bare) {
        out.extend_from_slice(text.as_bytes());
    } else {
        push_json_string(out, text);
    }
}

/// Appends the beginning of a line: time, level and target.
pub(crate) fn push_line_start(out: &mut Vec<u8>, format: LogFormat, level: &'static str, target: &str) {
    match format {
        LogFormat::Text => {
            push_now(out);
            // Pads levels so that targets are aligned.
            out.extend_from_slice(if level.len() == 4 { b"  " } else { b" " });
            out.extend_from_slice(level.as_bytes());
            out.push(b' ');
            push_escaped(out, target);
            out.push(b':');
        }
        LogFormat::Json => {
            out.extend_from_slice(b"{\"timestamp\":\"");
            push_now(out);
            out.extend_from_slice(b"\",\"level\":\"");
            out.extend_from_slice(level.as_bytes());
            out.extend_from_slice(b"\",\"target\":");
            push_json_string(out, target);
        }
    }
}

/// Appends the separator and the name of a field. Names are constants and need no escaping.
pub(crate) fn push_field_name(out: &mut Vec<u8>, format: LogFormat, name: &'static str) {
    match format {
        LogFormat::Text => {
            out.push(b' ');
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
        }
        LogFormat::Json => {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
        }
    }
}

/// Appends a field whose value is text.
pub(crate) fn push_text_field(out: &mut Vec<u8>, format: LogFormat, name: &'static str, value: &str) {
    push_field_name(out, format, name);
    match format {
        LogFormat::Text => push_text_value(out, value),
        LogFormat::Json => push_json_string(out, value),
    }
}

/// Appends a field whose value is a number.
pub(crate) fn push_number_field(out: &mut Vec<u8>, format: LogFormat, name: &'static str, value: u64) {
    push_field_name(out, format, name);
    push_decimal(out, value);
}

/// Appends the message. In the text format it has no field name.
pub(crate) fn push_message(out: &mut Vec<u8>, format: LogFormat, message: &str) {
    match format {
        LogFormat::Text => {
            out.push(b' ');
            push_escaped(out, message);
        }
        LogFormat::Json => push_text_field(out, format, "message", message),
    }
}

/// Appends the end of a line.
pub(crate) fn push_line_end(out: &mut Vec<u8>, format: LogFormat) {
    if format == LogFormat::Json {
        out.push(b'}');
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time(seconds: u64, micros: u32) -> String {
        let mut out = Vec::new();
        push_time(&mut out, seconds, micros);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_follow_the_calendar() {
        assert_eq!(time(0, 0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(time(951_827_696, 7), "2000-02-29T12:34:56.000007Z");
        assert_eq!(time(1_795_237_200, 999_999), "2026-11-21T05:00:00.999999Z");
        assert_eq!(time(4_107_542_399, 0), "2100-02-28T23:59:59.000000Z");
        assert_eq!(time(4_107_542_400, 0), "2100-03-01T00:00:00.000000Z");
    }

    #[test]
    fn numbers_are_padded() {
        let text = |value, digits| {
            let mut out = Vec::new();
            push_padded(&mut out, value, digits);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0, 1), "0");
        assert_eq!(text(7, 3), "007");
        assert_eq!(text(u64::MAX, 1), u64::MAX.to_string());
    }

    #[test]
    fn values_cannot_break_out_of_their_line_or_field() {
        let mut out = Vec::new();
        push_text_value(&mut out, "a\r\nb level=ERROR \u{1b}[31m\u{2028}\u{85}");
        assert_eq!(out, br#""a\r\nb level=ERROR \u001b[31m\u2028\u0085""#);
    }

    proptest! {
        #[test]
        fn json_strings_round_trip(text in any::<String>()) {
            let mut out = Vec::new();
            push_json_string(&mut out, &text);
            prop_assert!(!out.iter().any(|byte| byte.is_ascii_control()));
            let back: String = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(back, text);
        }
    }
}
