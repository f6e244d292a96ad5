//! S3 entity tags: the MD5 of a payload, the MD5 of the parts' MD5s and their number, or an opaque text.

use std::fmt::{self, Write};

/// Bytes of the longest usual tag with its quotes: the MD5, a dash, five digits.
const QUOTED_BYTES: usize = 40;

/// An S3 entity tag. `Display` formats it without quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Etag {
    /// The MD5 digest: of the payload, or of the concatenated digests of the parts. Any 16 bytes in an opaque tag.
    pub md5: [u8; 16],
    /// Number of parts; 0 for an object that was not uploaded in parts. 1 in an opaque tag.
    pub parts: u32,
}

impl Etag {
    /// Returns the tag of a payload that was not uploaded in parts.
    #[must_use]
    pub const fn single(md5: [u8; 16]) -> Self {
        Self { md5, parts: 0 }
    }

    /// Returns an opaque tag: it has the form of an upload of one part, which clients do not take for an MD5 of the bytes.
    #[must_use]
    pub const fn opaque(bytes: [u8; 16]) -> Self {
        Self { md5: bytes, parts: 1 }
    }

    /// Parses a tag as it is written without quotes: 32 hexadecimal digits, and the number of parts if there are any. Returns
    /// `None` when it has another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (digits, parts) = match text.split_once('-') {
            None => (text, 0),
            Some((digits, number)) => {
                let is_decimal = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
                (digits, number.parse().ok().filter(|_| is_decimal)?)
            }
        };
        if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let value = u128::from_str_radix(digits, 16).ok()?;
        Some(Self { md5: value.to_be_bytes(), parts })
    }

    /// Returns the tag in double quotes, as in headers and XML.
    #[must_use]
    pub fn quoted(&self) -> String {
        // Reserved at once: each response with an object has a tag.
        let mut quoted = String::with_capacity(QUOTED_BYTES);
        quoted.push('"');
        write!(quoted, "{self}").expect("a string takes any text");
        quoted.push('"');
        quoted
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0u8; 32];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.md5) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&text).expect("hexadecimal digits are ASCII"))?;
        if self.parts > 0 {
            write!(f, "-{}", self.parts)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Etag;

    #[test]
    fn tags_are_lower_case_hex_with_the_number_of_parts() {
        let md5 = [0xab; 16];
        assert_eq!(Etag::single(md5).to_string(), "ab".repeat(16));
        assert_eq!(Etag { md5, parts: 3 }.quoted(), format!("\"{}-3\"", "ab".repeat(16)));
        for tag in [Etag::single(md5), Etag { md5, parts: 3 }, Etag { md5: [0; 16], parts: 10_000 }] {
            assert_eq!(Etag::parse(&tag.to_string()), Some(tag));
        }
        for text in [
            "",
            "ab",
            "-1",
            &format!("{}-", "ab".repeat(16)),
            &format!("{}-0", "ab".repeat(16)),
            &format!("+{}", "a".repeat(31)),
            &format!("{}-+1", "ab".repeat(16)),
        ] {
            assert_eq!(Etag::parse(text), None, "{text}");
        }
    }
}
