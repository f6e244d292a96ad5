//! Removes the chunked transfer coding of a request body.
//!
//! Source: RFC 9112 section 7.1. The decoder works in place, so that content which was read into its destination stays there.
//! It also says how many more bytes are certain to come: who reads no more than these never reads into the next request.
//!
//! Invariants: the same bytes give the same result wherever they are cut. A body that two servers could understand
//! differently is refused, and then the start of the next request is unknown. Extensions and trailer fields are ignored, as
//! the RFC asks, up to a limit.

/// Most hexadecimal digits of a size, leading zeros included.
const SIZE_DIGITS_MAX: u8 = 16;
/// Most bytes of all extensions and trailer fields of a body. They carry nothing that this server uses.
const IGNORED_BYTES_MAX: u16 = 8 * 1024;
/// The shortest end of a body that may still come after a chunk: the last chunk and the blank line, `0 CR LF CR LF`.
const END_BYTES: u64 = 5;
const CRLF_BYTES: u64 = 2;

/// The error of a refused body. The text repeats nothing of the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkedError(pub &'static str);

impl std::fmt::Display for ChunkedError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.0)
    }
}

impl std::error::Error for ChunkedError {}

/// The state of the decoder: what is expected next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// A digit of a size, or the end of the digits if there are some.
    Size { size: u64, digits: u8 },
    /// An extension of the chunk.
    Extension { size: u64 },
    /// The line feed after a size.
    SizeLineFeed { size: u64 },
    /// Content.
    Data { remaining: u64 },
    /// CR after content.
    DataReturn,
    /// LF after content.
    DataLineFeed,
    /// The first byte of a trailer field or of the blank line.
    Trailer,
    /// The rest of a trailer field.
    Field,
    /// LF after a trailer field.
    FieldLineFeed,
    /// LF of the blank line.
    EndLineFeed,
    /// Nothing: the body is complete.
    Done,
}

/// The result of [`ChunkedDecoder::decode`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decoded {
    /// Bytes of content, which are now at the front.
    pub content: usize,
    /// Bytes that belonged to this body. Fewer than were given only at its end.
    pub consumed: usize,
}

/// Decodes one body.
#[derive(Clone, Debug)]
pub struct ChunkedDecoder {
    state: State,
    /// Bytes of extensions and trailer fields so far.
    ignored: u16,
}

impl Default for ChunkedDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl ChunkedDecoder {
    /// Makes a decoder for the start of a body.
    #[must_use]
    pub const fn new() -> Self {
        Self { state: State::Size { size: 0, digits: 0 }, ignored: 0 }
    }

    /// Returns whether the body is complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Returns how many more bytes a valid body has at least; 0 only when it is complete.
    #[must_use]
    pub const fn bytes_at_least(&self) -> u64 {
        match self.state {
            State::Size { digits: 0, .. } => END_BYTES,
            State::Size { size, .. } | State::Extension { size } => {
                after_size(size).saturating_add(CRLF_BYTES)
            }
            State::SizeLineFeed { size } => after_size(size).saturating_add(1),
            State::Data { remaining } => after_size(remaining),
            State::DataReturn => CRLF_BYTES + END_BYTES,
            State::DataLineFeed => 1 + END_BYTES,
            State::Trailer => CRLF_BYTES,
            State::Field => 2 * CRLF_BYTES,
            State::FieldLineFeed => 1 + CRLF_BYTES,
            State::EndLineFeed => 1,
            State::Done => 0,
        }
    }

