//! Builds and serialises response heads.
//!
//! Header lines are serialised as they are added. Invariants: no value can start a new line. The fields that frame the
//! message or belong to the connection (`Content-Length`, `Transfer-Encoding`, `Connection`, `Date`) are written only
//! here, once.

use http::StatusCode;

use crate::date::HttpDate;
use crate::syntax::{is_token_byte, is_value_byte};

/// Initial capacity for header lines, in bytes: enough for a usual response, so that building one allocates once.
const LINES_CAPACITY: usize = 512;

/// The `Connection` header of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionOption {
    /// No header: HTTP/1.1 keeps the connection by default.
    Omitted,
    /// `keep-alive`, which HTTP/1.0 clients that requested it need.
    KeepAlive,
    /// `close`: no further request is answered on this connection.
    Close,
}

/// The framing of a response body (RFC 9112 section 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyLength {
    /// No header: there is no body, or it ends with the connection.
    Omitted,
    /// `Content-Length`.
    Bytes(u64),
    /// `Transfer-Encoding: chunked`: the body follows in chunks. Not for HTTP/1.0 clients.
    Chunked,
}

/// A response head under construction: the status and the serialised header lines.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    /// The status of the final status line.
    pub status: StatusCode,
    lines: Vec<u8>,
}

impl ResponseHead {
    /// Makes a head without header lines.
    #[must_use]
    pub fn new(status: StatusCode) -> Self {
        Self { status, lines: Vec::with_capacity(LINES_CAPACITY) }
    }

    /// Appends one header line.
    ///
    /// Bytes of `value` that are not allowed in a header (control bytes other than tab) become spaces, so the line can
    /// never be split. An invalid `name` and the names that the connection writes itself (`content-length`,
    /// `transfer-encoding`, `connection`, `date`) add nothing.
    pub fn header(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut Self {
        if name.is_empty() || !name.bytes().all(is_token_byte) || belongs_to_connection(name) {
            return self;
        }
        let value = value.as_ref();
        self.lines.reserve(name.len() + value.len() + 4);
        self.lines.extend_from_slice(name.as_bytes());
        self.lines.extend_from_slice(b": ");
        let start = self.lines.len();
        self.lines.extend_from_slice(value);
        for byte in &mut self.lines[start..] {
            // A store in each case, so that the compiler can replace many bytes at once.
            *byte = if is_value_byte(*byte) { *byte } else { b' ' };
        }
        self.lines.extend_from_slice(b"\r\n");
        self
    }

    /// Returns the header lines added so far, each ending in CR LF.
    #[must_use]
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// Returns the value of the first line with this name, ignoring case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.lines.split(|&byte| byte == b'\n').find_map(|line| {
            let line = line.strip_suffix(b"\r")?;
            let (start, rest) = line.split_at_checked(name.len())?;
            if start.eq_ignore_ascii_case(name.as_bytes()) { rest.strip_prefix(b": ") } else { None }
        })
    }

    /// Appends the whole head to `out`: status line, `Date`, `Connection`, the header for `length`, the header lines
    /// and the blank line. There is no header for `length` for 1xx and 204, where it is forbidden (RFC 9110 section
    /// 8.6).
    pub fn write_to(
        &self,
        out: &mut Vec<u8>,
        date: &HttpDate,
        connection: ConnectionOption,
        length: BodyLength,
    ) {
        out.reserve(self.lines.len() + 160);
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(self.status.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.status.canonical_reason().unwrap_or("Unknown").as_bytes());
        out.extend_from_slice(b"\r\nDate: ");
        out.extend_from_slice(date.as_bytes());
        out.extend_from_slice(match connection {
            ConnectionOption::Omitted => b"\r\n",
            ConnectionOption::KeepAlive => b"\r\nConnection: keep-alive\r\n",
            ConnectionOption::Close => b"\r\nConnection: close\r\n",
        });
        let may_have_length = !self.status.is_informational() && self.status != StatusCode::NO_CONTENT;
        match length {
            BodyLength::Bytes(length) if may_have_length => {
                out.extend_from_slice(b"Content-Length: ");
                push_decimal(out, length);
                out.extend_from_slice(b"\r\n");
            }
            BodyLength::Chunked if may_have_length => {
                out.extend_from_slice(b"Transfer-Encoding: chunked\r\n")
            }
            _ => {}
        }
        out.extend_from_slice(&self.lines);
        out.extend_from_slice(b"\r\n");
    }
}

fn belongs_to_connection(name: &str) -> bool {
    match name.len() {
        4 => name.eq_ignore_ascii_case("date"),
        10 => name.eq_ignore_ascii_case("connection"),
        14 => name.eq_ignore_ascii_case("content-length"),
        17 => name.eq_ignore_ascii_case("transfer-encoding"),
        _ => false,
    }
}

/// Appends `number` in decimal. `format!` would allocate for every response.
pub(crate) fn push_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(number % 10).expect("a decimal digit is below 10");
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::date::http_date;

    fn serialised(head: &ResponseHead, connection: ConnectionOption, length: BodyLength) -> String {
        let mut out = Vec::new();
        head.write_to(&mut out, &http_date(784_111_777), connection, length);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_head_is_serialised_in_order() {
        let mut head = ResponseHead::new(StatusCode::OK);
        head.header("ETag", "\"abc\"");
        assert_eq!(
            serialised(&head, ConnectionOption::Close, BodyLength::Bytes(12)),
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: close\r\nContent-Length: 12\r\n\
             ETag: \"abc\"\r\n\r\n"
        );
    }

    #[test]
    fn no_value_can_add_a_line() {
        let mut head = ResponseHead::new(StatusCode::OK);
        head.header("x-amz-meta-a", "1\r\nSet-Cookie: stolen\0\x7f")
            .header("bad name", "x")
            .header("a:b", "x");
        assert_eq!(head.lines(), b"x-amz-meta-a: 1  Set-Cookie: stolen  \r\n");
    }

    #[test]
    fn framing_headers_cannot_be_set() {
        let mut head = ResponseHead::new(StatusCode::OK);
        head.header("Content-Length", "3").header("transfer-encoding", "chunked").header("DATE", "x");
        assert!(head.lines().is_empty());
    }

    #[test]
    fn no_content_has_no_length() {
        let head = ResponseHead::new(StatusCode::NO_CONTENT);
        for length in [BodyLength::Bytes(0), BodyLength::Chunked] {
            let text = serialised(&head, ConnectionOption::Omitted, length);
            assert!(!text.contains("Content-Length") && !text.contains("Transfer-Encoding"), "{text}");
        }
    }

    #[test]
    fn a_body_of_unknown_length_is_announced_as_chunks() {
        let text =
            serialised(&ResponseHead::new(StatusCode::OK), ConnectionOption::Omitted, BodyLength::Chunked);
        assert!(text.contains("\r\nTransfer-Encoding: chunked\r\n") && !text.contains("Content-Length"));
    }

    #[test]
    fn bytes_above_ascii_are_unchanged() {
        let mut head = ResponseHead::new(StatusCode::OK);
        head.header("x-amz-meta-a", "é");
        assert_eq!(head.get("X-Amz-Meta-A"), Some("é".as_bytes()));
    }

    #[test]
    fn decimals_of_all_widths_are_formatted() {
        for number in [0, 9, 10, 1_234_567, u64::MAX] {
            let mut out = Vec::new();
            push_decimal(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
