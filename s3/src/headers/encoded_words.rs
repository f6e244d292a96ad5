//! User metadata that is not ASCII: RFC 2047 encoded words, as Amazon S3 sends and reads them.
//!
//! Source: "Working with object metadata" (AWS), User-defined object metadata; RFC 2047. HTTP clients disagree about bytes
//! beyond ASCII in headers, and some refuse the whole response. A response therefore has them encoded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Most characters of an encoded word without its frame `=?UTF-8?B?…?=`: a word has at most 75 (RFC 2047 section 2).
const ENCODED_CHARACTERS_MAX: usize = 63;

/// Returns a stored value as a response has it. Bytes that are not UTF-8 are taken for ISO 8859-1, as HTTP once did. The
/// encoding is Q if most characters are ASCII, else B.
pub(crate) fn encode(value: &[u8]) -> Cow<'_, [u8]> {
    if value.is_ascii() {
        return Cow::Borrowed(value);
    }
    let text: Cow<'_, str> = match std::str::from_utf8(value) {
        Ok(text) => text.into(),
        Err(_) => value.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
    };
    let is_mostly_ascii = 2 * text.chars().filter(char::is_ascii).count() > text.chars().count();
    let mut words = String::with_capacity(text.len() * 2 + 16);
    push_words(&mut words, &text, is_mostly_ascii);
    Cow::Owned(words.into_bytes())
}

/// Appends a text as one word, or as those of its halves if it is too long.
fn push_words(words: &mut String, text: &str, is_q: bool) {
    let encoded = if is_q { encode_q(text) } else { STANDARD.encode(text) };
    let middle = text.floor_char_boundary(text.len() / 2);
    if encoded.len() > ENCODED_CHARACTERS_MAX && middle > 0 {
        push_words(words, &text[..middle], is_q);
        push_words(words, &text[middle..], is_q);
        return;
    }
    let separator = if words.is_empty() { "" } else { " " };
    let encoding = if is_q { 'Q' } else { 'B' };
    write!(words, "{separator}=?UTF-8?{encoding}?{encoded}?=").expect("writing to a String does not fail");
}

/// Encodes a text as Q (RFC 2047 section 4.2).
fn encode_q(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b' ' => encoded.push('_'),
            b'=' | b'_' | b'?' => write!(encoded, "={byte:02X}").expect("writing to a String does not fail"),
            b'!'..=b'~' => encoded.push(char::from(byte)),
            _ => write!(encoded, "={byte:02X}").expect("writing to a String does not fail"),
        }
    }
    encoded
}

/// Returns a value as it is stored. Encoded words whose text is printable ASCII are decoded; others stay, because a response
/// would have them encoded again. They also stay if a recipient would read the text otherwise: blanks at its ends are not part
/// of a header's value (RFC 9110 section 5.5), and text with encoded words would be decoded once more.
pub(crate) fn decode(value: &[u8]) -> Cow<'_, [u8]> {
    let decoded = std::str::from_utf8(value).ok().filter(|text| text.contains("=?")).and_then(decode_words);
    let decoded = decoded.filter(|text| text.trim_ascii() == text && !text.contains("=?"));
    decoded.map_or(Cow::Borrowed(value), |text| Cow::Owned(text.into_bytes()))
}

/// Decodes all words of a text; `None` if one cannot be, or is not printable ASCII. White space between two encoded words is
/// not part of the text (RFC 2047 section 6.2).
fn decode_words(text: &str) -> Option<String> {
    let mut decoded = String::with_capacity(text.len());
    let mut follows_word = false;
    let mut rest = text;
    while let Some(at) = rest.find("=?") {
        let (before, word) = rest.split_at(at);
        if !(follows_word && before.trim_ascii().is_empty()) {
            decoded.push_str(before);
        }
        let mut parts = word[2..].splitn(3, '?');
        let (charset, encoding, tail) = (parts.next()?, parts.next()?, parts.next()?);
        let (encoded, later) = tail.split_once("?=")?;
        if !["utf-8", "us-ascii", "iso-8859-1"].iter().any(|known| charset.eq_ignore_ascii_case(known)) {
            return None;
        }
        let bytes = match encoding {
            "B" | "b" => STANDARD.decode(encoded).ok()?,
            "Q" | "q" => decode_q(encoded)?,
            _ => return None,
        };
        let printable = bytes.iter().all(|byte| (b' '..=b'~').contains(byte));
        decoded.push_str(printable.then(|| String::from_utf8(bytes).ok()).flatten()?.as_str());
        follows_word = true;
        rest = later;
    }
    decoded.push_str(rest);
    Some(decoded)
}

/// Decodes the Q encoding (RFC 2047 section 4.2).
fn decode_q(encoded: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first {
            b'_' => bytes.push(b' '),
            b'=' => {
                let (digits, tail) = tail.split_at_checked(2)?;
                bytes.extend(hex::decode(digits).ok()?);
                rest = tail;
            }
            other => bytes.push(*other),
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn text_beyond_ascii_is_encoded_in_words_of_at_most_75_characters() {
        assert_eq!(&*encode("é".as_bytes()), b"=?UTF-8?B?w6k=?=");
        assert_eq!(&*encode(b"\xe9"), b"=?UTF-8?B?w6k=?=");
        assert_eq!(&*encode("a_ö=1 b".as_bytes()), b"=?UTF-8?Q?a=5F=C3=B6=3D1_b?=");
        assert_eq!(&*encode(b"plain =?text?="), b"plain =?text?=");
        for (long, start) in [("\u{20ac}".repeat(40), "=?UTF-8?B?"), ("ab \u{20ac}".repeat(40), "=?UTF-8?Q?")]
        {
            let encoded = String::from_utf8(encode(long.as_bytes()).into_owned()).expect("ASCII");
            let words: Vec<&str> = encoded.split(' ').collect();
            assert!(words.len() > 2 && words.iter().all(|word| word.len() <= 75 && word.starts_with(start)));
        }
    }

    #[test]
    fn encoded_ascii_is_decoded_and_everything_else_is_kept() {
        for (sent, stored) in [
            ("=?UTF-8?B?YWJj?=", "abc"),
            ("=?utf-8?q?a=20b_c?=", "a b c"),
            ("x =?UTF-8?Q?a?= =?UTF-8?Q?b?= y", "x ab y"),
            ("=?UTF-8?B?w6k=?=", "=?UTF-8?B?w6k=?="),
            ("=?UTF-8?Q?=0D=0A?=", "=?UTF-8?Q?=0D=0A?="),
            ("=?koi8-r?Q?a?=", "=?koi8-r?Q?a?="),
            ("=?UTF-8?X?a?=", "=?UTF-8?X?a?="),
            ("=?UTF-8?Q?a", "=?UTF-8?Q?a"),
            ("=?UTF-8?Q?=4?=", "=?UTF-8?Q?=4?="),
            ("=?UTF-8?Q?_a?=", "=?UTF-8?Q?_a?="),
            ("=?UTF-8?Q?a_?=", "=?UTF-8?Q?a_?="),
            ("=?UTF-8?B?PT9VVEYtOD9CP1lXSmo/PQ==?=", "=?UTF-8?B?PT9VVEYtOD9CP1lXSmo/PQ==?="),
            ("a = b? c", "a = b? c"),
        ] {
            assert_eq!(&*decode(sent.as_bytes()), stored.as_bytes(), "{sent}");
        }
        assert_eq!(&*decode(b"\xff=?"), b"\xff=?");
    }
}