    /// Removes the framing from the next bytes of the body, in place. After an error, the decoder must not be used again.
    ///
    /// # Errors
    /// [`ChunkedError`] if the framing is malformed.
    pub fn decode(&mut self, bytes: &mut [u8]) -> Result<Decoded, ChunkedError> {
        let (mut consumed, mut content) = (0, 0);
        while consumed < bytes.len() && !self.is_done() {
            if let State::Data { remaining } = self.state {
                let available = bytes.len() - consumed;
                let count =
                    usize::try_from(remaining).map_or(available, |remaining| remaining.min(available));
                if consumed > content {
                    bytes.copy_within(consumed..consumed + count, content);
                }
                consumed += count;
                content += count;
                let remaining = remaining - count as u64;
                self.state = if remaining == 0 { State::DataReturn } else { State::Data { remaining } };
            } else {
                self.state = self.next(bytes[consumed])?;
                consumed += 1;
            }
        }
        Ok(Decoded { content, consumed })
    }

    /// Returns the state after a byte of the framing.
    fn next(&mut self, byte: u8) -> Result<State, ChunkedError> {
        let expect = |expected: u8, state: State| {
            if byte == expected { Ok(state) } else { Err(ChunkedError("a chunk does not end in CR LF")) }
        };
        match self.state {
            State::Size { size, digits } => size_byte(byte, size, digits),
            State::Extension { size } => match byte {
                b'\r' => Ok(State::SizeLineFeed { size }),
                _ => self.ignore(byte, State::Extension { size }),
            },
            State::SizeLineFeed { size: 0 } => expect(b'\n', State::Trailer),
            State::SizeLineFeed { size } => expect(b'\n', State::Data { remaining: size }),
            State::DataReturn => expect(b'\r', State::DataLineFeed),
            State::DataLineFeed => expect(b'\n', State::Size { size: 0, digits: 0 }),
            State::Trailer => match byte {
                b'\r' => Ok(State::EndLineFeed),
                _ => self.ignore(byte, State::Field),
            },
            State::Field => match byte {
                b'\r' => Ok(State::FieldLineFeed),
                _ => self.ignore(byte, State::Field),
            },
            State::FieldLineFeed => expect(b'\n', State::Trailer),
            State::EndLineFeed => expect(b'\n', State::Done),
            State::Data { .. } | State::Done => unreachable!("these states take no byte of the framing"),
        }
    }

    fn ignore(&mut self, byte: u8, state: State) -> Result<State, ChunkedError> {
        if matches!(byte, b'\n' | 0) {
            return Err(ChunkedError("a line of the chunked coding does not end in CR LF"));
        }
        self.ignored += 1;
        if self.ignored > IGNORED_BYTES_MAX {
            return Err(ChunkedError("the extensions and trailer fields of the chunked coding are too long"));
        }
        Ok(state)
    }
}

/// Returns how many bytes follow the line with this size at least.
const fn after_size(size: u64) -> u64 {
    if size == 0 { CRLF_BYTES } else { size.saturating_add(CRLF_BYTES + END_BYTES) }
}

