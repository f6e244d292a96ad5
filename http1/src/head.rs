//! Request heads: from bytes to a checked [`RequestHead`], over `httparse`, which is lenient where we must not be.
//!
//! Owns the limits on a head and the decision how the body is delimited. Invariants: the same bytes give the same
//! result wherever they are cut; whatever two servers could read differently is refused, and after a refusal the
//! connection cannot be used again, for nobody knows where the next request would begin. Never guesses.

use std::mem::MaybeUninit;

use http::{Method, StatusCode};

use crate::syntax::{is_host_byte, is_target_byte, is_token_byte, is_value_byte, list_members, trim_ows};

/// Longest request head by default, in bytes: request line, fields and the blank line.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Most header fields by default: S3 metadata may use many short ones.
pub const HEAD_FIELDS_MAX: usize = 192;
/// Longest method, in bytes. The longest registered one has 17 (UPDATEREDIRECTREF); logs and error bodies repeat the
/// method, and must not repeat a whole head of it.
const METHOD_BYTES_MAX: usize = 32;
/// Room for fields on the parser's stack; [`HeadLimits::fields_max`] above this counts as this.
const FIELDS_CAPACITY: usize = 256;
/// Spans are kept as `u16`, so no head can be longer than this whatever the limits say.
const SPAN_BYTES_MAX: usize = u16::MAX as usize;

/// Fields that may stand once: a second one is an attack or a broken client, and which of the two counts would be a
/// guess.
const SINGLE_FIELDS: [&[u8]; 10] = [
    b"host",
    b"content-length",
    b"transfer-encoding",
    b"range",
    b"if-match",
    b"if-none-match",
    b"if-modified-since",
    b"if-unmodified-since",
    b"if-range",
    b"authorization",
];

/// Limits on a request head.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// Longest head in bytes, request line and final blank line included. More than 65 535 counts as 65 535.
    pub bytes_max: usize,
    /// Most header fields. More than 256 counts as 256.
    pub fields_max: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { bytes_max: HEAD_BYTES_MAX, fields_max: HEAD_FIELDS_MAX }
    }
}

/// How the body of a request is delimited (RFC 9112 section 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyFraming {
    /// Neither `Content-Length` nor `Transfer-Encoding`: no body.
    None,
    /// `Content-Length`, in bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`. Recognised so that it can be refused with a clear answer; it is not decoded.
    Chunked,
}

/// Why a head was refused. Every variant means: answer, then close the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadError {
    /// 400: malformed, or open to two readings. The text says what, without repeating what the client sent.
    BadRequest(&'static str),
    /// 431: longer than [`HeadLimits::bytes_max`], or with more fields than [`HeadLimits::fields_max`].
    TooLarge,
    /// 505: neither HTTP/1.0 nor HTTP/1.1.
    VersionNotSupported,
    /// 501: a transfer coding other than `chunked` (RFC 9112 section 6.1).
    TransferCodingNotSupported,
    /// 417: an expectation other than `100-continue` (RFC 9110 section 10.1.1).
    ExpectationFailed,
}

impl HeadError {
    /// The status of the answer.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::VersionNotSupported => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::TransferCodingNotSupported => StatusCode::NOT_IMPLEMENTED,
            Self::ExpectationFailed => StatusCode::EXPECTATION_FAILED,
        }
    }
}

impl std::fmt::Display for HeadError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::BadRequest(what) => what,
            Self::TooLarge => "the request head is too large",
            Self::VersionNotSupported => "only HTTP/1.0 and HTTP/1.1 are spoken here",
            Self::TransferCodingNotSupported => "this transfer coding is not supported",
            Self::ExpectationFailed => "the only expectation that is met is 100-continue",
        })
    }
}

impl std::error::Error for HeadError {}

/// A part of the head's buffer.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u16,
    length: u16,
}

/// A parsed and checked request head. Owns one copy of its bytes, so the connection's buffer is free at once; field
/// names are lower-case.
#[derive(Debug)]
pub struct RequestHead {
    bytes: Box<[u8]>,
    method: Method,
    path: Span,
    query: Option<Span>,
    fields: Vec<(Span, Span)>,
    framing: BodyFraming,
    keep_alive: bool,
    expects_continue: bool,
    version_1_1: bool,
}

