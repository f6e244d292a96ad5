//! Errors of `aws-chunked` bodies, with the codes of AWS.

use crate::errors::{ErrorCode, S3Error};
use crate::headers::checksum;
use cairn_engine::ChecksumAlgorithm;
use cairn_identity::ChunkSignatureMismatch;

/// The error of a refused body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ChunkedError {
    /// The framing is malformed.
    Malformed(&'static str),
    /// The content is shorter or longer than `x-amz-decoded-content-length`.
    WrongSize { declared: u64, provided: u64 },
    /// The chunks are too small to be worth their cost.
    SmallChunks { chunk: u64, size: u64 },
    /// The signature of a chunk or of the trailer is wrong.
    Signature(Box<ChunkSignatureMismatch>),
    /// The trailer is not the declared one.
    Trailer(&'static str),
    /// The checksum in the trailer is not one.
    InvalidChecksum(ChecksumAlgorithm),
}

impl From<Box<ChunkSignatureMismatch>> for ChunkedError {
    fn from(mismatch: Box<ChunkSignatureMismatch>) -> Self {
        Self::Signature(mismatch)
    }
}

impl From<ChunkedError> for S3Error {
    fn from(error: ChunkedError) -> Self {
        match error {
            ChunkedError::Malformed(what) => {
                let message = format!("The aws-chunked body is malformed: {what}.");
                Self::with_message(ErrorCode::IncompleteBody, message)
            }
            ChunkedError::WrongSize { declared, provided } => {
                let message =
                    "The body does not have the number of bytes that x-amz-decoded-content-length specifies.";
                Self::with_message(ErrorCode::IncompleteBody, message)
                    .element("NumberBytesExpected", declared.to_string())
                    .element("NumberBytesProvided", provided.to_string())
            }
            ChunkedError::SmallChunks { chunk, size } => Self::new(ErrorCode::InvalidChunkSizeError)
                .element("Chunk", chunk.to_string())
                .element("BadChunkSize", size.to_string()),
            ChunkedError::Signature(mismatch) => Self::new(ErrorCode::SignatureDoesNotMatch)
                .element("StringToSign", mismatch.string_to_sign)
                .element("SignatureProvided", mismatch.signature_provided)
                .denied_as("a signature within the body is wrong"),
            ChunkedError::Trailer(what) => {
                let message = format!(
                    "The request contained trailing data that was not well-formed or did not conform to our published \
                     schema: {what}."
                );
                Self::with_message(ErrorCode::MalformedTrailerError, message)
            }
            ChunkedError::InvalidChecksum(algorithm) => {
                let name = checksum::header(algorithm);
                Self::invalid_request(format!("Value for {name} trailing header is invalid."))
            }
        }
    }
}
