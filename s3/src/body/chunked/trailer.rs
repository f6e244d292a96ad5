//! Parses what follows the last chunk of an `aws-chunked` body.
//!
//! Clients differ in their line ends. The AWS page ends a field with a line feed, an empty line and the signature; others
//! send CR LF after each field, an empty line before the first one, or nothing after the last one. All of these are one
//! trailer, because the end of the body is known from the HTTP framing. Nothing but the declared fields may occur.

use super::error::ChunkedError;
use crate::headers::checksum;
use cairn_engine::ChecksumAlgorithm;

/// Longest trailer in bytes: the longest checksum and a signature, with room for white space.
pub(crate) const TRAILER_BYTES_MAX: usize = 1024;

const SIGNATURE: &str = "x-amz-trailer-signature";

/// A parsed trailer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Trailer<'a> {
    /// The fields that the signature covers: name in lower case, colon, value and line feed of each.
    pub(crate) signed_text: Vec<u8>,
    /// The checksum, decoded.
    pub(crate) checksum: Option<Vec<u8>>,
    /// The signature as sent.
    pub(crate) signature: Option<&'a [u8]>,
}

impl<'a> Trailer<'a> {
    /// Parses the bytes from the last chunk to the end of the body. `declared` is the checksum that the request declares.
    ///
    /// # Errors
    /// `Trailer` if its fields are not the declared ones, `InvalidChecksum` if the checksum cannot be decoded.
    pub(crate) fn parse(bytes: &'a [u8], declared: Option<ChecksumAlgorithm>) -> Result<Self, ChunkedError> {
        let mut trailer = Self::default();
        for line in bytes.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                return Err(ChunkedError::Trailer("a line of the trailer has no colon"));
            };
            let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
            if trailer.signature.is_some() {
                return Err(ChunkedError::Trailer("there is more after the signature of the trailer"));
            }
            if name.eq_ignore_ascii_case(SIGNATURE.as_bytes()) {
                trailer.signature = Some(value);
            } else {
                trailer.read_checksum(name, value, declared)?;
            }
        }
        if declared.is_some() && trailer.checksum.is_none() {
            return Err(ChunkedError::Trailer("the checksum that x-amz-trailer names is missing"));
        }
        Ok(trailer)
    }

    fn read_checksum(
        &mut self,
        name: &[u8],
        value: &[u8],
        declared: Option<ChecksumAlgorithm>,
    ) -> Result<(), ChunkedError> {
        let is_declared = |algorithm: &ChecksumAlgorithm| {
            name.eq_ignore_ascii_case(checksum::header(*algorithm).as_bytes())
        };
        let Some(algorithm) = declared.filter(is_declared) else {
            return Err(ChunkedError::Trailer("it has a field that x-amz-trailer does not name"));
        };
        let digest = checksum::parse_digest(algorithm, value);
        let digest = digest.ok_or(ChunkedError::InvalidChecksum(algorithm))?;
        if self.checksum.replace(digest).is_some() {
            return Err(ChunkedError::Trailer("a field occurs twice"));
        }
        self.signed_text = [checksum::header(algorithm).as_bytes(), b":", value, b"\n"].concat();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{ChunkedError, Trailer};
    use cairn_engine::ChecksumAlgorithm::Crc32c;

    const SIGNED_TEXT: &[u8] = b"x-amz-checksum-crc32c:sOO8/Q==\n";

    #[test]
    fn every_known_way_to_end_lines_is_one_trailer() {
        for text in [
            // The AWS page and minio-go.
            "x-amz-checksum-crc32c:sOO8/Q==\n\r\nx-amz-trailer-signature:ab\r\n\r\n",
            "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:ab\r\n\r\n",
            // An empty line as after every other chunk.
            "\r\nx-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:ab\r\n\r\n",
            "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:ab\r\n",
            "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:ab",
            "X-Amz-Checksum-CRC32C : sOO8/Q== \r\nX-Amz-Trailer-Signature: ab\r\n\r\n",
        ] {
            let trailer = Trailer::parse(text.as_bytes(), Some(Crc32c)).expect(text);
            assert_eq!(trailer.signed_text, SIGNED_TEXT, "{text:?}");
            assert_eq!(trailer.checksum, Some(vec![0xb0, 0xe3, 0xbc, 0xfd]));
            assert_eq!(trailer.signature, Some(&b"ab"[..]));
        }
        for text in ["", "\r\n", "\r\n\r\n"] {
            assert_eq!(Trailer::parse(text.as_bytes(), None), Ok(Trailer::default()));
        }
    }

    #[test]
    fn only_the_declared_fields_are_accepted() {
        for text in [
            "",
            "\r\n",
            "x-amz-checksum-crc32c\r\n\r\n",
            "x-amz-checksum-crc32:sOO8/Q==\r\n\r\n",
            ":sOO8/Q==\r\n\r\n",
            "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-checksum-crc32c:sOO8/Q==\r\n\r\n",
            "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-meta-a:b\r\n\r\n",
            "x-amz-trailer-signature:ab\r\nx-amz-checksum-crc32c:sOO8/Q==\r\n\r\n",
            "x-amz-checksum-crc32c:sOO8/Q==\r\n\r\n0\r\n\r\n",
            "0\r\nx-amz-checksum-crc32c:sOO8/Q==\r\n\r\n",
            "x-amz-checksum-crc32c:sOO8/Q==\r\n\r\nGET / HTTP/1.1\r\n",
        ] {
            let refused = Trailer::parse(text.as_bytes(), Some(Crc32c));
            assert!(matches!(refused, Err(ChunkedError::Trailer(_))), "{text:?}: {refused:?}");
        }
        for value in ["", "sOO8/Q", "AAAAAAAAAAA=", "*"] {
            let text = format!("x-amz-checksum-crc32c:{value}\r\n");
            let refused = Trailer::parse(text.as_bytes(), Some(Crc32c));
            assert_eq!(refused, Err(ChunkedError::InvalidChecksum(Crc32c)), "{value}");
        }
        let undeclared = Trailer::parse(b"x-amz-checksum-crc32c:sOO8/Q==\r\n", None);
        assert!(matches!(undeclared, Err(ChunkedError::Trailer(_))));
    }
}