impl RequestHead {
    /// The method, by its case.
    #[must_use]
    pub const fn method(&self) -> &Method {
        &self.method
    }

    /// The path as sent: raw, still percent-encoded, beginning with `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.text(self.path)
    }

    /// The query as sent, raw, without `?`; None when there is no `?`.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.query.map(|span| self.text(span))
    }

    /// The value of the first field of this (lower-case) name, trimmed of spaces and tabs.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.header_values(name).next()
    }

    /// The values of all fields of this (lower-case) name, in the order sent.
    pub fn header_values<'h>(&'h self, name: &str) -> impl DoubleEndedIterator<Item = &'h [u8]> {
        let wanted = name.as_bytes();
        self.fields
            .iter()
            .filter(move |(name, _)| usize::from(name.length) == wanted.len() && self.slice(*name) == wanted)
            .map(|(_, value)| self.slice(*value))
    }

    /// The value of the first field of this name when it is visible ASCII, spaces and tabs; None else.
    #[must_use]
    pub fn header_str(&self, name: &str) -> Option<&str> {
        self.header(name).and_then(|value| std::str::from_utf8(value).ok()).filter(|value| value.is_ascii())
    }

    /// All fields in the order sent: lower-case name, trimmed value.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|(name, value)| (self.text(*name), self.slice(*value)))
    }

    /// How the body is delimited.
    #[must_use]
    pub const fn framing(&self) -> BodyFraming {
        self.framing
    }

    /// Whether the client wants the connection kept (version and `Connection`, RFC 9112 section 9.3).
    #[must_use]
    pub const fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// Whether the client sent `Expect: 100-continue` (never for HTTP/1.0, RFC 9110 section 10.1.1).
    #[must_use]
    pub const fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// Whether the request is of HTTP/1.1 rather than HTTP/1.0.
    #[must_use]
    pub const fn is_version_1_1(&self) -> bool {
        self.version_1_1
    }

    fn slice(&self, span: Span) -> &[u8] {
        let start = usize::from(span.start);
        &self.bytes[start..start + usize::from(span.length)]
    }

    /// Names, path and query were checked to be ASCII, so the fallback is never taken.
    fn text(&self, span: Span) -> &str {
        std::str::from_utf8(self.slice(span)).unwrap_or_default()
    }
}

/// Parses one head from the front of `bytes`. `Ok(None)`: more bytes are needed. The same bytes cut anywhere give the
/// same result. On success also says how many bytes the head took.
///
/// # Errors
/// [`HeadError`]: the head is refused and the connection must be closed after the answer.
pub fn parse_head(bytes: &[u8], limits: &HeadLimits) -> Result<Option<(RequestHead, usize)>, HeadError> {
    HeadParser::new(*limits).parse(bytes)
}

/// [`parse_head`] for a buffer that grows: it remembers how far the search for the end has come, so that a head which
/// arrives byte by byte costs no more than one that arrives whole.
#[derive(Clone, Copy, Debug)]
pub struct HeadParser {
    limits: HeadLimits,
    /// Bytes that were searched without finding the end of the head.
    scanned: usize,
    /// Where the line that is being searched begins.
    line_start: usize,
}

impl HeadParser {
    /// A parser for the next head.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        let limits = HeadLimits {
            bytes_max: limits.bytes_max.min(SPAN_BYTES_MAX),
            fields_max: limits.fields_max.min(FIELDS_CAPACITY),
        };
        Self { limits, scanned: 0, line_start: 0 }
    }

    /// Like [`parse_head`]; `bytes` must begin with the bytes of the calls before.
    ///
    /// # Errors
    /// [`HeadError`]: the head is refused and the connection must be closed after the answer.
    pub fn parse(&mut self, bytes: &[u8]) -> Result<Option<(RequestHead, usize)>, HeadError> {
        let Some(length) = self.find_end(bytes)? else { return Ok(None) };
        parse_complete(&bytes[..length], &self.limits).map(|head| Some((head, length)))
    }

    /// The length of the head, blank line included. Refuses what shows before the end is there: an empty first line,
    /// a line end that is not CR LF, too many bytes. Each of these shows at the same byte however the input is cut.
    fn find_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, HeadError> {
        let window = &bytes[..bytes.len().min(self.limits.bytes_max)];
        if matches!(window.first(), Some(b'\r' | b'\n')) {
            return Err(HeadError::BadRequest("an empty line stands before the request line"));
        }
        while let Some(offset) = window[self.scanned..].iter().position(|&byte| byte == b'\n') {
            let newline = self.scanned + offset;
            if newline == 0 || window[newline - 1] != b'\r' {
                return Err(HeadError::BadRequest("a line of the request head does not end in CR LF"));
            }
            let line_is_empty = newline - self.line_start == 1;
            self.scanned = newline + 1;
            self.line_start = newline + 1;
            if line_is_empty {
                return Ok(Some(newline + 1));
            }
        }
        self.scanned = window.len();
        if bytes.len() >= self.limits.bytes_max { Err(HeadError::TooLarge) } else { Ok(None) }
    }
}

