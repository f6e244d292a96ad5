//! Builds the canonical request that client and server sign.
//!
//! Source: "Create a canonical request" in the Amazon S3 API reference. Unlike other services, S3 encodes the path once and
//! never normalises it: keys may contain `//`, `.` and `..`.

use super::percent::{Component, InvalidEncoding, append_canonical};
use super::scope::SignedHeaders;
use crate::request::SignedRequest;

/// The parameter with the signature, which the signature itself cannot cover.
pub(super) const SIGNATURE_PARAMETER: &[u8] = b"X-Amz-Signature";

/// A query in canonical form: decoded, strictly encoded, and sorted.
///
/// Kept between requests to reuse its buffers.
#[derive(Debug, Default)]
pub(super) struct CanonicalQuery {
    text: Vec<u8>,
    pairs: Vec<Pair>,
}

/// The position of a parameter in the text: the name from `start` to `middle`, the value from there to `end`.
#[derive(Clone, Copy, Debug)]
struct Pair {
    start: usize,
    middle: usize,
    end: usize,
}

impl CanonicalQuery {
    /// Reads a raw query. A name without `=` has an empty value. Only `&` separates parameters; `;` is data.
    pub(super) fn read(&mut self, query: Option<&str>) -> Result<(), InvalidEncoding> {
        self.text.clear();
        self.pairs.clear();
        for parameter in query.unwrap_or_default().split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let start = self.text.len();
            append_canonical(&mut self.text, name.as_bytes(), Component::Query)?;
            let middle = self.text.len();
            append_canonical(&mut self.text, value.as_bytes(), Component::Query)?;
            self.pairs.push(Pair { start, middle, end: self.text.len() });
        }
        // Parameters are sorted by their encoded bytes: `%3A` comes before `A`, although `:` does not.
        let text = &self.text;
        self.pairs.sort_unstable_by(|left, right| {
            let name = |pair: &Pair| &text[pair.start..pair.middle];
            let value = |pair: &Pair| &text[pair.middle..pair.end];
            name(left).cmp(name(right)).then_with(|| value(left).cmp(value(right)))
        });
        Ok(())
    }

    /// Returns the encoded name and value of every parameter, sorted.
    pub(super) fn parameters(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.pairs.iter().map(|pair| (&self.text[pair.start..pair.middle], &self.text[pair.middle..pair.end]))
    }
}

/// Writes the canonical request of `request` to `out`, replacing its contents.
pub(super) fn write_canonical_request(
    out: &mut Vec<u8>,
    request: &SignedRequest<'_>,
    query: &CanonicalQuery,
    signed_headers: SignedHeaders<'_>,
    payload: &[u8],
) -> Result<(), InvalidEncoding> {
    out.clear();
    out.extend_from_slice(request.method.as_bytes());
    out.push(b'\n');
    let path = if request.path.is_empty() { "/" } else { request.path };
    append_canonical(out, path.as_bytes(), Component::Path)?;
    out.push(b'\n');
    write_query(out, query);
    out.push(b'\n');
    write_headers(out, request.headers, signed_headers);
    out.push(b'\n');
    out.extend_from_slice(signed_headers.text.as_bytes());
    out.push(b'\n');
    out.extend_from_slice(payload);
    Ok(())
}

fn write_query(out: &mut Vec<u8>, query: &CanonicalQuery) {
    let covered = query.parameters().filter(|(name, _)| *name != SIGNATURE_PARAMETER);
    for (index, (name, value)) in covered.enumerate() {
        if index > 0 {
            out.push(b'&');
        }
        out.extend_from_slice(name);
        out.push(b'=');
        out.extend_from_slice(value);
    }
}

/// Writes a line `name:value` for each signed header. A header that is listed but absent has an empty value, so that the
/// signature still proves its absence.
fn write_headers(out: &mut Vec<u8>, headers: &[(&str, &[u8])], signed_headers: SignedHeaders<'_>) {
    for name in signed_headers.names() {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        let values = headers.iter().filter(|(header, _)| *header == name);
        for (index, (_, value)) in values.enumerate() {
            if index > 0 {
                out.push(b',');
            }
            append_folded(out, value);
        }
        out.push(b'\n');
    }
}

/// Appends a header value, trimmed and with every run of white space replaced by one space.
///
/// Tabs are white space, as in the AWS SDKs for Java, JavaScript and Python.
fn append_folded(out: &mut Vec<u8>, value: &[u8]) {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    for (index, word) in value.split(is_space).filter(|word| !word.is_empty()).enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical_query(raw: &str) -> String {
        let mut query = CanonicalQuery::default();
        query.read(Some(raw)).expect("valid");
        let mut out = Vec::new();
        write_query(&mut out, &query);
        String::from_utf8(out).expect("ASCII")
    }

    fn folded(value: &str) -> String {
        let mut out = Vec::new();
        append_folded(&mut out, value.as_bytes());
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn queries_are_sorted_by_encoded_name_then_value() {
        assert_eq!(canonical_query("b=2&a=2&a=1&a-b=3"), "a=1&a=2&a-b=3&b=2");
        assert_eq!(canonical_query("A=1&:=2&a=3"), "%3A=2&A=1&a=3");
        assert_eq!(canonical_query("a=%7E&a=%20"), "a=%20&a=~");
    }

    #[test]
    fn names_without_a_value_get_an_equals_sign() {
        assert_eq!(canonical_query("acl"), "acl=");
        assert_eq!(canonical_query("uploads&prefix="), "prefix=&uploads=");
        assert_eq!(canonical_query("a==b&=c&&"), "=c&a=%3Db");
        assert_eq!(canonical_query(""), "");
    }

    #[test]
    fn a_semicolon_in_a_query_is_data() {
        assert_eq!(canonical_query("prefix=a;b=c"), "prefix=a%3Bb%3Dc");
    }

    #[test]
    fn all_parameters_but_the_signature_are_covered() {
        assert_eq!(
            canonical_query("X-Amz-Signature=ab&x-amz-signature=cd&X-Amz-Date=1"),
            "X-Amz-Date=1&x-amz-signature=cd"
        );
    }

    #[test]
    fn header_values_are_trimmed_and_folded() {
        assert_eq!(folded("  a   b \t c  "), "a b c");
        assert_eq!(folded("\"a   b\""), "\"a b\"");
        assert_eq!(folded("   "), "");
    }

    #[test]
    fn canonical_request_has_the_published_layout() {
        let request = SignedRequest {
            method: "GET",
            path: "/a b",
            query: Some("x"),
            headers: &[("host", b"h:1"), ("x-amz-meta-a", b"1"), ("other", b"9"), ("x-amz-meta-a", b" 2 ")],
            bucket_in_host: None,
        };
        let mut query = CanonicalQuery::default();
        query.read(request.query).expect("valid");
        let signed = SignedHeaders::parse("absent;host;x-amz-meta-a").expect("valid");
        let mut out = b"left over".to_vec();
        write_canonical_request(&mut out, &request, &query, signed, b"UNSIGNED-PAYLOAD").expect("valid");
        assert_eq!(
            String::from_utf8(out).expect("ASCII"),
            "GET\n/a%20b\nx=\nabsent:\nhost:h:1\nx-amz-meta-a:1,2\n\nabsent;host;x-amz-meta-a\nUNSIGNED-PAYLOAD"
        );
    }
}
