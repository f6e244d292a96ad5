//! Refuses headers that ask for features that are not implemented.
//!
//! The answer is 501. In the mode `extended`, `acl.rs` judges the headers of ACLs.
//!
//! The table applies to every operation, even to one that has no use for the header: to ignore the header would leave a
//! client's request unmet. `X-Amz-*` query parameters are checked too, because presigned URLs hoist headers. Checksums
//! among them are signed and not enforced, as on AWS.

use crate::compatibility::Compatibility;
use crate::errors::{S3Error, S3Result};
use crate::request::fields::Fields;
use crate::request::{acl, checksum_modes};
use cairn_engine::ChecksumAlgorithm;
use cairn_http1::BodyFraming;
use cairn_transfer::checksum;

/// The refused values of a header.
#[derive(Clone, Copy)]
enum Refuses {
    /// All, including the empty value.
    Any,
    /// All except the empty value, which counts as absent.
    NonEmpty,
    /// All except this one, ignoring case.
    AllBut(&'static str),
    /// All except these, ignoring case.
    AllButThese(&'static [&'static str]),
    /// These, ignoring case.
    These(&'static [&'static str]),
    /// Lists that contain this token.
    Token(&'static str),
    /// Values that begin with this.
    Start(&'static str),
}

#[derive(Clone, Copy)]
struct Row {
    /// The name in lower case. A trailing `*` matches any rest.
    name: &'static str,
    refuses: Refuses,
    message: &'static str,
}

const fn row(name: &'static str, refuses: Refuses, message: &'static str) -> Row {
    Row { name, refuses, message }
}

const ACL: &str = "ACLs are not implemented: omit x-amz-acl, x-amz-grant-* and x-amz-object-ownership and \
                   grant access with the policies of service accounts.";
const CHUNKED: &str = "aws-chunked bodies and trailing checksums are not implemented: set the client to compute \
                       checksums only when required (AWS_REQUEST_CHECKSUM_CALCULATION=when_required) and to sign the \
                       complete payload or UNSIGNED-PAYLOAD.";
const COPY_PART: &str = "UploadPartCopy is not implemented: copy the whole object with CopyObject, up to 5 GiB, or upload \
                         the part with its content (set the client's threshold of multipart copies to 5 GiB).";
const ENCRYPTION: &str = "Server-side-encryption headers are not implemented: omit them; encryption at rest is \
                          a setting of the whole server.";
const OTHER_KEYS: &str = "Keys of KMS and keys of clients are not implemented: omit aws:kms and x-amz-server-side-encryption-*; \
                          encryption at rest is a setting of the whole server, and AES256 asks for it.";
const LOCK_TOKEN: &str =
    "Object lock cannot be added to an existing bucket: create the bucket with object lock.";
const TOKEN: &str = "Session tokens are not implemented: sign with an access key and its secret only.";

const CHUNKED_ELSEWHERE: &str = "aws-chunked bodies and trailing checksums are implemented for PutObject and UploadPart only, \
                                 with x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD, \
                                 STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER or STREAMING-UNSIGNED-PAYLOAD-TRAILER.";

/// The encoding of the body that a request may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AcceptedBody {
    /// None: the body is the content.
    Plain,
    /// The request has an `aws-chunked` body, and its operation accepts one.
    AwsChunked,
}

/// The headers of `aws-chunked` bodies except `Content-Encoding`, with the message for requests whose operation does not
/// accept one.
const fn chunked_table(message: &'static str) -> [Row; 3] {
    [
        row("x-amz-trailer", Refuses::Any, message),
        row("x-amz-decoded-content-length", Refuses::Any, message),
        row("x-amz-content-sha256", Refuses::Start("streaming-"), message),
    ]
}

static STRICT_CHUNKED_TABLE: [Row; 3] = chunked_table(CHUNKED);
static EXTENDED_CHUNKED_TABLE: [Row; 3] = chunked_table(CHUNKED_ELSEWHERE);

