//! Parses `x-amz-content-sha256`, the declared digest of the body.

use super::error::{AuthError, UnsupportedSigning};
use crate::request::PayloadDigest;

const UNSIGNED: &[u8] = b"UNSIGNED-PAYLOAD";
const STREAMING_PREFIX: &[u8] = b"STREAMING-";
const TRAILER_SUFFIX: &[u8] = b"-TRAILER";

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

    pub(super) fn parse(value: &'a [u8]) -> Result<Self, AuthError> {
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
        let payload = Payload::parse(empty).expect("a digest");
        assert!(matches!(payload.digest, PayloadDigest::Sha256([0xe3, 0xb0, ..])));
        assert_eq!(Payload::parse(UNSIGNED).expect("valid").digest, PayloadDigest::Unsigned);
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
            let error = Payload::parse(value.as_bytes()).expect_err(value);
            assert_eq!((error.status(), error.code()), (501, "NotImplemented"));
            assert!(error.message().contains(setting), "{value}");
        }
    }

    #[test]
    fn other_values_are_invalid_arguments() {
        for value in ["", "abc", "unsigned-payload", &"g".repeat(64), &"0".repeat(66)] {
            let error = Payload::parse(value.as_bytes()).expect_err(value);
            assert_eq!((error.status(), error.code()), (400, "InvalidArgument"));
        }
    }
}
