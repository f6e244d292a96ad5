//! Parses and validates request heads.
//!
//! It is built on `httparse`, which is more lenient than a server may be. It owns the limits on a head and decides how
//! the body is delimited.
//!
//! Invariants: the same bytes give the same result wherever they are cut. A head that two servers could understand
//! differently is refused. After a refusal the connection must be closed, because the start of the next request is
//! unknown.

use std::mem::MaybeUninit;

use http::{Method, StatusCode};
use memchr::memchr;

use crate::syntax::{
    all_bytes, is_host, is_target_byte, is_token_byte, is_value_byte, list_members, trim_ows,
};

/// Longest request head by default, in bytes: request line, fields and the blank line.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Most header fields by default: S3 metadata may use many short ones.
pub const HEAD_FIELDS_MAX: usize = 192;
/// Longest method, in bytes. The longest registered one has 17 (UPDATEREDIRECTREF). Logs and error bodies repeat the
/// method, so it must not be as long as a whole head.
const METHOD_BYTES_MAX: usize = 32;
/// Room for fields on the parser's stack, and the upper bound of [`HeadLimits::fields_max`].
const FIELDS_CAPACITY: usize = 256;
/// Longest head whatever the limits are, in bytes, because positions are stored as `u16`.
const SPAN_BYTES_MAX: usize = u16::MAX as usize;

/// Fields that may occur once. A second one is an attack or a broken client, and which of the two counts is ambiguous.
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
    /// Longest head in bytes, including request line and final blank line. At most 65 535; higher values count as that.
    pub bytes_max: usize,
    /// Most header fields. At most 256; higher values count as that.
    pub fields_max: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { bytes_max: HEAD_BYTES_MAX, fields_max: HEAD_FIELDS_MAX }
    }
}

/// The framing of a request's body (RFC 9112 section 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyFraming {
    /// Neither `Content-Length` nor `Transfer-Encoding`: no body.
    None,
    /// `Content-Length`, in bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`. Most requests with it are refused with a clear response;
    /// [`ChunkedDecoder`](crate::ChunkedDecoder) decodes the others.
    Chunked,
}

/// The error of a refused head. The connection must be closed after the response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadError {
    /// 400: malformed or ambiguous. The text gives the reason and repeats nothing of the request.
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
    /// Returns the status of the response.
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
            Self::TooLarge => "the request head is too large or has too many fields",
            Self::VersionNotSupported => "only HTTP/1.0 and HTTP/1.1 are supported",
            Self::TransferCodingNotSupported => "this transfer coding is not supported",
            Self::ExpectationFailed => "the only supported expectation is 100-continue",
        })
    }
}

impl std::error::Error for HeadError {}

/// A range of the head's bytes.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u16,
    length: u16,
}

/// The bytes of a head. They are checked to be UTF-8 once, because names, path and query are read as text many times.
#[derive(Debug)]
enum HeadText {
    /// The usual case.
    Utf8(Box<str>),
    /// The value of a field is not UTF-8. Names, path and query are ASCII nevertheless.
    Other(Box<[u8]>),
}

impl HeadText {
    fn new(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Utf8(text.into()),
            Err(other) => Self::Other(other.into_bytes().into()),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Utf8(text) => text.as_bytes(),
            Self::Other(bytes) => bytes,
        }
    }
}