/// Refused in every mode.
static TABLE: &[Row] = &[
    row("trailer", Refuses::Any, CHUNKED),
    row("x-amz-security-token", Refuses::Any, TOKEN),
    row("x-amz-copy-source-server-side-encryption*", Refuses::Any, ENCRYPTION),
    row(
        "x-amz-if-match-initiated-time",
        Refuses::Any,
        "Conditions on aborts are not implemented: omit x-amz-if-match-initiated-time.",
    ),
    row(
        "x-amz-storage-class",
        Refuses::AllBut("STANDARD"),
        "Storage classes other than STANDARD are not implemented: omit x-amz-storage-class.",
    ),
    row(
        "x-amz-website-redirect-location",
        Refuses::Any,
        "Website hosting is not implemented: omit x-amz-website-redirect-location and redirect in a proxy.",
    ),
    row("x-amz-bucket-object-lock-token", Refuses::Any, LOCK_TOKEN),
    row(
        "x-amz-object-annotation-directive",
        Refuses::AllButThese(&["COPY", "EXCLUDE"]),
        "Annotations are not implemented: omit x-amz-object-annotation-directive.",
    ),
    row("x-amz-mfa", Refuses::Any, "MFA delete is not implemented: omit x-amz-mfa."),
    row(
        "x-amz-write-offset-bytes",
        Refuses::Any,
        "Appending is not implemented: put the complete object with PutObject.",
    ),
    row(
        "x-amz-rename-source*",
        Refuses::Any,
        "RenameObject is not implemented: put the object under its new key and delete the old one.",
    ),
    row(
        "x-amz-bucket-namespace",
        Refuses::AllBut("global"),
        "Bucket namespaces are not implemented: omit x-amz-bucket-namespace.",
    ),
];

/// Refused in the mode `strict` only.
static STRICT_TABLE: &[Row] = &[
    row("x-amz-server-side-encryption*", Refuses::Any, ENCRYPTION),
    row(
        "x-amz-tagging",
        Refuses::NonEmpty,
        "Tagging is not implemented: use user metadata (x-amz-meta-*) instead of x-amz-tagging.",
    ),
    row(
        "x-amz-tagging-directive",
        Refuses::AllBut("COPY"),
        "Tagging is not implemented: omit x-amz-tagging-directive.",
    ),
    row("x-amz-acl", Refuses::Any, ACL),
    row("x-amz-grant-*", Refuses::Any, ACL),
    row("x-amz-object-ownership", Refuses::Any, ACL),
    row("x-amz-copy-source-range", Refuses::Any, COPY_PART),
];

/// Refused in the mode `extended` only: values that it does not implement, of headers that `strict` refuses altogether.
static EXTENDED_TABLE: &[Row] = &[
    row("x-amz-server-side-encryption", Refuses::These(&["aws:kms", "aws:kms:dsse", "aws:fsx"]), OTHER_KEYS),
    row("x-amz-server-side-encryption-*", Refuses::Any, OTHER_KEYS),
];

const fn table_of(mode: Compatibility) -> &'static [Row] {
    match mode {
        Compatibility::Strict => STRICT_TABLE,
        Compatibility::Extended => EXTENDED_TABLE,
    }
}

/// The `x-amz-checksum-*` headers that hold no checksum.
const CHECKSUM_SETTINGS: [&str; 3] = ["mode", "algorithm", "type"];
const CHECKSUM_PREFIX: &str = "x-amz-checksum-";
/// The headers that name an algorithm.
const ALGORITHM_HEADERS: [&str; 2] = ["x-amz-sdk-checksum-algorithm", "x-amz-checksum-algorithm"];