/// Parses a head that is there whole, from the request line to the blank line.
fn parse_complete(bytes: &[u8], limits: &HeadLimits) -> Result<RequestHead, HeadError> {
    let mut storage = [const { MaybeUninit::uninit() }; FIELDS_CAPACITY];
    let mut parsed = httparse::Request::new(&mut []);
    match parsed.parse_with_uninit_headers(bytes, &mut storage[..limits.fields_max]) {
        Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
        Ok(_) => return Err(HeadError::BadRequest("the request head does not end where its lines end")),
        Err(error) => return Err(refuse_syntax(error, bytes)),
    }
    let (method, target, version) = match (parsed.method, parsed.path, parsed.version) {
        (Some(method), Some(target), Some(version)) => (method, target.as_bytes(), version),
        _ => return Err(HeadError::BadRequest("the request line is incomplete")),
    };
    if method.len() > METHOD_BYTES_MAX {
        return Err(HeadError::BadRequest("the method is too long"));
    }
    let method = Method::from_bytes(method.as_bytes())
        .map_err(|_| HeadError::BadRequest("the method is not a token"))?;
    if target.first() != Some(&b'/') {
        return Err(HeadError::BadRequest("the request target does not begin with a slash"));
    }
    if !target.iter().copied().all(is_target_byte) {
        return Err(HeadError::BadRequest("the request target holds a byte that must be percent-encoded"));
    }
    let target = span_of(bytes, target);
    let question = bytes[range_of(target)].iter().position(|&byte| byte == b'?');
    let (path, query) = split_target(target, question);
    let mut head = RequestHead {
        bytes: bytes.into(),
        method,
        path,
        query,
        fields: Vec::with_capacity(parsed.headers.len()),
        framing: BodyFraming::None,
        keep_alive: false,
        expects_continue: false,
        version_1_1: version == 1,
    };
    for field in parsed.headers.iter() {
        let name = span_of(bytes, field.name.as_bytes());
        let value = span_of(bytes, trim_ows(field.value));
        head.take_field(name, value)?;
    }
    head.settle()?;
    Ok(head)
}

fn refuse_syntax(error: httparse::Error, bytes: &[u8]) -> HeadError {
    match error {
        httparse::Error::TooManyHeaders => HeadError::TooLarge,
        httparse::Error::Version if names_version(bytes) => HeadError::VersionNotSupported,
        httparse::Error::HeaderName => HeadError::BadRequest("a header field has a malformed name"),
        httparse::Error::HeaderValue => HeadError::BadRequest("a header field has a malformed value"),
        _ => HeadError::BadRequest("the request line is malformed"),
    }
}