/// A parsed and validated request head. It owns one copy of its bytes, so the connection's buffer can be reused at
/// once. Field names are in lower case.
#[derive(Debug)]
pub struct RequestHead {
    text: HeadText,
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
    /// Returns the method, which is case-sensitive.
    #[must_use]
    pub const fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the path as sent: still percent-encoded and beginning with `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.text(self.path)
    }

    /// Returns the query as sent, without `?`, or `None` when there is no `?`.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.query.map(|span| self.text(span))
    }

    /// Returns the value of the first field with this lower-case name, without surrounding spaces and tabs.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.header_values(name).next()
    }

    /// Returns the values of all fields with this lower-case name, in the order sent.
    pub fn header_values<'h>(&'h self, name: &str) -> impl DoubleEndedIterator<Item = &'h [u8]> {
        let wanted = name.as_bytes();
        self.fields
            .iter()
            .filter(move |(name, _)| usize::from(name.length) == wanted.len() && self.slice(*name) == wanted)
            .map(|(_, value)| self.slice(*value))
    }

    /// Returns the value of the first field with this name, if it is ASCII.
    #[must_use]
    pub fn header_str(&self, name: &str) -> Option<&str> {
        self.header(name).and_then(|value| std::str::from_utf8(value).ok()).filter(|value| value.is_ascii())
    }

    /// Iterates over all fields in the order sent: lower-case name and trimmed value.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|(name, value)| (self.text(*name), self.slice(*value)))
    }

    /// Returns how the body is delimited.
    #[must_use]
    pub const fn framing(&self) -> BodyFraming {
        self.framing
    }

    /// Returns whether the client wants to keep the connection (version and `Connection`, RFC 9112 section 9.3).
    #[must_use]
    pub const fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// Returns whether the client sent `Expect: 100-continue`. False for HTTP/1.0 (RFC 9110 section 10.1.1).
    #[must_use]
    pub const fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// Returns whether the request is HTTP/1.1 rather than HTTP/1.0.
    #[must_use]
    pub const fn is_version_1_1(&self) -> bool {
        self.version_1_1
    }

    fn slice(&self, span: Span) -> &[u8] {
        &self.text.bytes()[range_of(span)]
    }

    fn text(&self, span: Span) -> &str {
        match &self.text {
            HeadText::Utf8(text) => &text[range_of(span)],
            HeadText::Other(bytes) => std::str::from_utf8(&bytes[range_of(span)])
                .expect("names, path and query were checked to be ASCII"),
        }
    }
}

/// Parses one head at the start of `bytes`. Returns it with its length, or `Ok(None)` when more bytes are needed. The
/// same bytes cut anywhere give the same result.
///
/// # Errors
/// [`HeadError`]; the connection must be closed after the response.
pub fn parse_head(bytes: &[u8], limits: &HeadLimits) -> Result<Option<(RequestHead, usize)>, HeadError> {
    HeadParser::new(*limits).parse(bytes)
}

/// A [`parse_head`] for a growing buffer. It remembers how far it has searched for the end, so that a head which
/// arrives byte by byte costs no more than one that arrives at once.
#[derive(Clone, Copy, Debug)]
pub struct HeadParser {
    limits: HeadLimits,
    /// Bytes that were searched without finding the end of the head.
    scanned: usize,
    /// Start of the line that is being searched.
    line_start: usize,
}

impl HeadParser {
    /// Makes a parser for one head.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        let limits = HeadLimits {
            bytes_max: limits.bytes_max.min(SPAN_BYTES_MAX),
            fields_max: limits.fields_max.min(FIELDS_CAPACITY),
        };
        Self { limits, scanned: 0, line_start: 0 }
    }

    /// As [`parse_head`]. `bytes` must begin with the bytes of the previous calls.
    ///
    /// # Errors
    /// [`HeadError`]; the connection must be closed after the response.
    pub fn parse(&mut self, bytes: &[u8]) -> Result<Option<(RequestHead, usize)>, HeadError> {
        let Some(length) = self.find_end(bytes)? else { return Ok(None) };
        parse_complete(&bytes[..length], &self.limits).map(|head| Some((head, length)))
    }

    /// Returns the length of the head including the blank line. Refuses heads whose faults are visible before the end:
    /// an empty first line, a line end that is not CR LF, too many bytes. Each is detected at the same byte however the
    /// input is cut.
    fn find_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, HeadError> {
        let window = &bytes[..bytes.len().min(self.limits.bytes_max)];
        assert!(self.scanned <= window.len(), "the bytes of the previous calls are still there");
        if matches!(window.first(), Some(b'\r' | b'\n')) {
            return Err(HeadError::BadRequest("there is an empty line before the request line"));
        }
        while let Some(offset) = memchr(b'\n', &window[self.scanned..]) {
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

/// Parses a complete head, from the request line to the blank line.
fn parse_complete(bytes: &[u8], limits: &HeadLimits) -> Result<RequestHead, HeadError> {
    let mut storage = [const { MaybeUninit::uninit() }; FIELDS_CAPACITY];
    let mut parsed = httparse::Request::new(&mut []);
    match parsed.parse_with_uninit_headers(bytes, &mut storage[..limits.fields_max]) {
        Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
        Ok(_) => return Err(HeadError::BadRequest("the request head does not end where its lines end")),
        Err(error) => return Err(syntax_error(error, bytes)),
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
    if !all_bytes(target, is_target_byte) {
        return Err(HeadError::BadRequest("the request target contains a byte that must be percent-encoded"));
    }
    let target = span_of(bytes, target);
    let question = memchr(b'?', &bytes[range_of(target)]);
    let (path, query) = split_target(target, question);
    let mut lowered = bytes.to_vec();
    let mut fields = Vec::with_capacity(parsed.headers.len());
    for field in parsed.headers.iter() {
        let name = span_of(bytes, field.name.as_bytes());
        let value = span_of(bytes, trim_ows(field.value));
        add_field(&mut lowered, &mut fields, name, value)?;
    }
    let mut head = RequestHead {
        text: HeadText::new(lowered),
        method,
        path,
        query,
        fields,
        framing: BodyFraming::None,
        keep_alive: false,
        expects_continue: false,
        version_1_1: version == 1,
    };
    head.interpret_fields()?;
    Ok(head)
}

fn syntax_error(error: httparse::Error, bytes: &[u8]) -> HeadError {
    match error {
        httparse::Error::TooManyHeaders => HeadError::TooLarge,
        httparse::Error::Version if has_version(bytes) => HeadError::VersionNotSupported,
        httparse::Error::HeaderName => HeadError::BadRequest("a header field has a malformed name"),
        httparse::Error::HeaderValue => HeadError::BadRequest("a header field has a malformed value"),
        _ => HeadError::BadRequest("the request line is malformed"),
    }
}

/// Returns whether the request line ends with a well-formed version. Then the version is unsupported, not the line
/// malformed.
fn has_version(bytes: &[u8]) -> bool {
    let line = bytes.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    matches!(
        (words.next(), words.next(), words.next(), words.next()),
        (Some(_), Some(_), Some([b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9']), None)
    )
}

/// Adds one field of the head with these bytes. Converts its name to lower case in place.
fn add_field(
    bytes: &mut [u8],
    fields: &mut Vec<(Span, Span)>,
    name: Span,
    value: Span,
) -> Result<(), HeadError> {
    let name_bytes = &mut bytes[range_of(name)];
    if name_bytes.is_empty() || !name_bytes.iter().copied().all(is_token_byte) {
        return Err(HeadError::BadRequest("a header field has a malformed name"));
    }
    name_bytes.make_ascii_lowercase();
    if !all_bytes(&bytes[range_of(value)], is_value_byte) {
        return Err(HeadError::BadRequest("a header field contains a control byte"));
    }
    let name_bytes = &bytes[range_of(name)];
    if SINGLE_FIELDS.contains(&name_bytes)
        && fields.iter().any(|(earlier, _)| &bytes[range_of(*earlier)] == name_bytes)
    {
        return Err(HeadError::BadRequest("a header field that may occur only once occurs twice"));
    }
    fields.push((name, value));
    Ok(())
}

impl RequestHead {
    /// Derives framing, keep-alive and expectation from all fields.
    fn interpret_fields(&mut self) -> Result<(), HeadError> {
        match self.header("host") {
            None if self.version_1_1 => return Err(HeadError::BadRequest("the Host header is missing")),
            Some(host) if !is_host(host) => {
                return Err(HeadError::BadRequest("the Host header is malformed"));
            }
            _ => {}
        }
        self.framing = self.decide_framing()?;
        self.keep_alive = self.wants_keep_alive();
        self.expects_continue = self.wants_continue()?;
        Ok(())
    }

    /// RFC 9112 section 9.3: `close` takes precedence. HTTP/1.1 keeps by default, HTTP/1.0 only on request.
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

    /// RFC 9110 section 10.1.1. The expectation of an HTTP/1.0 client is ignored.
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

    /// RFC 9112 section 6.3. Every case is refused in which a proxy in front could have decided differently.
    fn decide_framing(&self) -> Result<BodyFraming, HeadError> {
        match (self.header("transfer-encoding"), self.header("content-length")) {
            (None, None) => Ok(BodyFraming::None),
            (None, Some(length)) => parse_content_length(length).map(BodyFraming::Length),
            (Some(_), Some(_)) => {
                Err(HeadError::BadRequest("both Content-Length and Transfer-Encoding are present"))
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

/// Parses a length of only digits: no sign, list or space (RFC 9110 section 8.6).
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
    let Some(question) = question else { return (target, None) };
    let question = u16::try_from(question).expect("a head is at most SPAN_BYTES_MAX long");
    let path = Span { start: target.start, length: question };
    let query = Span { start: target.start + question + 1, length: target.length - question - 1 };
    (path, Some(query))
}

fn range_of(span: Span) -> std::ops::Range<usize> {
    usize::from(span.start)..usize::from(span.start) + usize::from(span.length)
}

/// Returns the position of `part`, which must be a slice of `whole`.
fn span_of(whole: &[u8], part: &[u8]) -> Span {
    let start = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
    assert!(start <= whole.len() && part.len() <= whole.len() - start, "a field is a slice of its head");
    let fits = "a head is at most SPAN_BYTES_MAX long";
    Span { start: u16::try_from(start).expect(fits), length: u16::try_from(part.len()).expect(fits) }
}
