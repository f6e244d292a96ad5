//! Percent-encoding as S3 uses it (RFC 3986 section 2.1): strict decoding, upper-case digits.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

const HEX_DIGITS: [u8; 16] = *b"0123456789ABCDEF";

/// The error of a text that could not be decoded: 400 `InvalidURI` on S3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// A `%` is not followed by two hexadecimal digits.
    InvalidEncoding,
    /// The decoded bytes are not UTF-8.
    InvalidUtf8,
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::InvalidEncoding => "a percent sign is not followed by two hexadecimal digits",
            Self::InvalidUtf8 => "the decoded bytes are not UTF-8",
        })
    }
}

impl std::error::Error for DecodeError {}

/// Decodes a path or a part of one, once: `%2F` becomes a slash, `%252F` becomes `%2F`, `+` remains a plus.
///
/// # Errors
/// [`DecodeError`] when an encoding is malformed or the result is not UTF-8.
pub fn decode(text: &str) -> Result<Cow<'_, str>, DecodeError> {
    decode_with(text, Plus::Literal)
}

/// The decoding of a raw `+`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plus {
    /// As a plus, as in paths.
    Literal,
    /// As a space, as in form queries.
    Space,
}

pub(crate) fn decode_with(text: &str, plus: Plus) -> Result<Cow<'_, str>, DecodeError> {
    let first = match plus {
        Plus::Literal => memchr(b'%', text.as_bytes()),
        Plus::Space => memchr2(b'%', b'+', text.as_bytes()),
    };
    let Some(first) = first else { return Ok(Cow::Borrowed(text)) };
    let (plain, mut rest) = text.as_bytes().split_at(first);
    let mut decoded = Vec::with_capacity(text.len());
    decoded.extend_from_slice(plain);
    loop {
        rest = match rest {
            [] => break,
            [b'%', high, low, rest @ ..] => {
                let (high, low) = (hex_value(*high)?, hex_value(*low)?);
                decoded.push(high << 4 | low);
                rest
            }
            [b'%', ..] => return Err(DecodeError::InvalidEncoding),
            [b'+', rest @ ..] if plus == Plus::Space => {
                decoded.push(b' ');
                rest
            }
            [byte, rest @ ..] => {
                decoded.push(*byte);
                rest
            }
        };
    }
    String::from_utf8(decoded).map(Cow::Owned).map_err(|_| DecodeError::InvalidUtf8)
}

const fn hex_value(digit: u8) -> Result<u8, DecodeError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(DecodeError::InvalidEncoding),
    }
}

/// Encodes everything except the unreserved characters `A-Za-z0-9-._~` and the slash. For the canonical URI of SigV4
/// and `encoding-type=url` of lists.
#[must_use]
pub fn encode_path(bytes: impl AsRef<[u8]>) -> String {
    let mut out = String::new();
    push_encoded(&mut out, bytes.as_ref(), Slash::Kept);
    out
}

/// Encodes everything except the unreserved characters `A-Za-z0-9-._~`. For names and values of SigV4's canonical
/// query.
#[must_use]
pub fn encode_strict(bytes: impl AsRef<[u8]>) -> String {
    let mut out = String::new();
    push_encoded(&mut out, bytes.as_ref(), Slash::Encoded);
    out
}

/// The encoding of a slash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slash {
    /// As a slash, as in paths.
    Kept,
    /// As `%2F`.
    Encoded,
}

/// Appends the encoded form of `bytes` to `out`.
pub fn push_encoded(out: &mut String, bytes: &[u8], slash: Slash) {
    out.reserve(bytes.len());
    for &byte in bytes {
        let is_kept = byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'.' | b'_' | b'~')
            || (byte == b'/' && slash == Slash::Kept);
        if is_kept {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX_DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(HEX_DIGITS[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_decoded_once() {
        assert_eq!(decode("a%2Fb%252Fc+d"), Ok(Cow::Borrowed("a/b%2Fc+d")));
        assert_eq!(decode("%c3%A9"), Ok(Cow::Borrowed("é")));
        assert!(matches!(decode("plain"), Ok(Cow::Borrowed("plain"))));
    }

    #[test]
    fn malformed_encodings_are_refused() {
        for text in ["%", "%1", "a%", "%zz", "%1g", "%-1", "%+1"] {
            assert_eq!(decode(text), Err(DecodeError::InvalidEncoding), "{text}");
        }
        for text in ["%ff", "%c3", "%ed%a0%80", "%c0%af"] {
            assert_eq!(decode(text), Err(DecodeError::InvalidUtf8), "{text}");
        }
    }

    #[test]
    fn unreserved_characters_are_not_encoded() {
        assert_eq!(encode_path("aZ0-._~/ é+%"), "aZ0-._~/%20%C3%A9%2B%25");
        assert_eq!(encode_strict("a/b"), "a%2Fb");
    }

    proptest! {
        #[test]
        fn encoded_text_decodes_to_itself(text in any::<String>()) {
            for encoded in [encode_path(&text), encode_strict(&text)] {
                prop_assert_eq!(decode(&encoded).unwrap(), text.as_str());
            }
        }

        #[test]
        fn any_text_is_decoded_without_panic(text in any::<String>()) {
            let _ = decode(&text);
        }
    }
}
