//! Header fields, with the `x-amz-*` query parameters that replace them.
//!
//! The signer of a presigned URL cannot make the browser send headers, so it moves ("hoists") them into the query.
//! Every `X-Amz-*` parameter therefore counts as the header of that name. Checksums are the exception: SDKs hoist the
//! checksum of a body that does not exist yet, and AWS signs and ignores it.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::request::query::Query;

/// Fields that a request may have only once. With two of them, different readers could understand different requests.
const SINGLE: &[&str] = &[
    "access-control-request-headers",
    "access-control-request-method",
    "authorization",
    "content-length",
    "content-md5",
    "content-type",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "origin",
    "range",
    "x-amz-acl",
    "x-amz-bucket-object-lock-enabled",
    "x-amz-bypass-governance-retention",
    "x-amz-content-sha256",
    "x-amz-copy-source",
    "x-amz-copy-source-if-match",
    "x-amz-copy-source-if-modified-since",
    "x-amz-copy-source-if-none-match",
    "x-amz-copy-source-if-unmodified-since",
    "x-amz-copy-source-range",
    "x-amz-date",
    "x-amz-expected-bucket-owner",
    "x-amz-if-match-last-modified-time",
    "x-amz-if-match-size",
    "x-amz-max-parts",
    "x-amz-metadata-directive",
    "x-amz-mp-object-size",
    "x-amz-object-lock-legal-hold",
    "x-amz-object-lock-mode",
    "x-amz-object-lock-retain-until-date",
    "x-amz-object-ownership",
    "x-amz-part-number-marker",
    "x-amz-sdk-checksum-algorithm",
    "x-amz-server-side-encryption",
    "x-amz-source-expected-bucket-owner",
    "x-amz-storage-class",
    "x-amz-tagging",
    "x-amz-tagging-directive",
];

/// A borrowed view of the header fields, names in lower case, values trimmed, in the order sent.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    headers: &'a [(&'a str, &'a [u8])],
    query: &'a Query<'a>,
}

impl<'a> Fields<'a> {
    /// Creates a view of `headers` and of the hoisted ones in `query`.
    pub(crate) fn new(headers: &'a [(&'a str, &'a [u8])], query: &'a Query<'a>) -> Self {
        Self { headers, query }
    }

    /// The header fields as sent.
    pub(crate) fn headers(&self) -> &'a [(&'a str, &'a [u8])] {
        self.headers
    }

    /// The value of the first field of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.headers.iter().find(|(found, _)| *found == name).map(|(_, value)| *value)
    }

    /// The value of a field as text. A value that is not UTF-8 reads as U+FFFD, which no grammar of S3 accepts: it is
    /// refused and not mistaken for an absent one.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name).map(|value| std::str::from_utf8(value).unwrap_or("\u{fffd}"))
    }

    /// The value of an `x-amz-*` field, from the headers or else from the query.
    pub(crate) fn amz(&self, name: &str) -> Option<&'a str> {
        self.text(name).or_else(|| self.hoisted().find(|(found, _)| *found == name).map(|(_, value)| value))
    }

    /// The `X-Amz-*` query parameters except those of the signature, names in lower case.
    pub(crate) fn hoisted(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.query.hoisted()
    }

    /// Refuses a request that repeats one of the fields that it may have only once.
    ///
    /// # Errors
    /// `InvalidRequest`, which closes the connection.
    pub(crate) fn check_single(&self) -> S3Result<()> {
        for (at, (name, _)) in self.headers.iter().enumerate() {
            let repeatable = !SINGLE.contains(name) && !name.starts_with("x-amz-checksum-");
            if !repeatable && self.headers[..at].iter().any(|(earlier, _)| earlier == name) {
                let message = format!("The request has the header {name} more than once.");
                return Err(S3Error::with_message(ErrorCode::InvalidRequest, message).closing());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Fields;
    use crate::request::query::Query;

    #[test]
    fn headers_override_hoisted_parameters() {
        let query =
            Query::parse(Some("X-Amz-Acl=public-read&x-amz-meta-a=1&acl&X-AMZ-Tagging=t")).expect("ok");
        let headers: &[(&str, &[u8])] = &[("x-amz-tagging", b"header")];
        let fields = Fields::new(headers, &query);
        assert_eq!(fields.amz("x-amz-acl"), Some("public-read"));
        assert_eq!(fields.amz("x-amz-tagging"), Some("header"));
        assert_eq!(fields.amz("acl"), None);
        assert_eq!(fields.hoisted().count(), 3);
    }

    #[test]
    fn repeated_single_field_is_refused() {
        let query = Query::default();
        let twice: &[(&str, &[u8])] = &[("range", b"bytes=0-1"), ("x-a", b""), ("range", b"bytes=0-1")];
        assert_eq!(Fields::new(twice, &query).check_single().expect_err("twice").status(), 400);
        let repeatable: &[(&str, &[u8])] = &[("x-amz-meta-a", b"1"), ("x-amz-meta-a", b"2")];
        assert!(Fields::new(repeatable, &query).check_single().is_ok());
    }
}
