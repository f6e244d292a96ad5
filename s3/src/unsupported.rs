//! Headers that ask for what is not built: refused with 501 before anything is changed, never ignored.
//!
//! The table holds what the specification lists as not implemented and what belongs to S3 features that have no
//! code here. It is applied to every operation: a header that means nothing for one of them is still a wish that
//! would go unmet. `X-Amz-*` query parameters are held against it too, for a presigned URL hoists its headers;
//! checksums among them are signed and not enforced, as on AWS.

use crate::errors::{S3Error, S3Result};
use crate::fields::Fields;
use crate::operations::Handler;
use cairn_http1::BodyFraming;

/// Which values of a header are refused.
#[derive(Clone, Copy)]
enum Refuses {
    /// All, the empty one too.
    Any,
    /// All but the empty one, which counts as absent.
    NonEmpty,
    /// All but this one (without regard to case).
    AllBut(&'static str),
    /// Lists that hold this token.
    Token(&'static str),
    /// Values that begin with this.
    Start(&'static str),
}

struct Row {
    /// The name in lower case; ending in `*` it stands for all names that begin so.
    name: &'static str,
    refuses: Refuses,
    message: &'static str,
}

const fn row(name: &'static str, refuses: Refuses, message: &'static str) -> Row {
    Row { name, refuses, message }
}

const ACL: &str = "ACLs are not implemented: leave x-amz-acl, x-amz-grant-* and x-amz-object-ownership away and \
                   grant access with the policies of service accounts.";
const CHUNKED: &str = "aws-chunked bodies and trailing checksums are not implemented: set the client to compute \
                       checksums only when required (AWS_REQUEST_CHECKSUM_CALCULATION=when_required) and to sign the \
                       payload as a whole or as UNSIGNED-PAYLOAD.";
const COPY_PART: &str = "UploadPartCopy is not implemented: copy the whole object with CopyObject, up to 5 GiB, or upload \
                         the part with its content (set the client's threshold of multipart copies to 5 GiB).";
const ENCRYPTION: &str = "Server-side-encryption headers are not implemented: leave them away; encryption at rest is \
                          a setting of the whole server.";
const LOCK_TOKEN: &str =
    "Object lock cannot be added to a bucket that exists: create the bucket with object lock.";
const TOKEN: &str = "Session tokens are not implemented: sign with an access key and its secret alone.";
const CHECKSUM: &str =
    "This checksum algorithm is not implemented: use CRC32, CRC32C, CRC64NVME, SHA1 or SHA256.";
const CHECKSUM_TYPE: &str = "Checksum types other than FULL_OBJECT are implemented for multipart uploads alone: leave \
                             x-amz-checksum-type away.";

static TABLE: &[Row] = &[
    row("content-encoding", Refuses::Token("aws-chunked"), CHUNKED),
    row("trailer", Refuses::Any, CHUNKED),
    row("x-amz-trailer", Refuses::Any, CHUNKED),
    row("x-amz-decoded-content-length", Refuses::Any, CHUNKED),
    row("x-amz-content-sha256", Refuses::Start("streaming-"), CHUNKED),
    row("x-amz-security-token", Refuses::Any, TOKEN),
    row("x-amz-acl", Refuses::Any, ACL),
    row("x-amz-grant-*", Refuses::Any, ACL),
    row("x-amz-object-ownership", Refuses::Any, ACL),
    row(
        "x-amz-tagging",
        Refuses::NonEmpty,
        "Tagging is not implemented: use user metadata (x-amz-meta-*) instead of x-amz-tagging.",
    ),
    row("x-amz-server-side-encryption*", Refuses::Any, ENCRYPTION),
    row("x-amz-copy-source-server-side-encryption*", Refuses::Any, ENCRYPTION),
    row("x-amz-copy-source-range", Refuses::Any, COPY_PART),
    row(
        "x-amz-tagging-directive",
        Refuses::AllBut("COPY"),
        "Tagging is not implemented: leave x-amz-tagging-directive away.",
    ),
    row(
        "x-amz-if-match-initiated-time",
        Refuses::Any,
        "Conditions on aborts are not implemented: leave x-amz-if-match-initiated-time away.",
    ),
    row(
        "x-amz-storage-class",
        Refuses::AllBut("STANDARD"),
        "Storage classes other than STANDARD are not implemented: leave x-amz-storage-class away.",
    ),
    row(
        "x-amz-website-redirect-location",
        Refuses::Any,
        "Website hosting is not implemented: leave x-amz-website-redirect-location away and redirect in a proxy.",
    ),
    row("x-amz-bucket-object-lock-token", Refuses::Any, LOCK_TOKEN),
    row("x-amz-mfa", Refuses::Any, "MFA delete is not implemented: leave x-amz-mfa away."),
    row(
        "x-amz-write-offset-bytes",
        Refuses::Any,
        "Appending is not implemented: put the whole object with PutObject.",
    ),
    row(
        "x-amz-rename-source*",
        Refuses::Any,
        "RenameObject is not implemented: put the object under its new key and delete the old one.",
    ),
    row(
        "x-amz-bucket-namespace",
        Refuses::AllBut("global"),
        "Bucket namespaces are not implemented: leave x-amz-bucket-namespace away.",
    ),
];

/// The header that makes a PUT a copy, and what the headers beside it begin with.
const COPY_SOURCE: &str = "x-amz-copy-source";

/// The `x-amz-checksum-*` and related names that this server knows.
const CHECKSUM_NAMES: &[&str] =
    &["crc32", "crc32c", "crc64nvme", "sha1", "sha256", "mode", "algorithm", "type"];
const CHECKSUM_PREFIX: &str = "x-amz-checksum-";

/// Refuses what a request asks for and does not get.
///
/// # Errors
/// `NotImplemented`, with a message that says what would work.
pub(crate) fn check(fields: Fields<'_>, framing: BodyFraming) -> S3Result<()> {
    for (name, value) in fields.headers() {
        if let Some(unknown) = name.strip_prefix(CHECKSUM_PREFIX)
            && !CHECKSUM_NAMES.contains(&unknown)
        {
            return Err(S3Error::not_implemented(CHECKSUM));
        }
        check_one(name, value)?;
    }
    for (name, value) in fields.hoisted() {
        check_one(name, value.as_bytes())?;
    }
    if framing == BodyFraming::Chunked {
        return Err(S3Error::not_implemented(
            "Transfer-Encoding: chunked is not implemented for requests: send a Content-Length.",
        )
        .closing());
    }
    Ok(())
}

/// Refuses headers that only some operations have a use for, on the others.
///
/// # Errors
/// `InvalidArgument` for a copy source, as on AWS; `NotImplemented` for a checksum type that the operation has not.
pub(crate) fn check_places(fields: Fields<'_>, handler: Handler) -> S3Result<()> {
    let headers = fields.headers().iter().map(|(name, _)| *name);
    let hoisted = fields.hoisted().map(|(name, _)| name);
    let copies = headers.chain(hoisted).find(|name| name.starts_with(COPY_SOURCE));
    if copies.is_some() && handler != Handler::CopyObject {
        let value = fields.amz(COPY_SOURCE).unwrap_or_default();
        let message = "You can only specify a copy source header for copy requests.";
        return Err(S3Error::invalid_argument(COPY_SOURCE, value, message));
    }
    let has_types = matches!(handler, Handler::CreateMultipartUpload | Handler::CompleteMultipartUpload);
    match fields.amz("x-amz-checksum-type") {
        Some(kind) if !has_types && !kind.eq_ignore_ascii_case("FULL_OBJECT") => {
            Err(S3Error::not_implemented(CHECKSUM_TYPE))
        }
        _ => Ok(()),
    }
}

fn check_one(name: &str, value: &[u8]) -> S3Result<()> {
    for row in TABLE {
        let named = match row.name.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == row.name,
        };
        if named && refuses(row.refuses, value) {
            return Err(S3Error::not_implemented(row.message));
        }
    }
    Ok(())
}

fn refuses(which: Refuses, value: &[u8]) -> bool {
    match which {
        Refuses::Any => true,
        Refuses::NonEmpty => !value.is_empty(),
        Refuses::AllBut(allowed) => !value.eq_ignore_ascii_case(allowed.as_bytes()),
        Refuses::Token(token) => value
            .split(|byte| *byte == b',')
            .any(|item| item.trim_ascii().eq_ignore_ascii_case(token.as_bytes())),
        Refuses::Start(start) => {
            value.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start.as_bytes()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{TABLE, check, check_places};
    use crate::fields::Fields;
    use crate::operations::Handler;
    use crate::query::Query;
    use cairn_http1::BodyFraming;

    fn status(headers: &[(&str, &[u8])], query: &str) -> Option<u16> {
        let query = Query::parse(Some(query)).expect("parses");
        check(Fields::new(headers, &query), BodyFraming::None).err().map(|error| error.status())
    }

    #[test]
    fn headers_that_ask_for_what_is_not_built_are_501() {
        for (name, value) in [
            ("x-amz-tagging", "a=b"),
            ("x-amz-server-side-encryption", "AES256"),
            ("x-amz-server-side-encryption-customer-key", "k"),
            ("x-amz-acl", "private"),
            ("x-amz-acl", ""),
            ("x-amz-grant-read", "id=1"),
            ("x-amz-storage-class", "GLACIER"),
            ("x-amz-website-redirect-location", "/x"),
            ("x-amz-copy-source-server-side-encryption-customer-key", "k"),
            ("x-amz-copy-source-range", "bytes=0-1"),
            ("x-amz-tagging-directive", "REPLACE"),
            ("x-amz-if-match-initiated-time", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("x-amz-trailer", "x-amz-checksum-crc32"),
            ("trailer", "x"),
            ("content-encoding", "gzip, AWS-chunked"),
            ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
            ("x-amz-decoded-content-length", "3"),
            ("x-amz-security-token", "t"),
            ("x-amz-bucket-object-lock-token", "t"),
            ("x-amz-object-ownership", "BucketOwnerEnforced"),
            ("x-amz-checksum-md5", "x"),
            ("x-amz-checksum-sha512", "x"),
            ("x-amz-checksum-xxhash3", "x"),
            ("x-amz-mfa", "1 2"),
            ("x-amz-write-offset-bytes", "0"),
        ] {
            assert_eq!(status(&[(name, value.as_bytes())], ""), Some(501), "{name}: {value}");
        }
    }

    fn placed(handler: Handler, headers: &[(&str, &[u8])], query: &str) -> Option<(u16, &'static str)> {
        let query = Query::parse(Some(query)).expect("parses");
        let refused = check_places(Fields::new(headers, &query), handler).err();
        refused.map(|error| (error.status(), error.code()))
    }

    /// `x-amz-checksum-type` was a known name and its value was never read: a client that asked for a COMPOSITE checksum
    /// was answered 200 with one of the full object.
    #[test]
    fn a_checksum_type_that_is_not_computed_is_501() {
        let refused = Some((501, "NotImplemented"));
        for value in ["COMPOSITE", "composite", "x", ""] {
            let headers: &[(&str, &[u8])] = &[("x-amz-checksum-type", value.as_bytes())];
            assert_eq!(placed(Handler::PutObject, headers, ""), refused, "{value}");
            // There its value is read.
            assert_eq!(placed(Handler::CreateMultipartUpload, headers, ""), None, "{value}");
        }
        assert_eq!(placed(Handler::PutObject, &[], "x-amz-checksum-type=COMPOSITE"), refused);
        for value in ["FULL_OBJECT", "full_object"] {
            let headers: &[(&str, &[u8])] = &[("x-amz-checksum-type", value.as_bytes())];
            assert_eq!(placed(Handler::PutObject, headers, ""), None, "{value}");
        }
    }

    #[test]
    fn a_copy_source_is_for_copies_alone() {
        for name in ["x-amz-copy-source", "x-amz-copy-source-if-match"] {
            let headers: &[(&str, &[u8])] = &[(name, b"/b/k")];
            for handler in
                [Handler::GetObject, Handler::HeadObject, Handler::DeleteObject, Handler::PutObject]
            {
                let refused = placed(handler, headers, "");
                assert_eq!(refused, Some((400, "InvalidArgument")), "{handler:?} {name}");
            }
            assert_eq!(placed(Handler::CopyObject, headers, ""), None);
        }
        let hoisted = placed(Handler::GetObject, &[], "X-Amz-Copy-Source=b%2Fk");
        assert_eq!(hoisted, Some((400, "InvalidArgument")));
    }

    #[test]
    fn hoisted_headers_are_refused_and_hoisted_checksums_are_not() {
        for query in
            ["X-Amz-Acl=public-read", "x-amz-tagging=a", "X-AMZ-SECURITY-TOKEN=t", "X-Amz-Storage-Class=x"]
        {
            assert_eq!(status(&[], query), Some(501), "{query}");
        }
        for query in
            ["x-amz-checksum-crc32=AAAAAA%3D%3D", "x-amz-sdk-checksum-algorithm=CRC32", "X-Amz-Tagging="]
        {
            assert_eq!(status(&[], query), None, "{query}");
        }
    }

    #[test]
    fn what_changes_nothing_is_let_through() {
        for (name, value) in [
            ("x-amz-tagging", ""),
            ("x-amz-storage-class", "STANDARD"),
            ("x-amz-tagging-directive", "COPY"),
            ("content-encoding", "gzip"),
            ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
            ("x-amz-checksum-crc64nvme", "AAAAAAAAAAA="),
            ("x-amz-checksum-mode", "ENABLED"),
            ("x-amz-meta-acl", "x"),
            ("x-amz-request-payer", "requester"),
        ] {
            assert_eq!(status(&[(name, value.as_bytes())], ""), None, "{name}: {value}");
        }
    }

    #[test]
    fn chunked_bodies_are_refused_and_the_connection_closes() {
        let query = Query::default();
        let refused = check(Fields::new(&[], &query), BodyFraming::Chunked).expect_err("chunked");
        assert!(refused.status() == 501 && refused.closes());
    }

    #[test]
    fn every_refusal_says_what_works_instead() {
        for row in TABLE {
            assert!(row.message.contains(": ") && row.message.ends_with('.'), "{}", row.name);
            assert_eq!(row.name, row.name.to_ascii_lowercase());
        }
    }
}
