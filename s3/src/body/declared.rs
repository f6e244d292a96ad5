//! The digests that a request declares for its body: MD5, SHA-256 and a checksum.
//!
//! Source: "Checking object integrity" and the API Reference of PutObject (AWS). Invalid declarations are refused here,
//! before the body is read. `digests.rs` compares the valid ones with the body.

use crate::body::chunked::trailing_checksum;
use crate::compatibility::Compatibility;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::checksum;
use crate::request::checksum_modes;
use crate::request::fields::Fields;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_engine::ChecksumAlgorithm;
use cairn_identity::PayloadDigest;

/// The digests that the client declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeclaredDigests {
    /// `Content-MD5`.
    pub(crate) md5: Option<[u8; 16]>,
    /// `x-amz-content-sha256`, as the signature covers it.
    pub(crate) payload_sha256: Option<[u8; 32]>,
    /// The one `x-amz-checksum-*` header.
    pub(crate) checksum: Option<(ChecksumAlgorithm, Vec<u8>)>,
    /// The algorithm of the checksum that the trailer of an `aws-chunked` body has. Then there is no header.
    pub(crate) trailing: Option<ChecksumAlgorithm>,
}

impl DeclaredDigests {
    /// Returns the algorithm of the checksum, in the header or in the trailer.
    pub(crate) fn algorithm(&self) -> Option<ChecksumAlgorithm> {
        self.checksum.as_ref().map(|(algorithm, _)| *algorithm).or(self.trailing)
    }
}

/// Parses the declared digests.
///
/// # Errors
/// Those of [`of_body`] and [`trailing_checksum`]; `InvalidRequest` for an invalid checksum, for several, and for an
/// algorithm header that disagrees; `NotImplemented` for an unknown algorithm.
pub(crate) fn from_request(fields: Fields<'_>, payload: PayloadDigest) -> S3Result<DeclaredDigests> {
    let trailing = match payload {
        PayloadDigest::Chunked(body) => trailing_checksum(fields, body)?,
        PayloadDigest::Unsigned | PayloadDigest::Sha256(_) => None,
    };
    let checksum = checksum(fields, trailing)?;
    Ok(DeclaredDigests { checksum, trailing, ..of_body(fields, payload)? })
}

/// Parses the declared digests except the checksum, for requests whose checksum is not that of their body.
///
/// # Errors
/// `InvalidDigest` for an invalid `Content-MD5`.
pub(crate) fn of_body(fields: Fields<'_>, payload: PayloadDigest) -> S3Result<DeclaredDigests> {
    let md5 = match fields.get("content-md5") {
        None => None,
        Some(text) => {
            let digest = STANDARD.decode(text).ok().and_then(|digest| digest.try_into().ok());
            Some(digest.ok_or_else(|| {
                S3Error::new(ErrorCode::InvalidDigest).element("Content-MD5", String::from_utf8_lossy(text))
            })?)
        }
    };
    let payload_sha256 = match payload {
        PayloadDigest::Unsigned | PayloadDigest::Chunked(_) => None,
        PayloadDigest::Sha256(digest) => Some(digest),
    };
    Ok(DeclaredDigests { md5, payload_sha256, ..DeclaredDigests::default() })
}

/// Parses the declared checksum. Only headers count: a checksum in a presigned query is signed and not enforced, as on
/// AWS. `trailing` is the algorithm of the trailer's.
fn checksum(
    fields: Fields<'_>,
    trailing: Option<ChecksumAlgorithm>,
) -> S3Result<Option<(ChecksumAlgorithm, Vec<u8>)>> {
    let mut found = None;
    for algorithm in ChecksumAlgorithm::ALL {
        let name = checksum::header(algorithm);
        let Some(text) = fields.get(name) else { continue };
        if found.is_some() || trailing.is_some() {
            return Err(S3Error::invalid_request(
                "Expecting a single x-amz-checksum- header. Multiple checksum types are not allowed.",
            ));
        }
        let digest = checksum::parse_digest(algorithm, text);
        let digest =
            digest.ok_or_else(|| S3Error::invalid_request(format!("Value for {name} header is invalid.")))?;
        found = Some((algorithm, digest));
    }
    for name in ["x-amz-sdk-checksum-algorithm", "x-amz-checksum-algorithm"] {
        let Some(named) = fields.text(name).filter(|named| !named.is_empty()) else { continue };
        let known = named_algorithm(name, named)?;
        match found.as_ref().map(|(declared, _)| *declared).or(trailing) {
            Some(declared) if known == declared => {}
            Some(_) => {
                return Err(S3Error::invalid_request(format!(
                    "{name} and the x-amz-checksum- header name different algorithms."
                )));
            }
            None => {
                return Err(S3Error::invalid_request(format!(
                    "{name} specified, but no corresponding x-amz-checksum-* header was found."
                )));
            }
        }
    }
    Ok(found)
}

