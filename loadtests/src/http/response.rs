//! Parses the heads of HTTP/1.1 responses and decodes chunked bodies. No I/O.
//!
//! Deliberately stricter than most clients: a bare line feed, folded lines, two lengths, or a length together with
//! `Transfer-Encoding` are reported as errors of the server (RFC 9112, sections 2.2, 5 and 6).

use crate::failure::Failure;

/// Maximum length of a head.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The framing of the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// After this many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked,
    /// At the end of the connection.
    UntilClose,
}

/// The parts of a response head that the client needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Status code.
    pub status: u16,
    /// The framing of the body.
    pub framing: Framing,
    /// Whether the server closes the connection after this response.
    pub close: bool,
    /// The MD5 in the entity tag, if it has one.
    pub tag: Option<u128>,
    /// The number of parts in the entity tag; 0 if it has none.
    pub tag_parts: u32,
}

/// Parses the head at the start of `bytes`. Returns the head and its length, or `None` while it is incomplete.
///
/// # Errors
/// [`Failure::Protocol`] if the head is invalid.
pub fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, Failure> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        if bytes.len() >= HEAD_BYTES_MAX {
            return Err(Failure::Protocol("response head too large"));
        }
        return Ok(None);
    };
    let text =
        std::str::from_utf8(&bytes[..end]).map_err(|_| Failure::Protocol("response head is not text"))?;
    let mut lines = text.split("\r\n");
    let (status, version_close) = parse_status_line(lines.next().unwrap_or_default())?;
    let mut fields = Fields { length: None, chunked: false, close: version_close, tag: None, tag_parts: 0 };
    for line in lines {
        fields.take(line)?;
    }
    let framing = match fields {
        _ if status < 200 || status == 204 || status == 304 => Framing::Length(0),
        Fields { chunked: true, length: Some(_), .. } => {
            return Err(Failure::Protocol("Content-Length together with Transfer-Encoding"));
        }
        Fields { chunked: true, .. } => Framing::Chunked,
        Fields { length: Some(length), .. } => Framing::Length(length),
        Fields { .. } => Framing::UntilClose,
    };
    let close = fields.close || framing == Framing::UntilClose;
    Ok(Some((Head { status, framing, close, tag: fields.tag, tag_parts: fields.tag_parts }, end + 4)))
}

/// Returns the status, and whether the HTTP version implies that the connection is closed.
fn parse_status_line(line: &str) -> Result<(u16, bool), Failure> {
    let wrong = Failure::Protocol("status line");
    let (version, rest) = line.split_once(' ').ok_or(wrong.clone())?;
    let close = match version {
        "HTTP/1.1" => false,
        "HTTP/1.0" => true,
        _ => return Err(wrong),
    };
    let digits = rest.get(..3).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !matches!(rest.as_bytes().get(3), None | Some(b' ')) {
        return Err(wrong);
    }
    match digits.and_then(|digits| digits.parse().ok()) {
        Some(status @ 100..=599) => Ok((status, close)),
        _ => Err(wrong),
    }
}

struct Fields {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    tag: Option<u128>,
    tag_parts: u32,
}

impl Fields {
    fn take(&mut self, line: &str) -> Result<(), Failure> {
        if line.bytes().any(|byte| matches!(byte, b'\n' | b'\r' | 0)) {
            return Err(Failure::Protocol("bare line feed or control byte in the head"));
        }
        let (name, value) = line.split_once(':').ok_or(Failure::Protocol("header without a colon"))?;
        if name.is_empty() || name.contains([' ', '\t']) {
            return Err(Failure::Protocol("white space in a header name"));
        }
        let value = value.trim_matches([' ', '\t']);
        if name.eq_ignore_ascii_case("content-length") {
            let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            let length = value.parse().ok().filter(|_| digits).ok_or(Failure::Protocol("Content-Length"))?;
            if self.length.replace(length).is_some() {
                return Err(Failure::Protocol("two Content-Length headers"));
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case("chunked") {
                return Err(Failure::Protocol("Transfer-Encoding other than chunked"));
            }
            self.chunked = true;
        } else if name.eq_ignore_ascii_case("etag") {
            let text = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or_default();
            let (digits, parts) = text.split_once('-').unwrap_or((text, "0"));
            self.tag_parts = parts.parse().unwrap_or(0);
            self.tag = Some(digits)
                .filter(|digits| digits.len() == 32)
                .and_then(|digits| u128::from_str_radix(digits, 16).ok());
        } else if name.eq_ignore_ascii_case("connection") {
            for option in value.split(',') {
                self.close |= option.trim().eq_ignore_ascii_case("close");
            }
        }
        Ok(())
    }
}

/// Maximum length of a chunk-size line, including extensions.
const SIZE_LINE_BYTES_MAX: usize = 256;

/// Decodes a chunked body that arrives in arbitrary pieces.
#[derive(Debug, Default)]
pub struct Chunked {
    state: ChunkState,
    line: Vec<u8>,
}

#[derive(Debug, Default)]
enum ChunkState {
    #[default]
    Size,
    Data(u64),
    DataEnd,
    Trailer,
    Done,
}

impl Chunked {
    /// Decodes `input`, passes its payload to `sink`, and returns how many bytes it consumed. The rest follows the body.
    ///
    /// # Errors
    /// [`Failure::Protocol`] if the coding is invalid.
    pub fn decode(&mut self, input: &[u8], mut sink: impl FnMut(&[u8])) -> Result<usize, Failure> {
        let mut used = 0;
        while used < input.len() && !self.is_done() {
            if let ChunkState::Data(left) = &mut self.state {
                let rest = &input[used..];
                let piece = &rest[..rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX))];
                sink(piece);
                used += piece.len();
                *left -= piece.len() as u64;
                if *left == 0 {
                    self.state = ChunkState::DataEnd;
                }
                continue;
            }
            self.line.push(input[used]);
            used += 1;
            if self.line.ends_with(b"\r\n") {
                self.take_line()?;
                self.line.clear();
            } else if self.line.len() > SIZE_LINE_BYTES_MAX {
                return Err(Failure::Protocol("chunk line too long"));
            }
        }
        Ok(used)
    }

    /// Returns whether the last chunk and the trailer have been read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state, ChunkState::Done)
    }

    fn take_line(&mut self) -> Result<(), Failure> {
        let line = &self.line[..self.line.len() - 2];
        self.state = match self.state {
            ChunkState::Size => match parse_chunk_size(line)? {
                0 => ChunkState::Trailer,
                size => ChunkState::Data(size),
            },
            ChunkState::DataEnd if line.is_empty() => ChunkState::Size,
            ChunkState::Trailer if line.is_empty() => ChunkState::Done,
            ChunkState::Trailer => ChunkState::Trailer,
            _ => return Err(Failure::Protocol("chunk without a line end")),
        };
        Ok(())
    }
}