/// Refuses headers and hoisted parameters of the table, unknown checksums and chunked bodies.
///
/// # Errors
/// `NotImplemented`, with a message that names an alternative, and those of [`acl::check_headers`].
pub(crate) fn check(
    mode: Compatibility,
    fields: Fields<'_>,
    framing: BodyFraming,
    accepted: AcceptedBody,
) -> S3Result<()> {
    let chunked: &[Row] = match mode {
        Compatibility::Strict => &STRICT_CHUNKED_TABLE,
        Compatibility::Extended => &EXTENDED_CHUNKED_TABLE,
    };
    // A body is described by headers only, so its parameters in a query are refused even where one is accepted.
    let of_query = [chunked, TABLE, table_of(mode)];
    let of_headers = match accepted {
        AcceptedBody::AwsChunked => [&[], TABLE, table_of(mode)],
        AcceptedBody::Plain => of_query,
    };
    for (name, value) in fields.headers() {
        check_checksum(mode, name, value)?;
        check_one(of_headers, name, value)?;
    }
    for (name, value) in fields.hoisted() {
        check_one(of_query, name, value.as_bytes())?;
    }
    if mode == Compatibility::Extended {
        acl::check_headers(fields)?;
    }
    if accepted == AcceptedBody::Plain && fields.headers().iter().any(is_framed) {
        check_framed_encoding(mode, fields)?;
    }
    if framing == BodyFraming::Chunked && accepted == AcceptedBody::Plain {
        return Err(S3Error::not_implemented(
            "Transfer-Encoding: chunked is not implemented for requests: send a Content-Length.",
        )
        .closing());
    }
    Ok(())
}

/// Refuses a checksum of an algorithm that the mode does not implement, and in the mode `strict` a header that names one of
/// those that only `extended` implements.
///
/// # Errors
/// `NotImplemented`.
fn check_checksum(mode: Compatibility, name: &str, value: &[u8]) -> S3Result<()> {
    let is_known = if ALGORITHM_HEADERS.contains(&name) {
        // The operation refuses what is no algorithm at all.
        let named = std::str::from_utf8(value).ok().and_then(checksum::of_name);
        named.is_none_or(|algorithm| checksum_modes::has(mode, algorithm))
    } else if let Some(rest) = name.strip_prefix(CHECKSUM_PREFIX) {
        let known = ChecksumAlgorithm::ALL.into_iter().find(|algorithm| checksum::header(*algorithm) == name);
        CHECKSUM_SETTINGS.contains(&rest)
            || known.is_some_and(|algorithm| checksum_modes::has(mode, algorithm))
    } else {
        true
    };
    if is_known {
        return Ok(());
    }
    let algorithms = checksum_modes::of_mode(mode);
    let message = format!("This checksum algorithm is not implemented: use {algorithms}.");
    Err(S3Error::not_implemented(message))
}

/// Returns whether a header says that the body has `aws-chunked` framing.
fn is_framed((name, value): &(&str, &[u8])) -> bool {
    *name == "content-encoding" && refuses(Refuses::Token("aws-chunked"), value)
}

/// Refuses `Content-Encoding: aws-chunked` of a body without this framing. AWS accepts it, and so does the mode `extended`, if
/// the digest of the body is signed.
///
/// # Errors
/// `NotImplemented` in the mode `strict`, `InvalidRequest` for a body whose digest is not known.
fn check_framed_encoding(mode: Compatibility, fields: Fields<'_>) -> S3Result<()> {
    let digest = fields.get("x-amz-content-sha256");
    let is_known = digest.is_some_and(|text| text.len() == 64 && text.iter().all(u8::is_ascii_hexdigit));
    match mode {
        Compatibility::Strict => Err(S3Error::not_implemented(CHUNKED)),
        Compatibility::Extended if is_known => Ok(()),
        Compatibility::Extended => Err(S3Error::invalid_request(
            "The body of a request with Content-Encoding: aws-chunked is neither framed so nor signed: send \
             x-amz-content-sha256 with STREAMING-AWS4-HMAC-SHA256-PAYLOAD, or with the SHA-256 of the body.",
        )),
    }
}

fn check_one(tables: [&[Row]; 3], name: &str, value: &[u8]) -> S3Result<()> {
    for rows in tables {
        check_rows(rows, name, value)?;
    }
    Ok(())
}