/// Parses the algorithm in the header `name`. `request/unsupported_headers.rs` has refused those that the mode does not
/// implement.
///
/// # Errors
/// `NotImplemented` for an unknown one.
pub(crate) fn named_algorithm(name: &str, named: &str) -> S3Result<ChecksumAlgorithm> {
    checksum::of_name(named).ok_or_else(|| {
        S3Error::not_implemented(format!(
            "The checksum algorithm in {name} is not implemented: use {}; in the mode extended, also {}.",
            checksum_modes::of_mode(Compatibility::Strict),
            checksum_modes::of_extended_only()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::{DeclaredDigests, from_request};
    use crate::errors::S3Result;
    use crate::request::fields::Fields;
    use crate::request::query::Query;
    use cairn_engine::ChecksumAlgorithm;
    use cairn_identity::{ChunkedBody, PayloadDigest};

    fn declared(headers: &[(&str, &[u8])]) -> S3Result<DeclaredDigests> {
        from_request(Fields::new(headers, &Query::default()), PayloadDigest::Unsigned)
    }

    #[test]
    fn content_md5_is_base64_of_sixteen_bytes() {
        let md5 = declared(&[("content-md5", b"1B2M2Y8AsgTpgAmY7PhCfg==")]).expect("ok").md5.expect("there");
        assert_eq!((md5[0], md5[15]), (0xd4, 0x7e));
        for bad in [
            &b""[..],
            b"1B2M2Y8AsgTpgAmY7PhCfg",
            b"AAAA",
            b"YWJyYWNhZGFicmE=",
            b"d41d8cd98f00b204e9800998ecf8427e",
        ] {
            assert_eq!(declared(&[("content-md5", bad)]).expect_err("bad").code(), "InvalidDigest");
        }
    }

    #[test]
    fn invalid_checksums_are_refused() {
        let taken =
            declared(&[("x-amz-checksum-crc32", b"AAAAAQ=="), ("x-amz-sdk-checksum-algorithm", b"crc32")]);
        assert_eq!(taken.expect("ok").checksum, Some((ChecksumAlgorithm::Crc32, vec![0, 0, 0, 1])));
        for bad in [
            &[("x-amz-checksum-crc32", &b"AAAAAAAAAAE="[..])][..],
            &[("x-amz-checksum-sha1", b"AAAAAQ==")],
            &[("x-amz-checksum-crc32c", b"")],
            &[("x-amz-checksum-crc32", b"AAAAAQ=="), ("x-amz-checksum-crc32c", b"AAAAAQ==")],
            &[("x-amz-checksum-crc32", b"AAAAAQ=="), ("x-amz-sdk-checksum-algorithm", b"SHA256")],
            &[("x-amz-sdk-checksum-algorithm", b"CRC32")],
        ] {
            let refused = declared(bad).expect_err("bad");
            assert_eq!((refused.status(), refused.code()), (400, "InvalidRequest"), "{bad:?}");
        }
        assert_eq!(declared(&[("x-amz-sdk-checksum-algorithm", b"MD4")]).expect_err("unknown").status(), 501);
    }

    #[test]
    fn trailer_takes_the_place_of_the_header() {
        let trailed = |headers: &[(&str, &[u8])]| {
            let headers = [headers, &[("x-amz-trailer", b"x-amz-checksum-crc32")]].concat();
            let payload = PayloadDigest::Chunked(ChunkedBody::UnsignedWithTrailer);
            from_request(Fields::new(&headers, &Query::default()), payload).map_err(|error| error.code())
        };
        let declared = trailed(&[("x-amz-sdk-checksum-algorithm", b"CRC32")]).expect("they agree");
        assert_eq!(
            (declared.checksum.as_ref(), declared.algorithm()),
            (None, Some(ChecksumAlgorithm::Crc32))
        );
        assert_eq!(trailed(&[("x-amz-sdk-checksum-algorithm", b"SHA1")]), Err("InvalidRequest"));
        assert_eq!(trailed(&[("x-amz-checksum-crc32", b"AAAAAQ==")]), Err("InvalidRequest"));
    }

    #[test]
    fn hoisted_checksums_are_not_enforced() {
        let query =
            Query::parse(Some("x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32"));
        let query = query.expect("parses");
        let declared = from_request(Fields::new(&[], &query), PayloadDigest::Sha256([7; 32])).expect("ok");
        assert_eq!(declared, DeclaredDigests { payload_sha256: Some([7; 32]), ..DeclaredDigests::default() });
    }
}
