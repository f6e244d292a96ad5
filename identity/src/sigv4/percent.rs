//! Canonical percent-encoding for signatures: text is decoded once, then strictly encoded.
//!
//! Two spellings of one path or query must have the same signature, so both sides use one form: the unreserved characters of
//! RFC 3986 are kept, and every other byte is encoded as `%XX` with upper-case digits.

/// A `%` that is not followed by two hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidEncoding;

/// The part of a request that a text is from, which decides the meaning of `/` and `+`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Component {
    /// `/` separates segments and is not encoded, even if it was sent as `%2F`. `+` is a plus.
    Path,
    /// `/` is data and is encoded. A raw `+` is a space, as on AWS; a plus must be sent as `%2B`.
    Query,
}

const UPPER_HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Returns a table that tells for every byte whether it is kept in encoded text.
const fn unreserved(and_slash: bool) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "the loop stays under 256")]
        let character = byte as u8;
        table[byte] = character.is_ascii_alphanumeric()
            || matches!(character, b'-' | b'.' | b'_' | b'~')
            || (and_slash && character == b'/');
        byte += 1;
    }
    table
}

static PATH_BYTES: [bool; 256] = unreserved(true);
static QUERY_BYTES: [bool; 256] = unreserved(false);

/// Appends `raw`, decoded once and encoded again, to `out`.
pub(super) fn append_canonical(
    out: &mut Vec<u8>,
    raw: &[u8],
    component: Component,
) -> Result<(), InvalidEncoding> {
    let plain = match component {
        Component::Path => &PATH_BYTES,
        Component::Query => &QUERY_BYTES,
    };
    let mut rest = raw;
    loop {
        // Most text needs no encoding: copy it run by run.
        let run = rest.iter().position(|&byte| !plain[usize::from(byte)]).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..run]);
        let Some(&special) = rest.get(run) else { return Ok(()) };
        let decoded = match special {
            b'%' => {
                let digits = rest.get(run + 1..run + 3).ok_or(InvalidEncoding)?;
                rest = &rest[run + 3..];
                hex_pair(digits)?
            }
            b'+' if component == Component::Query => {
                rest = &rest[run + 1..];
                b' '
            }
            other => {
                rest = &rest[run + 1..];
                other
            }
        };
        if plain[usize::from(decoded)] {
            out.push(decoded);
        } else {
            out.extend_from_slice(&[
                b'%',
                UPPER_HEX[usize::from(decoded >> 4)],
                UPPER_HEX[usize::from(decoded & 15)],
            ]);
        }
    }
}

/// Decodes canonical query text. Returns `None` if the result is not UTF-8.
pub(super) fn decode_canonical(encoded: &[u8]) -> Option<String> {
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&first, tail)) = rest.split_first() {
        match (first, tail.get(..2)) {
            (b'%', Some(digits)) => {
                decoded.push(hex_pair(digits).ok()?);
                rest = &tail[2..];
            }
            _ => {
                decoded.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(decoded).ok()
}

fn hex_pair(digits: &[u8]) -> Result<u8, InvalidEncoding> {
    let mut byte = [0];
    hex::decode_to_slice(digits, &mut byte).map_err(|_| InvalidEncoding)?;
    Ok(byte[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(raw: &str, component: Component) -> Result<String, InvalidEncoding> {
        let mut out = Vec::new();
        append_canonical(&mut out, raw.as_bytes(), component)?;
        Ok(String::from_utf8(out).expect("canonical text is ASCII"))
    }

    #[test]
    fn paths_are_encoded_once_and_never_normalised() {
        let cases = [
            ("/a//b/./../c", "/a//b/./../c"),
            ("/a%20b", "/a%20b"),
            ("/a b+c", "/a%20b%2Bc"),
            ("/%41%7e~%2d", "/A~~-"),
            ("/a%2fb", "/a/b"),
            ("/a%252Fb", "/a%252Fb"),
            ("/é", "/%C3%A9"),
            ("/%c3%a9", "/%C3%A9"),
            ("/a;b=c$d", "/a%3Bb%3Dc%24d"),
        ];
        for (raw, expected) in cases {
            assert_eq!(canonical(raw, Component::Path).as_deref(), Ok(expected), "{raw}");
        }
    }

    #[test]
    fn queries_encode_slashes_and_treat_plus_as_space() {
        let cases = [("a/b", "a%2Fb"), ("a+b", "a%20b"), ("a%2Bb", "a%2Bb"), ("a;b", "a%3Bb")];
        for (raw, expected) in cases {
            assert_eq!(canonical(raw, Component::Query).as_deref(), Ok(expected), "{raw}");
        }
    }

    #[test]
    fn invalid_percent_encoding_is_refused() {
        for raw in ["%", "%1", "a%zz", "%+1", "%%41"] {
            assert_eq!(canonical(raw, Component::Path), Err(InvalidEncoding), "{raw}");
        }
    }

    #[test]
    fn decoding_reverses_encoding() {
        let raw = "a/b c%é;=";
        let mut out = Vec::new();
        append_canonical(&mut out, raw.replace('%', "%25").as_bytes(), Component::Query).expect("valid");
        assert_eq!(decode_canonical(&out).as_deref(), Some(raw));
        assert_eq!(decode_canonical(b"%FF"), None);
    }
}
