//! The boundary of a multipart body: its place in the content type, and the search for it.

use crate::errors::{ErrorCode, S3Error, S3Result};
use cairn_http1::{is_token, trim_ows};
use memchr::memmem::Finder;
use memchr::memrchr;

/// Longest boundary in bytes (RFC 2046 section 5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;
/// The content type of forms.
const FORM: &[u8] = b"multipart/form-data";

/// Returns an error for a body that is not a valid form.
pub(crate) fn malformed(what: &str) -> S3Error {
    let message = format!("The body of your POST request is not well-formed multipart/form-data: {what}.");
    S3Error::with_message(ErrorCode::MalformedPOSTRequest, message)
}

/// Returns whether a content type is that of a form.
pub(crate) fn is_form(content_type: &[u8]) -> bool {
    let kind = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    trim_ows(kind).eq_ignore_ascii_case(FORM)
}

/// The delimiter of a body's parts: a line break, two hyphens and the boundary.
#[derive(Clone, Debug)]
pub(crate) struct Delimiter(Finder<'static>);

/// The end of a part's content in some bytes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PartEnd {
    /// At this offset, where the delimiter begins.
    Found(usize),
    /// Not in these bytes. From this offset on they may be the beginning of a delimiter.
    NotBefore(usize),
}

impl Delimiter {
    /// Reads the boundary from a content type, where it is a token or a quoted string.
    ///
    /// # Errors
    /// `MalformedPOSTRequest` if there is none, if there are several, and for one that is not valid.
    pub(crate) fn of_content_type(content_type: &[u8]) -> S3Result<Self> {
        let boundary = parameter(content_type, b"boundary")?;
        let boundary = boundary.ok_or_else(|| malformed("its Content-Type has no boundary"))?;
        Self::new(&boundary)
    }

    /// Makes the delimiter of a boundary.
    ///
    /// # Errors
    /// `MalformedPOSTRequest` for a boundary that is not valid.
    pub(crate) fn new(boundary: &[u8]) -> S3Result<Self> {
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(byte);
        // Clients use further characters that a token may have.
        let is_valid = boundary.iter().all(|byte| allowed(byte) || b"!#$%&*^`|~".contains(byte));
        if boundary.is_empty() || boundary.len() > BOUNDARY_BYTES_MAX || boundary.ends_with(b" ") || !is_valid
        {
            return Err(malformed("its boundary must have 1 to 70 letters, digits and '()+_,-./:=?"));
        }
        Ok(Self(Finder::new(&[b"\r\n--", boundary].concat()).into_owned()))
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.needle().len()
    }

    /// Finds the end of a part.
    ///
    /// The first byte of a delimiter, a carriage return, occurs in it only once. So a delimiter that the bytes end within can
    /// only begin at their last carriage return.
    pub(crate) fn find(&self, bytes: &[u8]) -> PartEnd {
        if let Some(at) = self.0.find(bytes) {
            return PartEnd::Found(at);
        }
        let tail = bytes.len().saturating_sub(self.len() - 1);
        match memrchr(b'\r', &bytes[tail..]) {
            Some(at) if self.0.needle().starts_with(&bytes[tail + at..]) => PartEnd::NotBefore(tail + at),
            _ => PartEnd::NotBefore(bytes.len()),
        }
    }
}

/// Returns the value of a parameter of a header, such as `name` in `form-data; name="a"`. Names ignore case.
///
/// # Errors
/// `MalformedPOSTRequest` for a header of another grammar and for a repeated parameter.
pub(crate) fn parameter(header: &[u8], wanted: &[u8]) -> S3Result<Option<Vec<u8>>> {
    let mut found = None;
    let mut rest = header.iter().position(|byte| *byte == b';').map_or(&[][..], |at| &header[at..]);
    while let Some(after) = rest.strip_prefix(b";") {
        let after = after.trim_ascii_start();
        if after.is_empty() || after.starts_with(b";") {
            rest = after;
            continue;
        }
        let equals = after.iter().position(|byte| *byte == b'=');
        let equals = equals.ok_or_else(|| malformed("a parameter of a header has no value"))?;
        let name = after[..equals].trim_ascii_end();
        if !std::str::from_utf8(name).is_ok_and(is_token) {
            return Err(malformed("the name of a parameter of a header is not valid"));
        }
        let (value, after) = parameter_value(after[equals + 1..].trim_ascii_start())?;
        if name.eq_ignore_ascii_case(wanted) && found.replace(value).is_some() {
            return Err(malformed("a header has the same parameter twice"));
        }
        rest = after.trim_ascii_start();
    }
    if rest.is_empty() { Ok(found) } else { Err(malformed("a header has text after a quoted value")) }
}

