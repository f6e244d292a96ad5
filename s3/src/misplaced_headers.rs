//! Refuses headers that the operation would ignore.
//!
//! A client that asks for an object lock, a copy or a checksum and does not get it loses data without notice. The table
//! of operations says which operation accepts which of these headers. Headers that no operation accepts are in
//! `request/unsupported_headers.rs`.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::copy_source::{COPY_RANGE, COPY_SOURCE};
use crate::headers::encryption::ENCRYPTION_HEADER;
use crate::headers::object_lock::{BUCKET_LOCK, BYPASS, LEGAL_HOLD, MODE, RETAIN_UNTIL};
use crate::operations::{Implementation, Input};
use crate::request::fields::Fields;

/// The headers of object lock, with what an operation must accept to have a use for each.
const LOCK_HEADERS: [(&str, Input); 5] = [
    (MODE, Input::ObjectLock),
    (RETAIN_UNTIL, Input::ObjectLock),
    (LEGAL_HOLD, Input::ObjectLock),
    (BYPASS, Input::GovernanceBypass),
    (BUCKET_LOCK, Input::BucketLock),
];

const CHECKSUM_TYPE: &str = "Checksum types other than FULL_OBJECT are implemented for multipart uploads only: omit \
                             x-amz-checksum-type.";

/// Refuses headers that `operation` does not accept.
///
/// # Errors
/// `InvalidRequest` for a header of object lock; `InvalidArgument` for a copy source and an encryption, as on AWS;
/// `NotImplemented` for a checksum type, and for a header of object lock that is not known.
pub(crate) fn check(fields: Fields<'_>, operation: &str, implementation: Implementation) -> S3Result<()> {
    for (name, input) in LOCK_HEADERS {
        // A header that turns something off asks for nothing.
        let is_set = fields.amz(name).is_some_and(|value| !value.eq_ignore_ascii_case("false"));
        if is_set && !implementation.accepts(input) {
            let message = format!("{operation} does not accept the header {name}: omit it.");
            return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
        }
    }
    let mut copies = false;
    let headers = fields.headers().iter().map(|(name, _)| *name);
    for name in headers.chain(fields.hoisted().map(|(name, _)| name)) {
        copies |= name.starts_with(COPY_SOURCE);
        // A lock that is asked for is never ignored.
        if name.starts_with("x-amz-object-lock-") && !LOCK_HEADERS.iter().any(|(known, _)| *known == name) {
            return Err(S3Error::not_implemented(format!(
                "{name} is not implemented: the locks of a version are {MODE}, {RETAIN_UNTIL}, {LEGAL_HOLD}."
            )));
        }
    }
    if copies && !implementation.accepts(Input::CopySource) {
        let value = fields.amz(COPY_SOURCE).unwrap_or_default();
        let message = "You can only specify a copy source header for copy requests.";
        return Err(S3Error::invalid_argument(COPY_SOURCE, value, message));
    }
    if copies && fields.amz(COPY_RANGE).is_some() && !implementation.accepts(Input::CopyRange) {
        let message = format!(
            "{operation} copies whole objects: omit {COPY_RANGE}, or copy a part with UploadPartCopy."
        );
        return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
    }
    if let Some(value) = fields.amz(ENCRYPTION_HEADER)
        && !implementation.accepts(Input::Encryption)
    {
        let message = "x-amz-server-side-encryption header is not supported for this operation.";
        return Err(S3Error::invalid_argument(ENCRYPTION_HEADER, value, message));
    }
    match fields.amz("x-amz-checksum-type") {
        Some(kind)
            if !implementation.accepts(Input::ChecksumType) && !kind.eq_ignore_ascii_case("FULL_OBJECT") =>
        {
            Err(S3Error::not_implemented(CHECKSUM_TYPE))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{LOCK_HEADERS, check};
    use crate::compatibility::Compatibility::Extended;
    use crate::headers::object_lock::BUCKET_LOCK;
    use crate::operations::Handling;
    use crate::request::fields::Fields;
    use crate::request::query::Query;

    /// Status and code with which the operation of this name refuses the headers or the query.
    fn refusal(operation: &str, headers: &[(&str, &[u8])], query: &str) -> Option<(u16, &'static str)> {
        let row = Extended.operations().iter().find(|row| row.name == operation).expect("a row");
        let Handling::Implemented(implementation) = row.handling else { panic!("{operation}") };
        let query = Query::parse(Some(query)).expect("parses");
        let refused = check(Fields::new(headers, &query), operation, implementation).err();
        refused.map(|error| (error.status(), error.code()))
    }

    #[test]
    fn lock_header_is_refused_where_it_would_be_ignored() {
        for (name, input) in LOCK_HEADERS {
            let headers: &[(&str, &[u8])] = &[(name, b"true")];
            for row in Extended.operations() {
                let Handling::Implemented(implementation) = row.handling else { continue };
                let expected = (!implementation.accepts(input)).then_some((400, "InvalidRequest"));
                assert_eq!(refusal(row.name, headers, ""), expected, "{} {name}", row.name);
            }
        }
        let headers: &[(&str, &[u8])] = &[("x-amz-object-lock-legal-hold", b"ON")];
        for (operation, is_accepted) in [
            ("PutObject", true),
            ("CopyObject", true),
            ("CreateMultipartUpload", true),
            ("GetObject", false),
            ("UploadPart", false),
        ] {
            assert_eq!(refusal(operation, headers, "").is_none(), is_accepted, "{operation}");
        }
        let off: &[(&str, &[u8])] = &[(BUCKET_LOCK, b"false")];
        assert_eq!(refusal("PutObject", off, ""), None);
    }

    #[test]
    fn copy_source_is_accepted_by_copies_only() {
        for name in ["x-amz-copy-source", "x-amz-copy-source-if-match"] {
            let headers: &[(&str, &[u8])] = &[(name, b"/b/k")];
            for operation in ["GetObject", "HeadObject", "DeleteObject", "PutObject"] {
                let refused = refusal(operation, headers, "");
                assert_eq!(refused, Some((400, "InvalidArgument")), "{operation} {name}");
            }
            assert_eq!(refusal("CopyObject", headers, ""), None);
            assert_eq!(refusal("UploadPartCopy", headers, ""), None);
        }
        let range: &[(&str, &[u8])] = &[("x-amz-copy-source-range", b"bytes=0-1")];
        assert_eq!(refusal("CopyObject", range, ""), Some((400, "InvalidRequest")));
        assert_eq!(refusal("UploadPartCopy", range, ""), None);
        let hoisted = refusal("GetObject", &[], "X-Amz-Copy-Source=b%2Fk");
        assert_eq!(hoisted, Some((400, "InvalidArgument")));
    }

    #[test]
    fn encryption_is_accepted_by_operations_that_make_objects_only() {
        let headers: &[(&str, &[u8])] = &[("x-amz-server-side-encryption", b"AES256")];
        let accepting: Vec<&str> = Extended
            .operations()
            .iter()
            .filter(|row| matches!(row.handling, Handling::Implemented(_)))
            .filter(|row| refusal(row.name, headers, "").is_none())
            .map(|row| row.name)
            .collect();
        let expected =
            ["PostObject", "PutObject", "CopyObject", "CreateMultipartUpload", "CompleteMultipartUpload"];
        assert_eq!(accepting, expected);
        assert_eq!(refusal("UploadPart", headers, ""), Some((400, "InvalidArgument")));
        let hoisted = refusal("GetObject", &[], "X-Amz-Server-Side-Encryption=AES256");
        assert_eq!(hoisted, Some((400, "InvalidArgument")));
    }

    /// The value of `x-amz-checksum-type` was ignored: a client that asked for a COMPOSITE checksum was answered 200
    /// with one of the full object.
    #[test]
    fn checksum_type_that_is_not_computed_is_501() {
        let refused = Some((501, "NotImplemented"));
        for value in ["COMPOSITE", "composite", "x", ""] {
            let headers: &[(&str, &[u8])] = &[("x-amz-checksum-type", value.as_bytes())];
            assert_eq!(refusal("PutObject", headers, ""), refused, "{value}");
            // These operations read the value.
            assert_eq!(refusal("CreateMultipartUpload", headers, ""), None, "{value}");
            assert_eq!(refusal("CompleteMultipartUpload", headers, ""), None, "{value}");
        }
        assert_eq!(refusal("PutObject", &[], "x-amz-checksum-type=COMPOSITE"), refused);
        for value in ["FULL_OBJECT", "full_object"] {
            let headers: &[(&str, &[u8])] = &[("x-amz-checksum-type", value.as_bytes())];
            assert_eq!(refusal("PutObject", headers, ""), None, "{value}");
        }
    }
}
