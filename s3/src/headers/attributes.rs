//! Object attributes: system headers, user metadata and checksums.
//!
//! Source: "Working with object metadata" (AWS). Values are stored as sent. Repeated headers are joined with a comma.
//! `aws-chunked` is left out of the content encoding: it describes the request's body, which is decoded.
//! User metadata beyond ASCII is returned as encoded words.
//! An absent header is not stored: defaults are applied when the object is read.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::tagging;
use crate::headers::{checksum, encoded_words};
use crate::request::fields::Fields;
use cairn_engine::Attributes;
use cairn_http1::{ResponseHead, is_field_value, is_token, trim_ows};
use std::borrow::Cow;

/// System headers that are stored and returned, with the query parameter that overrides each in a response.
pub(crate) const STORED_HEADERS: [(&str, &str); 6] = [
    ("content-type", "response-content-type"),
    ("cache-control", "response-cache-control"),
    ("content-disposition", "response-content-disposition"),
    ("content-encoding", "response-content-encoding"),
    ("content-language", "response-content-language"),
    ("expires", "response-expires"),
];

/// Those of them that a 304 carries (RFC 9110 section 15.4.5).
const CACHE_HEADERS: [&str; 2] = ["cache-control", "expires"];

/// The content type of objects that were stored without one.
const CONTENT_TYPE_DEFAULT: &str = "binary/octet-stream";
/// The prefix of the names of user metadata.
const METADATA_PREFIX: &str = "x-amz-meta-";
/// Largest user metadata in bytes: names without their prefix and values.
const METADATA_BYTES_MAX: usize = 2048;
/// Largest system headers in bytes: values.
const SYSTEM_BYTES_MAX: usize = 2048;

/// Collects the attributes to store from the headers of a PUT.
///
/// Metadata in a presigned query replaces headers, so its names and values must be those of headers: others could be
/// stored, but never returned.
///
/// # Errors
/// `InvalidRequest` for metadata that is not a valid header; `MetadataTooLarge`, with the sizes that AWS sends; those of
/// [`tagging::from_request`].
pub(crate) fn from_request(fields: Fields<'_>) -> S3Result<Attributes> {
    let mut headers: Vec<(String, Vec<u8>)> = Vec::new();
    let hoisted = fields.hoisted();
    let sent = fields.headers().iter().map(|(name, value)| (*name, *value));
    for (name, value) in sent {
        if name == "content-encoding" {
            store(&mut headers, name, &without_aws_chunked(value));
        } else if name.starts_with(METADATA_PREFIX) {
            store(&mut headers, name, &encoded_words::decode(value));
        } else {
            store(&mut headers, name, value);
        }
    }
    for (name, value) in hoisted.filter(|(name, _)| name.starts_with(METADATA_PREFIX)) {
        let value = trim_ows(value.as_bytes());
        if !is_token(name) || !is_field_value(value) {
            return Err(S3Error::invalid_request(format!(
                "The query parameter {} is not valid user metadata: its name must consist of letters, digits and \
                 !#$%&'*+-.^_`|~, and its value must not contain control characters.",
                name.escape_default()
            )));
        }
        store(&mut headers, name, &encoded_words::decode(value));
    }
    let (mut metadata, mut system) = (0, 0);
    for (name, value) in &headers {
        match name.strip_prefix(METADATA_PREFIX) {
            Some(name) => metadata += name.len() + value.len(),
            None => system += value.len(),
        }
    }
    if metadata > METADATA_BYTES_MAX || system > SYSTEM_BYTES_MAX {
        return Err(S3Error::new(ErrorCode::MetadataTooLarge)
            .element("Size", metadata.max(system).to_string())
            .element("MaxSizeAllowed", METADATA_BYTES_MAX.to_string()));
    }
    Ok(Attributes { headers, tags: tagging::from_request(fields)?, ..Attributes::default() })
}