/// Splits a value, which is a token or a quoted string, from what follows it.
///
/// In a quoted string, a backslash escapes a quote or a backslash. Before other characters it is ordinary text: old browsers
/// sent the path of a file with single backslashes.
fn parameter_value(text: &[u8]) -> S3Result<(Vec<u8>, &[u8])> {
    let Some(mut rest) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|byte| *byte == b';').unwrap_or(text.len());
        return Ok((text[..end].trim_ascii_end().to_vec(), &text[end..]));
    };
    let mut value = Vec::new();
    loop {
        match rest {
            [b'"', after @ ..] => return Ok((value, after)),
            [b'\\', escaped @ (b'"' | b'\\'), after @ ..] => {
                value.push(*escaped);
                rest = after;
            }
            [byte, after @ ..] => {
                value.push(*byte);
                rest = after;
            }
            [] => return Err(malformed("a quoted value does not end")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Delimiter, PartEnd, is_form, parameter};

    #[test]
    fn boundary_is_a_token_or_quoted() {
        for (content_type, boundary) in [
            ("multipart/form-data; boundary=abc", "abc"),
            ("Multipart/Form-Data;BOUNDARY=abc", "abc"),
            ("multipart/form-data; charset=utf-8; boundary=\"a b:?='\"; x=1", "a b:?='"),
            (
                "multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW",
                "----WebKitFormBoundary7MA4YWxkTrZu0gW",
            ),
            ("multipart/form-data ;; boundary=x;", "x"),
        ] {
            assert!(is_form(content_type.as_bytes()));
            let delimiter = Delimiter::of_content_type(content_type.as_bytes()).expect(content_type);
            assert_eq!(delimiter.0.needle(), format!("\r\n--{boundary}").as_bytes());
        }
        assert!(Delimiter::new(&[b'x'; 70]).is_ok() && Delimiter::new(&[b'x'; 71]).is_err());
    }

    #[test]
    fn other_boundaries_are_malformed() {
        for content_type in [
            "multipart/form-data",
            "multipart/form-data; boundary=",
            "multipart/form-data; boundary=\"\"",
            "multipart/form-data; boundary=\"a",
            "multipart/form-data; boundary=\"a\"b",
            "multipart/form-data; boundary=\"a \"",
            "multipart/form-data; boundary=a; boundary=b",
            "multipart/form-data; boundary=a\u{e4}",
            "multipart/form-data; boundary=\"a\rb\"",
            "multipart/form-data; boundary",
        ] {
            let refused = Delimiter::of_content_type(content_type.as_bytes()).expect_err(content_type);
            assert_eq!((refused.status(), refused.code()), (400, "MalformedPOSTRequest"));
        }
        for other in ["multipart/form-data-x", "application/x-www-form-urlencoded", "", "multipart/mixed"] {
            assert!(!is_form(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn quotes_and_backslashes_are_escaped_and_paths_are_not() {
        for (sent, value) in [
            (r#"form-data; name="a\"b\\c""#, r#"a"b\c"#),
            (r#"form-data; name="C:\dir\file""#, r"C:\dir\file"),
            (r#"form-data; name="a;b=c""#, "a;b=c"),
            ("form-data; name=plain ; filename=x", "plain"),
        ] {
            assert_eq!(parameter(sent.as_bytes(), b"name").expect(sent), Some(value.as_bytes().to_vec()));
        }
        assert_eq!(parameter(b"form-data", b"name").expect("valid"), None);
    }

    #[test]
    fn beginning_of_a_delimiter_is_held_back() {
        let delimiter = Delimiter::new(b"xy").expect("valid");
        for (bytes, end) in [
            ("", PartEnd::NotBefore(0)),
            ("abc", PartEnd::NotBefore(3)),
            ("abc\r", PartEnd::NotBefore(3)),
            ("abc\r\n--x", PartEnd::NotBefore(3)),
            ("abc\r\n--z", PartEnd::NotBefore(8)),
            ("a\r\r\n-", PartEnd::NotBefore(2)),
            ("a\r\n--x\r", PartEnd::NotBefore(6)),
            ("\r\n--xy", PartEnd::Found(0)),
            ("ab\r\n--xy--\r\n--xy", PartEnd::Found(2)),
        ] {
            assert_eq!(delimiter.find(bytes.as_bytes()), end, "{bytes:?}");
        }
    }
}
