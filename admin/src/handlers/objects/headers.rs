//! The headers that are stored with an object.
//!
//! They are those of the data plane, with the same limits. Refused are repeated headers other than user metadata, and `x-amz-`
//! headers that this route does not support, because they would change what is stored.

use cairn_engine::Attributes;
use cairn_http1::RequestHead;

use crate::error::AdminError;
use crate::limits::STORED_HEADER_BYTES_MAX;

pub(crate) const CONTENT_TYPE: &str = "content-type";
/// Prefix of the names of user metadata.
pub(crate) const METADATA_PREFIX: &str = "x-amz-meta-";
/// Stored headers other than user metadata.
pub(super) const STORED: [&str; 6] =
    [CONTENT_TYPE, "cache-control", "content-disposition", "content-encoding", "content-language", "expires"];

/// Request headers that make a request depend on the state of its target (RFC 9110 section 13.1).
pub(crate) const CONDITIONS: [&str; 5] =
    ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range"];

/// Refuses a request with one of these headers. A condition that is ignored could cost data.
///
/// # Errors
/// `INVALID_REQUEST`.
pub(crate) fn refuse_conditions(head: &RequestHead, names: &[&str]) -> Result<(), AdminError> {
    match names.iter().find(|name| head.header(name).is_some()) {
        Some(name) => Err(AdminError::invalid(format!("this route does not support the header {name}"))),
        None => Ok(()),
    }
}

/// Returns the headers of an upload that are stored.
///
/// # Errors
/// `INVALID_REQUEST`: headers that are too large, repeated, or not supported here.
pub(crate) fn from_request(head: &RequestHead) -> Result<Attributes, AdminError> {
    stored_headers(head, |_| false)
}

/// Does the same as [`from_request`], for a route that reads the `x-amz-` headers itself that `is_known`.
///
/// # Errors
/// As [`from_request`].
pub(crate) fn stored_headers(
    head: &RequestHead,
    is_known: impl Fn(&str) -> bool,
) -> Result<Attributes, AdminError> {
    let mut headers: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, value) in head.headers() {
        let is_metadata = name.starts_with(METADATA_PREFIX);
        if name.starts_with("x-amz-") && !is_metadata {
            if is_known(name) {
                continue;
            }
            let message = format!("this route does not support the header {name}: use the S3 API for it");
            return Err(AdminError::invalid(message));
        }
        if !is_metadata && (!STORED.contains(&name) || value.is_empty()) {
            continue;
        }
        match headers.iter_mut().find(|(earlier, _)| earlier == name) {
            Some((_, joined)) if is_metadata => {
                joined.push(b',');
                joined.extend_from_slice(value);
            }
            Some(_) => return Err(AdminError::invalid(format!("the header {name} must not be repeated"))),
            None => headers.push((name.to_owned(), value.to_vec())),
        }
    }
    validate_sizes(&headers)?;
    Ok(Attributes { headers, ..Attributes::default() })
}

/// Refuses headers that are larger than an object may have.
///
/// # Errors
/// `INVALID_REQUEST`.
pub(super) fn validate_sizes(headers: &[(String, Vec<u8>)]) -> Result<(), AdminError> {
    let (mut metadata, mut system) = (0, 0);
    for (name, value) in headers {
        match name.strip_prefix(METADATA_PREFIX) {
            Some(name) => metadata += name.len() + value.len(),
            None => system += value.len(),
        }
    }
    if metadata.max(system) > STORED_HEADER_BYTES_MAX {
        return Err(AdminError::invalid(format!(
            "user metadata (names and values) and other stored headers (values) are limited to \
             {STORED_HEADER_BYTES_MAX} bytes each"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::from_request;
    use cairn_http1::{HeadLimits, parse_head};
    use cairn_transfer::{stored_content_type, stored_header};

    fn read(fields: &str) -> Result<cairn_engine::Attributes, String> {
        let text = format!("PUT / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let (head, _) = parse_head(text.as_bytes(), &HeadLimits::default()).expect("parses").expect("whole");
        from_request(&head).map_err(|error| error.message())
    }

    #[test]
    fn same_headers_as_on_data_plane_are_stored() {
        let attributes = read(
            "Content-Type: text/plain\r\nX-Amz-Meta-A: 1\r\nX-Amz-Meta-A: 2\r\nAccept: */*\r\nExpires: tomorrow\r\n",
        )
        .expect("fits");
        let names: Vec<_> = attributes.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-type", "x-amz-meta-a", "expires"]);
        assert_eq!(stored_header(&attributes, "x-amz-meta-a"), Some(&b"1,2"[..]));
        assert_eq!(stored_content_type(&attributes), "text/plain");
        assert_eq!(stored_content_type(&read("").expect("none")), "binary/octet-stream");
    }

    #[test]
    fn unsupported_repeated_and_large_headers_are_refused() {
        for fields in [
            "x-amz-object-lock-mode: COMPLIANCE\r\n".to_owned(),
            "x-amz-tagging: a=b\r\n".to_owned(),
            "Content-Language: de\r\nContent-Language: en\r\n".to_owned(),
            format!("x-amz-meta-a: {}\r\n", "v".repeat(2048)),
            format!("cache-control: {}\r\n", "v".repeat(2049)),
        ] {
            assert!(read(&fields).is_err(), "{fields}");
        }
        assert!(read(&format!("x-amz-meta-a: {}\r\n", "v".repeat(2047))).is_ok());
    }
}