fn parse_chunk_size(line: &[u8]) -> Result<u64, Failure> {
    let wrong = Failure::Protocol("chunk size");
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(wrong);
    }
    let digits = std::str::from_utf8(digits).map_err(|_| wrong.clone())?;
    u64::from_str_radix(digits, 16).map_err(|_| wrong)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Option<(Head, usize)>, Failure> {
        parse_head(text.as_bytes())
    }

    #[test]
    fn a_head_can_be_split_anywhere() {
        let text = "HTTP/1.1 206 Partial Content\r\nContent-LENGTH: 17\r\nX: y\r\n\r\nbody";
        let whole = parse(text).unwrap().unwrap();
        assert_eq!(
            whole.0,
            Head { status: 206, framing: Framing::Length(17), close: false, tag: None, tag_parts: 0 }
        );
        assert_eq!(&text[whole.1..], "body");
        for cut in 0..whole.1 {
            assert_eq!(parse(&text[..cut]), Ok(None), "cut at {cut}");
        }
        for cut in whole.1..text.len() {
            assert_eq!(parse(&text[..cut]), Ok(Some(whole)), "cut at {cut}");
        }
    }

    #[test]
    fn framing_follows_from_status_and_headers() {
        for (text, framing, close) in [
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Framing::Chunked, false),
            ("HTTP/1.1 200 OK\r\n\r\n", Framing::UntilClose, true),
            ("HTTP/1.1 204 No Content\r\n\r\n", Framing::Length(0), false),
            ("HTTP/1.1 304\r\nContent-Length: 9\r\n\r\n", Framing::Length(0), false),
            (
                "HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 1\r\n\r\n",
                Framing::Length(1),
                true,
            ),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", Framing::Length(1), true),
        ] {
            let head = parse(text).unwrap().unwrap().0;
            assert_eq!((head.framing, head.close), (framing, close), "{text}");
        }
    }

    #[test]
    fn invalid_heads_are_errors() {
        for text in [
            "HTTP/2 200 OK\r\n\r\n",
            "HTTP/1.1 2x0 OK\r\n\r\n",
            "HTTP/1.1 2000\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
        ] {
            assert!(matches!(parse(text), Err(Failure::Protocol(_))), "{text} was taken");
        }
        let endless = vec![b'a'; HEAD_BYTES_MAX];
        assert!(parse_head(&endless).is_err());
    }

    fn decode(pieces: &[&[u8]]) -> Result<(Vec<u8>, usize, bool), Failure> {
        let (mut chunked, mut body, mut used) = (Chunked::default(), Vec::new(), 0);
        for piece in pieces {
            used += chunked.decode(piece, |bytes| body.extend_from_slice(bytes))?;
        }
        Ok((body, used, chunked.is_done()))
    }

    #[test]
    fn a_broken_chunk_is_an_error() {
        for text in ["x\r\n", "\r\n", "+1\r\n", "1\r\nab\r\n", "fffffffffffffffff\r\n"] {
            assert!(decode(&[text.as_bytes()]).is_err(), "{text} was taken");
        }
        assert!(decode(&[&[b'1'; 300]]).is_err());
    }

    proptest! {
        #[test]
        fn a_chunked_body_can_be_split_anywhere(
            sizes in prop::collection::vec(1_usize..300, 0..6),
            cuts in prop::collection::vec(0_usize..2_000, 0..6),
        ) {
            let mut coded = Vec::new();
            let mut plain = Vec::new();
            for (number, size) in sizes.iter().enumerate() {
                let data: Vec<u8> = (0..*size).map(|at| u8::try_from((at + number) % 251).unwrap()).collect();
                coded.extend_from_slice(format!("{size:x};ext=1\r\n").as_bytes());
                coded.extend_from_slice(&data);
                coded.extend_from_slice(b"\r\n");
                plain.extend_from_slice(&data);
            }
            coded.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
            let length = coded.len();
            coded.extend_from_slice(b"HTTP/1.1");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % coded.len()).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&coded[from..cut]);
                from = cut;
            }
            pieces.push(&coded[from..]);
            prop_assert_eq!(decode(&pieces).unwrap(), (plain, length, true));
        }
    }
}
