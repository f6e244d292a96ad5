//! HTTP/1.1 as pure functions and state machines: heads, framing, ranges, conditionals, dates, percent-encoding.
//!
//! Nothing here owns a socket, so everything here can be tested and fuzzed on bytes alone.
//! (interface: the crate's author fills these in; signatures are what net, s3 and admin build on)
#![forbid(unsafe_code)]

pub use http::{Method, StatusCode};

/// Limits on a request head.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// Longest head in bytes, request line and final blank line included (32 KiB).
    pub bytes_max: usize,
    /// Most header fields.
    pub fields_max: usize,
}

/// How the body of a request is delimited (RFC 9112 section 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyFraming {
    /// Neither `Content-Length` nor `Transfer-Encoding`.
    None,
    /// `Content-Length`, in bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
}

/// A parsed and checked request head. Owns one copy of its bytes; names are lower-case.
pub struct RequestHead {/* private: one buffer and spans into it */}
impl RequestHead {
    pub fn method(&self) -> &Method { todo!() }
    /// The path as sent: raw, still percent-encoded, beginning with `/`.
    pub fn path(&self) -> &str { todo!() }
    /// The query as sent, raw, without `?`; None when there is no `?`.
    pub fn query(&self) -> Option<&str> { todo!() }
    /// The value of the first field of this (lower-case) name, trimmed of spaces and tabs.
    pub fn header(&self, _name: &str) -> Option<&[u8]> { todo!() }
    /// All fields in the order sent: lower-case name, trimmed value.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> { std::iter::empty() }
    pub fn framing(&self) -> BodyFraming { todo!() }
    /// Whether the client wants the connection kept (version and `Connection`).
    pub fn keep_alive(&self) -> bool { todo!() }
    /// Whether the client sent `Expect: 100-continue`.
    pub fn expects_continue(&self) -> bool { todo!() }
}

/// Why a head was refused. Every variant means: answer, then close the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadError { /* BadRequest(&'static str), TooLarge, VersionNotSupported, ... */ }

/// Parses one head from the front of `bytes`. `Ok(None)`: more bytes are needed.
/// The same bytes cut anywhere give the same result. On success also says how many bytes the head took.
pub fn parse_head(_bytes: &[u8], _limits: &HeadLimits) -> Result<Option<(RequestHead, usize)>, HeadError> { todo!() }

/// A response head under construction: status line later, header lines already serialised.
pub struct ResponseHead {
    pub status: StatusCode,
    /* private: lines: Vec<u8> */
}
impl ResponseHead {
    pub fn new(_status: StatusCode) -> Self { todo!() }
    /// Appends one header line. A value with CR, LF, NUL or another control byte is made harmless (never split): see its doc.
    pub fn header(&mut self, _name: &str, _value: impl AsRef<[u8]>) -> &mut Self { todo!() }
}