fn check_rows(rows: &[Row], name: &str, value: &[u8]) -> S3Result<()> {
    for row in rows {
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
        Refuses::AllButThese(allowed) => {
            !allowed.iter().any(|allowed| value.eq_ignore_ascii_case(allowed.as_bytes()))
        }
        Refuses::These(refused) => {
            refused.iter().any(|refused| value.eq_ignore_ascii_case(refused.as_bytes()))
        }
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
    use super::{
        AcceptedBody, EXTENDED_CHUNKED_TABLE, EXTENDED_TABLE, STRICT_CHUNKED_TABLE, STRICT_TABLE, TABLE,
        check,
    };
    use crate::compatibility::Compatibility::{self, Extended, Strict};
    use crate::request::checksum_modes;
    use crate::request::fields::Fields;
    use crate::request::query::Query;
    use cairn_engine::ChecksumAlgorithm;
    use cairn_http1::BodyFraming;
    use cairn_transfer::checksum;

    /// An algorithm that is refused by its header alone could still be named in a trailer or document.
    #[test]
    fn headers_of_an_algorithm_are_refused_where_its_name_is() {
        for mode in Compatibility::ALL {
            for algorithm in ChecksumAlgorithm::ALL {
                let (name, header) = (checksum::name(algorithm), checksum::header(algorithm));
                let refused = (!checksum_modes::has(mode, algorithm)).then_some(501);
                assert_eq!(status_in(mode, &[(header, b"AAAA")], ""), refused, "{mode:?} {header}");
                for named in [name.to_owned(), name.to_ascii_lowercase()] {
                    let headers = [("x-amz-sdk-checksum-algorithm", named.as_bytes())];
                    assert_eq!(status_in(mode, &headers, ""), refused, "{mode:?} {named}");
                }
            }
        }
    }

    fn status_in(mode: Compatibility, headers: &[(&str, &[u8])], query: &str) -> Option<u16> {
        let query = Query::parse(Some(query)).expect("parses");
        let checked = check(mode, Fields::new(headers, &query), BodyFraming::None, AcceptedBody::Plain);
        checked.err().map(|error| error.status())
    }

    fn status(headers: &[(&str, &[u8])], query: &str) -> Option<u16> {
        status_in(Strict, headers, query)
    }

    #[test]
    fn unsupported_headers_are_501() {
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
            ("x-amz-checksum-algorithm", "XXHASH128"),
            ("x-amz-sdk-checksum-algorithm", "sha512"),
            ("x-amz-mfa", "1 2"),
            ("x-amz-write-offset-bytes", "0"),
        ] {
            assert_eq!(status(&[(name, value.as_bytes())], ""), Some(501), "{name}: {value}");
        }
    }

    #[test]
    fn extended_mode_accepts_what_only_strict_refuses() {
        let range: &[(&str, &[u8])] = &[("x-amz-copy-source-range", b"bytes=0-1")];
        assert_eq!((status(range, ""), status_in(Extended, range, "")), (Some(501), None));
        for (name, value, answer) in [
            ("x-amz-acl", "private", None),
            ("x-amz-acl", "public-read-write", Some(400)),
            ("x-amz-checksum-sha512", "x", None),
            ("x-amz-checksum-md5", "x", None),
            ("x-amz-checksum-xxhash64", "x", None),
            ("x-amz-checksum-xxhash3", "x", None),
            ("x-amz-checksum-xxhash128", "x", None),
            ("x-amz-checksum-algorithm", "XXHASH3", None),
            ("x-amz-sdk-checksum-algorithm", "MD5", None),
            ("x-amz-checksum-xxhash32", "x", Some(501)),
            // What `headers/encryption.rs` judges.
            ("x-amz-server-side-encryption", "AES256", None),
            ("x-amz-server-side-encryption", "aws:kms", Some(501)),
            ("x-amz-server-side-encryption", "AWS:KMS:DSSE", Some(501)),
            ("x-amz-server-side-encryption-aws-kms-key-id", "k", Some(501)),
            ("x-amz-server-side-encryption-context", "k", Some(501)),
            ("x-amz-server-side-encryption-bucket-key-enabled", "false", Some(501)),
            ("x-amz-server-side-encryption-customer-key", "k", Some(501)),
            ("x-amz-copy-source-server-side-encryption-customer-key", "k", Some(501)),
        ] {
            let headers: &[(&str, &[u8])] = &[(name, value.as_bytes())];
            let answers = (status(headers, ""), status_in(Extended, headers, ""));
            assert_eq!(answers, (Some(501), answer), "{name}: {value}");
        }
        assert_eq!(status_in(Extended, &[], "X-Amz-Acl=private"), None);
        assert_eq!(status_in(Extended, &[], "X-Amz-Acl=public-read-write"), Some(400));
    }

    #[test]
    fn hoisted_headers_are_refused_and_hoisted_checksums_are_not() {
        for query in [
            "X-Amz-Acl=public-read-write",
            "x-amz-tagging=a",
            "X-AMZ-SECURITY-TOKEN=t",
            "X-Amz-Storage-Class=x",
        ] {
            assert_eq!(status(&[], query), Some(501), "{query}");
        }
        for query in
            ["x-amz-checksum-crc32=AAAAAA%3D%3D", "x-amz-sdk-checksum-algorithm=CRC32", "X-Amz-Tagging="]
        {
            assert_eq!(status(&[], query), None, "{query}");
        }
    }

    #[test]
    fn harmless_values_are_accepted() {
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
        let fields = Fields::new(&[], &query);
        let refused = check(Strict, fields, BodyFraming::Chunked, AcceptedBody::Plain).expect_err("chunked");
        assert!(refused.status() == 501 && refused.closes());
    }

    #[test]
    fn headers_of_a_chunked_body_are_refused_where_none_is_accepted() {
        let query = Query::default();
        let headers: &[(&str, &[u8])] = &[
            ("content-encoding", b"gzip,aws-chunked"),
            ("x-amz-trailer", b"x-amz-checksum-crc32"),
            ("x-amz-decoded-content-length", b"3"),
            ("x-amz-content-sha256", b"STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
        ];
        let check = |headers: &[(&str, &[u8])], accepted| {
            let checked = check(Extended, Fields::new(headers, &query), BodyFraming::Chunked, accepted);
            checked.map_err(|error| (error.status(), error.message().to_owned()))
        };
        assert!(check(headers, AcceptedBody::AwsChunked).is_ok());
        assert_eq!(check(&[("trailer", b"x")], AcceptedBody::AwsChunked).expect_err("trailer").0, 501);
        for header in &headers[1..] {
            let (status, message) = check(&[*header], AcceptedBody::Plain).expect_err(header.0);
            assert!(status == 501 && message.contains("PutObject"), "{}", header.0);
        }
    }

    #[test]
    fn encoding_of_a_body_that_is_not_chunked_needs_its_digest() {
        let query = Query::default();
        let digest = [b'a'; 64];
        for (digest, strict, extended) in
            [(&digest[..], Some(501), None), (b"UNSIGNED-PAYLOAD", Some(501), Some(400))]
        {
            let headers: &[(&str, &[u8])] =
                &[("content-encoding", b"gzip, aws-chunked"), ("x-amz-content-sha256", digest)];
            let status = |mode| {
                let fields = Fields::new(headers, &query);
                let length = BodyFraming::Length(1);
                check(mode, fields, length, AcceptedBody::Plain).err().map(|error| error.status())
            };
            assert_eq!((status(Strict), status(Extended)), (strict, extended));
        }
    }

    #[test]
    fn every_refusal_names_an_alternative() {
        let chunked = [STRICT_CHUNKED_TABLE, EXTENDED_CHUNKED_TABLE].concat();
        for row in [TABLE, STRICT_TABLE, EXTENDED_TABLE, &chunked].concat() {
            assert!(row.message.contains(": ") && row.message.ends_with('.'), "{}", row.name);
            assert_eq!(row.name, row.name.to_ascii_lowercase());
        }
    }
}
