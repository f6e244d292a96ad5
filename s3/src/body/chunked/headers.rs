//! The headers that describe an `aws-chunked` body: the size of its content, and its trailer.

use super::error::ChunkedError;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::checksum;
use crate::request::fields::Fields;
use cairn_engine::ChecksumAlgorithm;
use cairn_http1::BodyFraming;
use cairn_identity::ChunkedBody;

const DECODED_LENGTH: &str = "x-amz-decoded-content-length";
const TRAILER: &str = "x-amz-trailer";

/// Returns the size of the content in bytes.
///
/// # Errors
/// `MissingContentLength` if the request does not say how long its content or its body is, `IncompleteBody` if the body
/// is too short for the content.
pub(crate) fn decoded_size(fields: Fields<'_>, framing: BodyFraming) -> S3Result<u64> {
    let digits =
        single(fields, DECODED_LENGTH)?.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let Some(size) = digits.and_then(|digits| digits.parse().ok()) else {
        let message = "An aws-chunked body needs the header x-amz-decoded-content-length, the size of the object in \
                       bytes.";
        return Err(S3Error::with_message(ErrorCode::MissingContentLength, message));
    };
    match framing {
        BodyFraming::None => Err(ErrorCode::MissingContentLength.into()),
        BodyFraming::Length(body) if body < size => {
            Err(ChunkedError::WrongSize { declared: size, provided: body }.into())
        }
        BodyFraming::Length(_) | BodyFraming::Chunked => Ok(size),
    }
}

/// Returns the algorithm of the checksum in the trailer, if the request declares one.
///
/// # Errors
/// `InvalidRequest` for a trailer that this kind of body does not have, and for one that is not a checksum.
pub(crate) fn trailing_checksum(
    fields: Fields<'_>,
    body: ChunkedBody,
) -> S3Result<Option<ChecksumAlgorithm>> {
    let Some(name) = single(fields, TRAILER)? else { return Ok(None) };
    if !body.has_trailer() {
        return Err(S3Error::invalid_request(
            "A request with x-amz-trailer needs a value of x-amz-content-sha256 that ends in -TRAILER.",
        ));
    }
    let found = ChecksumAlgorithm::ALL
        .into_iter()
        .find(|algorithm| checksum::header(*algorithm).eq_ignore_ascii_case(name));
    found.map(Some).ok_or_else(|| {
        S3Error::invalid_request(format!(
            "The value specified in the x-amz-trailer header is not supported: name one of {}.",
            ChecksumAlgorithm::ALL.map(checksum::header).join(", ")
        ))
    })
}

/// Returns the value of a header that must not be repeated.
fn single<'a>(fields: Fields<'a>, name: &str) -> S3Result<Option<&'a str>> {
    if fields.headers().iter().filter(|(found, _)| *found == name).count() > 1 {
        return Err(S3Error::invalid_request(format!("The request has the header {name} more than once.")));
    }
    Ok(fields.text(name))
}

#[cfg(test)]
mod tests {
    use super::{decoded_size, trailing_checksum};
    use crate::errors::S3Error;
    use crate::request::fields::Fields;
    use crate::request::query::Query;
    use cairn_engine::ChecksumAlgorithm;
    use cairn_http1::BodyFraming;
    use cairn_identity::ChunkedBody;

    #[test]
    fn size_is_a_number_that_fits_into_the_body() {
        let size = |headers: &[(&str, &[u8])], framing| {
            decoded_size(Fields::new(headers, &Query::default()), framing).map_err(|error| error.code())
        };
        let three: &[(&str, &[u8])] = &[("x-amz-decoded-content-length", b"3")];
        assert_eq!(size(three, BodyFraming::Length(3)), Ok(3));
        assert_eq!(size(three, BodyFraming::Chunked), Ok(3));
        assert_eq!(size(three, BodyFraming::Length(2)), Err("IncompleteBody"));
        assert_eq!(size(three, BodyFraming::None), Err("MissingContentLength"));
        for bad in ["", "abc", "-1", "+1", "1.5", "1,2", "99999999999999999999999"] {
            let headers: &[(&str, &[u8])] = &[("x-amz-decoded-content-length", bad.as_bytes())];
            assert_eq!(size(headers, BodyFraming::Chunked), Err("MissingContentLength"), "{bad}");
        }
        assert_eq!(size(&[], BodyFraming::Length(9)), Err("MissingContentLength"));
        assert_eq!(size(&[three[0], three[0]], BodyFraming::Length(9)), Err("InvalidRequest"));
    }

    #[test]
    fn trailer_is_one_known_checksum() {
        let trailer = |value: &[u8], body| {
            let headers: &[(&str, &[u8])] = &[("x-amz-trailer", value)];
            let found = trailing_checksum(Fields::new(headers, &Query::default()), body);
            found.map_err(|error: S3Error| error.code())
        };
        let kind = ChunkedBody::UnsignedWithTrailer;
        assert_eq!(trailer(b"x-amz-checksum-crc32", kind), Ok(Some(ChecksumAlgorithm::Crc32)));
        assert_eq!(trailer(b"X-Amz-Checksum-CRC64NVME", kind), Ok(Some(ChecksumAlgorithm::Crc64Nvme)));
        assert_eq!(trailer(b"x-amz-checksum-xxhash128", kind), Ok(Some(ChecksumAlgorithm::XxHash128)));
        for bad in ["", "x-amz-checksum-md4", "content-md5", "x-amz-checksum-crc32,x-amz-checksum-sha1"] {
            assert_eq!(trailer(bad.as_bytes(), kind), Err("InvalidRequest"), "{bad}");
        }
        assert_eq!(trailer(b"x-amz-checksum-crc32", ChunkedBody::Signed), Err("InvalidRequest"));
    }
}
