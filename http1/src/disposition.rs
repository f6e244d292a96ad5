//! Formats `Content-Disposition` with a file name (RFC 6266, RFC 8187).
//!
//! The name is chosen by whoever may write the object. It cannot leave the quotes of the plain form, and the extended
//! form is percent-encoded, so no header can be injected. Invisible characters and marks of text direction, by which a
//! name can appear as another one, are replaced.

use crate::percent::encode_strict;

/// The file name when the key has none.
const NAME_DEFAULT: &str = "download";
/// Longest file name that file systems accept, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Replaces a character that is not allowed.
const REPLACEMENT: char = '_';

/// Returns the value of the header for an object that is downloaded. The last segment of its key becomes the file name.
#[must_use]
pub fn attachment(key: &str) -> String {
    disposition("attachment", key)
}

/// As [`attachment`], for an object that a browser may show.
#[must_use]
pub fn inline(key: &str) -> String {
    disposition("inline", key)
}

fn disposition(kind: &str, key: &str) -> String {
    let name = file_name(key);
    let is_plain = |c: char| c == ' ' || (c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '%'));
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { REPLACEMENT }).collect();
    format!("{kind}; filename=\"{plain}\"; filename*=UTF-8''{}", encode_strict(&name))
}

/// Returns the last non-empty segment of a key, made safe as a file name.
#[must_use]
pub fn file_name(key: &str) -> String {
    let segment = key.rsplit(['/', '\\']).find(|segment| !segment.is_empty()).unwrap_or_default();
    let replaced = segment.chars().map(|c| if is_deceptive(c) { REPLACEMENT } else { c });
    let mut name = String::with_capacity(segment.len());
    for c in replaced {
        if name.len() + c.len_utf8() > NAME_BYTES_MAX {
            break;
        }
        name.push(c);
    }
    // A name of only dots is a folder, and some systems drop spaces around a name.
    let shown = name.trim();
    if shown.chars().all(|c| c == '.') { NAME_DEFAULT.to_owned() } else { shown.to_owned() }
}

/// Returns whether a character is a control, a line separator, a mark of direction or has no width (Unicode, UAX #9 and
/// general category Cf).
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::{attachment, inline};

    #[test]
    fn the_last_segment_is_the_file_name() {
        for (key, expected) in [
            ("a.txt", "attachment; filename=\"a.txt\"; filename*=UTF-8''a.txt"),
            ("folder/my file.txt", "attachment; filename=\"my file.txt\"; filename*=UTF-8''my%20file.txt"),
            ("folder/", "attachment; filename=\"folder\"; filename*=UTF-8''folder"),
            ("///", "attachment; filename=\"download\"; filename*=UTF-8''download"),
            ("a/..", "attachment; filename=\"download\"; filename*=UTF-8''download"),
            ("c:\\windows\\x.dll", "attachment; filename=\"x.dll\"; filename*=UTF-8''x.dll"),
            ("grüße.txt", "attachment; filename=\"gr__e.txt\"; filename*=UTF-8''gr%C3%BC%C3%9Fe.txt"),
            ("100%.txt", "attachment; filename=\"100_.txt\"; filename*=UTF-8''100%25.txt"),
        ] {
            assert_eq!(attachment(key), expected);
            assert_eq!(inline(key), expected.replace("attachment", "inline"));
        }
    }

    #[test]
    fn no_name_leaves_its_quotes_or_deceives_readers() {
        for (key, expected) in [
            ("a\"; x=\"b", "attachment; filename=\"a__ x=_b\"; filename*=UTF-8''a%22%3B%20x%3D%22b"),
            (
                "a\r\nset-cookie: x=1",
                "attachment; filename=\"a__set-cookie: x=1\"; filename*=UTF-8''a__set-cookie%3A%20x%3D1",
            ),
            ("\u{202e}txt.exe", "attachment; filename=\"_txt.exe\"; filename*=UTF-8''_txt.exe"),
            (
                "a\u{2066}b\u{200b}c\u{feff}\u{7f}\u{85}",
                "attachment; filename=\"a_b_c___\"; filename*=UTF-8''a_b_c___",
            ),
        ] {
            // A semicolon is harmless within quotes.
            assert_eq!(attachment(key), expected.replace("a__ x", "a_; x"));
        }
    }

    #[test]
    fn a_long_name_is_truncated_between_characters() {
        let value = attachment(&"ü".repeat(400));
        assert_eq!(value.matches("%C3%BC").count(), 127);
        let name = "a".repeat(255);
        let expected = format!("attachment; filename=\"{name}\"; filename*=UTF-8''{name}");
        assert_eq!(attachment(&"a".repeat(1024)), expected);
    }
}