/// Whether the request line ends in a well-formed version, so that it is the version that is wrong and not the line.
fn names_version(bytes: &[u8]) -> bool {
    let line = bytes.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    matches!(
        (words.next(), words.next(), words.next(), words.next()),
        (Some(_), Some(_), Some([b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9']), None)
    )
}

impl RequestHead {
    /// Adds one field; its name becomes lower-case in the head's own bytes.
    fn take_field(&mut self, name: Span, value: Span) -> Result<(), HeadError> {
        let name_bytes = &mut self.bytes[range_of(name)];
        if name_bytes.is_empty() || !name_bytes.iter().copied().all(is_token_byte) {
            return Err(HeadError::BadRequest("a header field has a malformed name"));
        }
        name_bytes.make_ascii_lowercase();
        if !self.slice(value).iter().copied().all(is_value_byte) {
            return Err(HeadError::BadRequest("a header field holds a control byte"));
        }
        let name_bytes = self.slice(name);
        if SINGLE_FIELDS.contains(&name_bytes)
            && self.fields.iter().any(|(earlier, _)| self.slice(*earlier) == name_bytes)
        {
            return Err(HeadError::BadRequest("a header field that may occur once occurs twice"));
        }
        self.fields.push((name, value));
        Ok(())
    }

    /// Decides what several fields say together: framing, keep-alive, expectation.
    fn settle(&mut self) -> Result<(), HeadError> {
        match self.header("host") {
            None if self.version_1_1 => return Err(HeadError::BadRequest("the Host header is missing")),
            Some(host) if host.is_empty() || !host.iter().copied().all(is_host_byte) => {
                return Err(HeadError::BadRequest("the Host header is malformed"));
            }
            _ => {}
        }
        self.framing = self.decide_framing()?;
        self.keep_alive = self.wants_keep_alive();
        self.expects_continue = self.wants_continue()?;
        Ok(())
    }

    /// RFC 9112 section 9.3: `close` wins, HTTP/1.1 keeps by default, HTTP/1.0 only when asked to.
    fn wants_keep_alive(&self) -> bool {
        let mut keep_alive = self.version_1_1;
        for option in self.header_values("connection").flat_map(list_members) {
            if option.eq_ignore_ascii_case(b"close") {
                return false;
            }
            keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
        keep_alive
    }

    /// RFC 9110 section 10.1.1; an HTTP/1.0 client cannot mean it.
    fn wants_continue(&self) -> Result<bool, HeadError> {
        let mut wanted = false;
        for expectation in self.header_values("expect").flat_map(list_members) {
            if !expectation.eq_ignore_ascii_case(b"100-continue") {
                return Err(HeadError::ExpectationFailed);
            }
            wanted = self.version_1_1;
        }
        Ok(wanted)
    }

    /// RFC 9112 section 6.3, with every case refused in which a proxy in front could have decided otherwise.
    fn decide_framing(&self) -> Result<BodyFraming, HeadError> {
        match (self.header("transfer-encoding"), self.header("content-length")) {
            (None, None) => Ok(BodyFraming::None),
            (None, Some(length)) => parse_content_length(length).map(BodyFraming::Length),
            (Some(_), Some(_)) => {
                Err(HeadError::BadRequest("both Content-Length and Transfer-Encoding are there"))
            }
            (Some(_), None) if !self.version_1_1 => {
                Err(HeadError::BadRequest("HTTP/1.0 has no Transfer-Encoding"))
            }
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"chunked") => Ok(BodyFraming::Chunked),
            (Some(coding), None) => match list_members(coding).last() {
                Some(last) if last.eq_ignore_ascii_case(b"chunked") => {
                    Err(HeadError::TransferCodingNotSupported)
                }
                _ => Err(HeadError::BadRequest("the Transfer-Encoding does not end in chunked")),
            },
        }
    }
}

/// Digits only: no sign, no list, no space (RFC 9110 section 8.6).
fn parse_content_length(value: &[u8]) -> Result<u64, HeadError> {
    let malformed = HeadError::BadRequest("the Content-Length is not a number of bytes");
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(malformed);
    }
    value
        .iter()
        .try_fold(0_u64, |length, digit| length.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .ok_or(malformed)
}

fn split_target(target: Span, question: Option<usize>) -> (Span, Option<Span>) {
    let Some(question) = question.and_then(|question| u16::try_from(question).ok()) else {
        return (target, None);
    };
    let path = Span { start: target.start, length: question };
    let query = Span { start: target.start + question + 1, length: target.length - question - 1 };
    (path, Some(query))
}

fn range_of(span: Span) -> std::ops::Range<usize> {
    usize::from(span.start)..usize::from(span.start) + usize::from(span.length)
}

/// Where `part`, a slice of `whole`, lies in it. Both fit `u16`: a head is at most [`SPAN_BYTES_MAX`] long. Should
/// `part` lie elsewhere (it does not), the span is empty rather than wrong.
fn span_of(whole: &[u8], part: &[u8]) -> Span {
    let start = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
    match (u16::try_from(start), u16::try_from(part.len())) {
        (Ok(start), Ok(length)) if usize::from(start) + usize::from(length) <= whole.len() => {
            Span { start, length }
        }
        _ => Span { start: 0, length: 0 },
    }
}
