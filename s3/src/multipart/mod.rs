//! Shared code of the operations on multipart uploads: upload ids, part numbers, and the completion.
//!
//! `named_parts.rs` reads the parts that the client names. `assembly.rs` compares them with the uploaded ones.

pub(crate) mod assembly;
pub(crate) mod named_parts;

use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::checksum;
use crate::xml::writer::XmlWriter;
use cairn_engine::{Bucket, UploadChecksum};
use cairn_model::{ObjectKey, UploadId};
use std::sync::Arc;

/// Highest part number (AWS: "Multipart upload limits").
pub(crate) const PART_NUMBER_MAX: u16 = 10_000;
/// Smallest part except the last, in bytes: 5 MiB (AWS: "Multipart upload limits").
pub(crate) const PART_BYTES_MIN: u64 = 5 << 20;

/// Returns the bucket, the key and the upload id that a request names.
///
/// # Errors
/// Those of [`Call::object`]; `NoSuchUpload` for an invalid id.
pub(crate) fn named_upload(call: &Call<'_>) -> S3Result<(Arc<Bucket>, ObjectKey, UploadId)> {
    let (bucket, key) = call.object()?;
    let text = call.query.get("uploadId").unwrap_or_default();
    let id = UploadId::parse(text).ok_or_else(|| no_such_upload(text))?;
    Ok((bucket, key, id))
}

/// Refuses a part that is named by its number or its upload alone, as AWS does.
///
/// # Errors
/// Those of [`Call::bucket`]; `InvalidArgument` without an upload, `MethodNotAllowed` without a number.
pub(crate) fn refuse_incomplete_name(call: &Call<'_>) -> S3Result<()> {
    if !call.query.has("uploadId") {
        let message = "This operation does not accept partNumber without uploadId";
        return Err(S3Error::invalid_argument("partNumber", "partNumber", message));
    }
    call.bucket()?;
    if !call.query.has("partNumber") {
        return Err(S3Error::new(ErrorCode::MethodNotAllowed)
            .element("Method", call.head.method().as_str())
            .element("ResourceType", "UPLOAD")
            .header("allow", "DELETE, GET, POST, OPTIONS"));
    }
    Ok(())
}

/// Returns `NoSuchUpload` with the id, as AWS sends it.
pub(crate) fn no_such_upload(id: &str) -> S3Error {
    S3Error::new(ErrorCode::NoSuchUpload).element("UploadId", id)
}

/// Parses a part number of a query.
///
/// # Errors
/// `InvalidArgument` for anything but a number from 1 to 10 000.
pub(crate) fn parse_part_number(text: &str) -> S3Result<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten();
    number.filter(|number| (1..=PART_NUMBER_MAX).contains(number)).ok_or_else(|| {
        let message = "Part number must be an integer between 1 and 10000, inclusive.";
        S3Error::invalid_argument("partNumber", text, message)
    })
}

/// Refuses a query that names a second subresource in addition to the operation's.
///
/// # Errors
/// `InvalidArgument`.
pub(crate) fn refuse_conflicting_parameter(call: &Call<'_>, own: &str, other: &'static str) -> S3Result<()> {
    match call.query.get(other) {
        None => Ok(()),
        Some(value) => {
            let message = format!("Conflicting query string parameters: {own}, {other}");
            Err(S3Error::invalid_argument(other, value, message))
        }
    }
}

/// Writes the checksum algorithm and type of an upload.
pub(crate) fn write_upload_checksum(xml: &mut XmlWriter, checksum: Option<UploadChecksum>) {
    if let Some(UploadChecksum { algorithm, kind }) = checksum {
        xml.text("ChecksumAlgorithm", checksum::name(algorithm));
        xml.text("ChecksumType", checksum::kind_name(kind));
    }
}

#[cfg(test)]
mod tests {
    use super::parse_part_number;

    #[test]
    fn part_numbers_go_from_one_to_ten_thousand() {
        assert_eq!(parse_part_number("1").ok(), Some(1));
        assert_eq!(parse_part_number("10000").ok(), Some(10_000));
        for bad in ["0", "10001", "-1", "x", "", "+1", "65537", "99999999999999999999"] {
            assert_eq!(parse_part_number(bad).expect_err(bad).code(), "InvalidArgument");
        }
    }
}
