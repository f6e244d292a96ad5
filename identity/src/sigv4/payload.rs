//! Parses `x-amz-content-sha256`, the declared digest of the body.

use super::error::{AuthError, UnsupportedSigning};
use crate::request::{ChunkedBody, PayloadDigest};

const UNSIGNED: &[u8] = b"UNSIGNED-PAYLOAD";
const STREAMING_PREFIX: &[u8] = b"STREAMING-";
const TRAILER_SUFFIX: &[u8] = b"-TRAILER";

/// The bodies that a request may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AcceptedBodies {
    /// Bodies that are sent as they are.
    Whole,
    /// Also bodies with `aws-chunked` framing.
    WholeOrChunked,
}

/// A parsed value of `x-amz-content-sha256`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payload<'a> {
    /// The last line of the canonical request: the value as sent.
    pub(super) text: &'a [u8],
    pub(super) digest: PayloadDigest,
}

impl<'a> Payload<'a> {
    /// The value for a presigned URL that does not declare a digest.
    pub(super) const UNSIGNED: Payload<'static> = Payload { text: UNSIGNED, digest: PayloadDigest::Unsigned };

    pub(super) fn parse(value: &'a [u8], bodies: AcceptedBodies) -> Result<Self, AuthError> {
        if bodies == AcceptedBodies::WholeOrChunked
            && let Some(chunked) = ChunkedBody::parse(value)
        {
            return Ok(Self { text: value, digest: PayloadDigest::Chunked(chunked) });
        }
        Self::refuse_streaming(value)?;
        if value == UNSIGNED {
            return Ok(Payload::UNSIGNED);
        }
        let mut digest = [0; 32];
        hex::decode_to_slice(value, &mut digest).map_err(|_| AuthError::ContentSha256Invalid {
            value: String::from_utf8_lossy(value).into_owned(),
        })?;
        Ok(Self { text: value, digest: PayloadDigest::Sha256(digest) })
    }

    /// Refuses bodies with `aws-chunked` framing, whose frames would otherwise be stored as content.
    pub(super) fn refuse_streaming(value: &[u8]) -> Result<(), AuthError> {
        if !value.starts_with(STREAMING_PREFIX) {
            return Ok(());
        }
        Err(AuthError::NotImplemented(if value.ends_with(TRAILER_SUFFIX) {
            UnsupportedSigning::StreamingTrailer
        } else {
            UnsupportedSigning::StreamingPayload
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_and_unsigned_payloads_are_parsed() {
        let empty = b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let payload = Payload::parse(empty, AcceptedBodies::Whole).expect("a digest");
        assert!(matches!(payload.digest, PayloadDigest::Sha256([0xe3, 0xb0, ..])));
        let unsigned = Payload::parse(UNSIGNED, AcceptedBodies::WholeOrChunked);
        assert_eq!(unsigned.expect("valid").digest, PayloadDigest::Unsigned);
    }

    #[test]
    fn errors_for_streaming_bodies_name_the_client_setting() {
        let cases = [
            ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "Disable chunked encoding"),
            ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", "when_required"),
            ("STREAMING-UNSIGNED-PAYLOAD-TRAILER", "when_required"),
            ("STREAMING-SOMETHING-NEW", "UNSIGNED-PAYLOAD"),
        ];
        for (value, setting) in cases {
            let error = Payload::parse(value.as_bytes(), AcceptedBodies::Whole).expect_err(value);
            assert_eq!((error.status(), error.code()), (501, "NotImplemented"));
            assert!(error.message().contains(setting), "{value}");
        }
    }

    #[test]
    fn three_kinds_of_chunked_bodies_are_accepted_on_request() {
        let accepted = |value: &str| match Payload::parse(value.as_bytes(), AcceptedBodies::WholeOrChunked) {
            Ok(Payload { digest: PayloadDigest::Chunked(body), .. }) => Some(body),
            _ => None,
        };
        assert_eq!(accepted("STREAMING-AWS4-HMAC-SHA256-PAYLOAD"), Some(ChunkedBody::Signed));
        assert_eq!(
            accepted("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"),
            Some(ChunkedBody::SignedWithTrailer)
        );
        assert_eq!(accepted("STREAMING-UNSIGNED-PAYLOAD-TRAILER"), Some(ChunkedBody::UnsignedWithTrailer));
        for value in ["STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD"] {
            let error = Payload::parse(value.as_bytes(), AcceptedBodies::WholeOrChunked).expect_err(value);
            assert_eq!((error.status(), error.code()), (501, "NotImplemented"));
        }
    }

    #[test]
    fn other_values_are_invalid_arguments() {
        for value in ["", "abc", "unsigned-payload", &"g".repeat(64), &"0".repeat(66)] {
            let error = Payload::parse(value.as_bytes(), AcceptedBodies::Whole).expect_err(value);
            assert_eq!((error.status(), error.code()), (400, "InvalidArgument"));
        }
    }
}