/// Removes `aws-chunked` from a content encoding. Any other value stays as it was sent.
fn without_aws_chunked(value: &[u8]) -> Cow<'_, [u8]> {
    let is_framing = |coding: &&[u8]| coding.trim_ascii().eq_ignore_ascii_case(b"aws-chunked");
    let codings = || value.split(|byte| *byte == b',');
    if !codings().any(|coding| is_framing(&coding)) {
        return Cow::Borrowed(value);
    }
    let kept: Vec<&[u8]> = codings().filter(|coding| !is_framing(coding)).map(<[u8]>::trim_ascii).collect();
    Cow::Owned(kept.join(&b","[..]))
}

fn store(headers: &mut Vec<(String, Vec<u8>)>, name: &str, value: &[u8]) {
    let system = STORED_HEADERS.iter().any(|(stored, _)| *stored == name);
    if !name.starts_with(METADATA_PREFIX) && (!system || value.is_empty()) {
        return;
    }
    match headers.iter_mut().find(|(earlier, _)| earlier == name) {
        Some((_, joined)) => {
            joined.push(b',');
            joined.extend_from_slice(value);
        }
        None => headers.push((name.to_owned(), value.to_vec())),
    }
}

/// Writes the stored headers into a response. `overrides` returns the value of a `response-*` parameter, which replaces
/// the stored one.
pub(crate) fn write_stored<'q>(
    head: &mut ResponseHead,
    attributes: &Attributes,
    overrides: impl Fn(&str) -> Option<&'q str>,
) {
    for (name, parameter) in STORED_HEADERS {
        if let Some(value) = overrides(parameter) {
            head.header(name, value);
        } else if let Some((_, value)) = attributes.headers.iter().find(|(stored, _)| stored == name) {
            head.header(name, value);
        } else if name == "content-type" {
            head.header(name, CONTENT_TYPE_DEFAULT);
        }
    }
    for (name, value) in attributes.headers.iter().filter(|(name, _)| name.starts_with(METADATA_PREFIX)) {
        head.header(name, &*encoded_words::encode(value));
    }
}

/// Writes the stored headers that a 304 carries.
pub(crate) fn write_cache_headers(head: &mut ResponseHead, attributes: &Attributes) {
    for (name, value) in attributes.headers.iter().filter(|(name, _)| CACHE_HEADERS.contains(&&**name)) {
        head.header(name, value);
    }
}

/// Writes the stored checksums, for `x-amz-checksum-mode: ENABLED`. `parts` is the number of the object's parts.
pub(crate) fn write_checksums(head: &mut ResponseHead, attributes: &Attributes, parts: u32) {
    let kind = attributes.checksum_kind;
    for (algorithm, digest) in &attributes.checksums {
        head.header(checksum::header(*algorithm), checksum::object_text(digest, kind, parts));
        head.header("x-amz-checksum-type", checksum::kind_name(kind));
    }
}

#[cfg(test)]
mod tests {
    use super::{from_request, write_cache_headers, write_checksums, write_stored};
    use crate::request::fields::Fields;
    use crate::request::query::Query;
    use cairn_engine::{Attributes, ChecksumAlgorithm, ChecksumKind};
    use cairn_http1::{ResponseHead, StatusCode};

    fn stored(headers: &[(&str, &[u8])], query: &str) -> Attributes {
        let query = Query::parse(Some(query)).expect("parses");
        from_request(Fields::new(headers, &query)).expect("fits")
    }

    #[test]
    fn framing_of_the_request_is_no_content_encoding() {
        for (sent, kept) in [
            ("aws-chunked", None),
            ("gzip,aws-chunked", Some("gzip")),
            ("AWS-Chunked, gzip , br", Some("gzip,br")),
            ("gzip , br", Some("gzip , br")),
            ("aws-chunked2", Some("aws-chunked2")),
        ] {
            let attributes = stored(&[("content-encoding", sent.as_bytes())], "");
            let found = attributes.headers.first().map(|(_, value)| value.as_slice());
            assert_eq!(found, kept.map(str::as_bytes), "{sent}");
        }
    }