fn size_byte(byte: u8, size: u64, digits: u8) -> Result<State, ChunkedError> {
    match (byte, char::from(byte).to_digit(16)) {
        (_, Some(_)) if digits == SIZE_DIGITS_MAX => {
            Err(ChunkedError("the size of a chunk has too many digits"))
        }
        (_, Some(digit)) => Ok(State::Size { size: size << 4 | u64::from(digit), digits: digits + 1 }),
        (b'\r', None) if digits > 0 => Ok(State::SizeLineFeed { size }),
        (b';', None) if digits > 0 => Ok(State::Extension { size }),
        _ => Err(ChunkedError("the size of a chunk is not a hexadecimal number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(body: &[u8], cut: usize) -> Result<(Vec<u8>, usize, bool), ChunkedError> {
        let (mut decoder, mut content, mut consumed) = (ChunkedDecoder::new(), Vec::new(), 0);
        for piece in body.chunks(cut.max(1)) {
            let mut piece = piece.to_vec();
            let decoded = decoder.decode(&mut piece)?;
            content.extend_from_slice(&piece[..decoded.content]);
            consumed += decoded.consumed;
            if decoded.consumed < piece.len() {
                break;
            }
        }
        Ok((content, consumed, decoder.is_done()))
    }

    fn whole(body: &[u8]) -> Result<(Vec<u8>, usize, bool), ChunkedError> {
        decode(body, body.len())
    }

    #[test]
    fn content_is_kept_and_framing_removed() {
        for (body, content) in [
            (&b"0\r\n\r\n"[..], &b""[..]),
            (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
            (b"5\r\nhello\r\n1\r\n!\r\n000\r\n\r\n", b"hello!"),
            (b"a\r\n0123456789\r\nA;name=\"v\"\r\n0123456789\r\n0;x\r\n\r\n", b"01234567890123456789"),
            (b"2\r\n\r\n\r\n0\r\nname: value\r\nother:\r\n\r\n", b"\r\n"),
        ] {
            assert_eq!(whole(body), Ok((content.to_vec(), body.len(), true)), "{}", body.escape_ascii());
        }
    }

    #[test]
    fn the_next_request_is_not_consumed() {
        let body = b"1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\n";
        assert_eq!(whole(body), Ok((b"x".to_vec(), 11, true)));
    }

    #[test]
    fn ambiguous_framing_is_refused() {
        for body in [
            &b"\r\n"[..],
            b"g\r\n",
            b"0x5\r\nhello",
            b"+5\r\nhello",
            b" 5\r\nhello",
            b"5 \r\nhello",
            b"-1\r\n",
            b";ext\r\n",
            b"5\nhello",
            b"5\r\rhello",
            b"5\r\nhello\n0\r\n\r\n",
            b"5\r\nhelloX\r\n",
            b"5\r\nhello0\r\n\r\n",
            b"5;a\nb\r\nhello\r\n",
            b"5;a\rb\r\nhello\r\n",
            b"0\r\na: b\nc: d\r\n\r\n",
            b"0\r\na: b\rc\r\n\r\n",
            b"0\r\n\n",
            b"0\r\n\r\r",
            b"00000000000000000\r\n\r\n",
            b"10000000000000000\r\n",
        ] {
            assert!(whole(body).is_err(), "{}", body.escape_ascii());
        }
    }

    #[test]
    fn ignored_bytes_are_limited_over_the_whole_body() {
        let extension = "x".repeat(1000);
        let chunk = format!("1;{extension}\r\ny\r\n");
        assert!(whole(format!("{}0\r\n\r\n", chunk.repeat(8)).as_bytes()).is_ok());
        assert!(whole(chunk.repeat(9).as_bytes()).is_err());
        assert!(whole(format!("0\r\n{}", "a: b\r\n".repeat(4000)).as_bytes()).is_err());
    }

    proptest! {
        /// Whoever reads no more than is certain to come ends exactly at the end of the body.
        #[test]
        fn certain_bytes_never_pass_the_end(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..300), 0..6),
            extension in "(;[a-z=]{0,5})?", trailer in "(t: [a-z]{0,9}\r\n){0,2}", room in 1..200_usize, cut in 1..50_usize,
        ) {
            let mut body = Vec::new();
            for chunk in &chunks {
                body.extend(format!("{:x}{extension}\r\n", chunk.len()).bytes());
                body.extend_from_slice(chunk);
                body.extend(b"\r\n");
            }
            body.extend(format!("0{extension}\r\n{trailer}\r\n").bytes());
            let (mut decoder, mut content, mut read) = (ChunkedDecoder::new(), Vec::new(), 0);
            while !decoder.is_done() {
                let certain = decoder.bytes_at_least();
                prop_assert!(certain > 0 && certain <= (body.len() - read) as u64);
                let count = room.min(usize::try_from(certain).expect("small"));
                let mut piece = body[read..read + count].to_vec();
                let decoded = decoder.decode(&mut piece).expect("valid");
                prop_assert_eq!(decoded.consumed, count);
                content.extend_from_slice(&piece[..decoded.content]);
                read += count;
            }
            prop_assert_eq!((read, &content), (body.len(), &chunks.concat()));
            prop_assert_eq!(decode(&body, cut), Ok((content, body.len(), true)));
        }
    }
}