    #[test]
    fn system_headers_and_metadata_are_kept_as_sent_and_nothing_else() {
        let attributes = stored(
            &[
                ("host", b"h"),
                ("content-type", b"text/plain"),
                ("expires", b"tomorrow"),
                ("content-language", b""),
                ("x-amz-meta-a", b"1"),
                ("x-amz-date", b"d"),
                ("x-amz-meta-b", b"\xff"),
                ("x-amz-meta-a", b"2"),
            ],
            "X-Amz-Meta-Hoisted=yes&x-amz-acl=no",
        );
        let names: Vec<&str> = attributes.headers.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["content-type", "expires", "x-amz-meta-a", "x-amz-meta-b", "x-amz-meta-hoisted"]);
        assert_eq!(attributes.headers[2].1, b"1,2");
        assert_eq!(attributes.headers[3].1, b"\xff");
    }

    /// Such names were stored, and no response returned them.
    #[test]
    fn hoisted_metadata_must_be_a_valid_header() {
        let attributes = stored(&[], "X-Amz-Meta-A=%20v%20w%09&x-amz-meta-b=gr%C3%BCn");
        assert_eq!(attributes.headers[0], ("x-amz-meta-a".to_owned(), b"v w".to_vec()));
        assert_eq!(attributes.headers[1].1, "grün".as_bytes());
        for query in [
            "x-amz-meta-a%0D%0Ab=1",
            "x-amz-meta-a%20b=1",
            "x-amz-meta-%C3%A4=1",
            "x-amz-meta-a:b=1",
            "x-amz-meta-a=1%0D%0Ab",
            "x-amz-meta-a=%00",
        ] {
            let query = Query::parse(Some(query)).expect("parses");
            let refused = from_request(Fields::new(&[], &query)).expect_err("invalid");
            assert_eq!((refused.status(), refused.code()), (400, "InvalidRequest"));
            assert!(refused.message().is_ascii() && !refused.message().contains('\r'));
        }
    }

    #[test]
    fn more_than_two_kilobytes_of_names_and_values_are_refused() {
        let query = Query::default();
        let value = vec![b'v'; 2047];
        let fits: &[(&str, &[u8])] = &[("x-amz-meta-a", &value)];
        assert!(from_request(Fields::new(fits, &query)).is_ok());
        let over: &[(&str, &[u8])] = &[("x-amz-meta-a", &value), ("x-amz-meta-b", b"")];
        let refused = from_request(Fields::new(over, &query)).expect_err("too large");
        assert_eq!((refused.status(), refused.code()), (400, "MetadataTooLarge"));
    }

    #[test]
    fn answers_carry_the_stored_headers_and_their_overrides() {
        let attributes = stored(
            &[("content-language", b"de"), ("cache-control", b"no-cache"), ("x-amz-meta-a", b"1")],
            "",
        );
        let mut head = ResponseHead::new(StatusCode::OK);
        write_stored(&mut head, &attributes, |name| {
            (name == "response-content-language").then_some("en\r\nx: y")
        });
        assert_eq!(head.get("content-type"), Some(&b"binary/octet-stream"[..]));
        assert_eq!(head.get("content-language"), Some(&b"en  x: y"[..]));
        assert_eq!(head.get("x-amz-meta-a"), Some(&b"1"[..]));
        let mut not_modified = ResponseHead::new(StatusCode::NOT_MODIFIED);
        write_cache_headers(&mut not_modified, &attributes);
        assert_eq!(not_modified.get("cache-control"), Some(&b"no-cache"[..]));
        assert_eq!(not_modified.get("content-language"), None);
    }

    #[test]
    fn checksums_are_base64_and_say_what_they_are_of() {
        for (checksum_kind, text, name) in [
            (ChecksumKind::FullObject, "AAAAAQ==", "FULL_OBJECT"),
            (ChecksumKind::Composite, "AAAAAQ==-7", "COMPOSITE"),
        ] {
            let checksums = vec![(ChecksumAlgorithm::Crc32, vec![0, 0, 0, 1])];
            let mut head = ResponseHead::new(StatusCode::OK);
            write_checksums(&mut head, &Attributes { checksums, checksum_kind, ..Attributes::default() }, 7);
            assert_eq!(head.get("x-amz-checksum-crc32"), Some(text.as_bytes()));
            assert_eq!(head.get("x-amz-checksum-type"), Some(name.as_bytes()));
        }
    }
}
