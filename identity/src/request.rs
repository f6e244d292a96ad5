//! Input and result of authentication.

use crate::chunk_signatures::ChunkSignatures;
use crate::credential::{Generation, Principal};
use cairn_model::Timestamp;
use std::sync::Arc;

/// The parts of a request that a signature covers, borrowed from the request as received.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    /// The method as sent, in upper case.
    pub method: &'a str,
    /// The raw path, still percent-encoded, without the query.
    pub path: &'a str,
    /// The raw query without its `?`. `Some("")` and `None` have the same signature.
    pub query: Option<&'a str>,
    /// Every header in the order sent, including repeated ones. Names are in lower case, values are trimmed.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The bucket that the host names, in virtual-hosted style. Signature Version 2 has it in the path.
    pub bucket_in_host: Option<&'a str>,
}

/// The fields of a browser form that its signature consists of, as sent. An absent field is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SignedForm<'a> {
    /// `x-amz-algorithm`.
    pub algorithm: Option<&'a str>,
    /// `x-amz-credential`.
    pub credential: Option<&'a str>,
    /// `x-amz-date`.
    pub date: Option<&'a str>,
    /// `x-amz-signature`.
    pub signature: Option<&'a str>,
    /// `policy`, in Base64: what is signed.
    pub policy: Option<&'a str>,
    /// The fields of Signature Version 2.
    pub version_2: SignedFormVersion2<'a>,
    /// Whether the form has `x-amz-security-token`.
    pub has_security_token: bool,
}

/// The fields of a browser form that a signature of Version 2 consists of, in addition to the policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct SignedFormVersion2<'a> {
    /// `AWSAccessKeyId`.
    pub access_key: Option<&'a str>,
    /// `signature`.
    pub signature: Option<&'a str>,
}

impl SignedFormVersion2<'_> {
    /// Returns whether the form has any of the fields.
    #[must_use]
    pub const fn is_present(&self) -> bool {
        self.access_key.is_some() || self.signature.is_some()
    }
}

/// The digest of the body that the signer declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadDigest {
    /// `UNSIGNED-PAYLOAD`: the signature does not cover the body.
    Unsigned,
    /// The SHA-256 that the body must have. The caller refuses any other body with `XAmzContentSHA256Mismatch`.
    Sha256([u8; 32]),
    /// The body has `aws-chunked` framing. The caller decodes it and verifies its signatures and its trailer.
    Chunked(ChunkedBody),
}

/// A kind of `aws-chunked` body.
///
/// Source: `x-amz-content-sha256` in "Authenticating Requests: Using the Authorization Header" (Amazon S3 API reference).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkedBody {
    /// `STREAMING-AWS4-HMAC-SHA256-PAYLOAD`: each chunk is signed.
    Signed,
    /// `STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER`: each chunk is signed, and a signed trailer follows.
    SignedWithTrailer,
    /// `STREAMING-UNSIGNED-PAYLOAD-TRAILER`: no chunk is signed, and a trailer follows.
    UnsignedWithTrailer,
}

impl ChunkedBody {
    /// Parses a value of `x-amz-content-sha256`; `None` for all other values.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        match value {
            b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD" => Some(Self::Signed),
            b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" => Some(Self::SignedWithTrailer),
            b"STREAMING-UNSIGNED-PAYLOAD-TRAILER" => Some(Self::UnsignedWithTrailer),
            _ => None,
        }
    }

    /// Returns whether each chunk is signed.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::Signed | Self::SignedWithTrailer)
    }

    /// Returns whether a trailer may follow the last chunk.
    #[must_use]
    pub const fn has_trailer(self) -> bool {
        matches!(self, Self::SignedWithTrailer | Self::UnsignedWithTrailer)
    }
}

/// The kind of a signature, by the place where it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureKind {
    /// In the `Authorization` header.
    Header,
    /// In the query of a presigned URL.
    Presigned,
    /// In a field of a browser form.
    Form,
    /// Nowhere: anybody may make the request.
    None,
}

/// Proof that a known principal signed a request, or that nobody did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authentication {
    /// The signer.
    pub principal: Principal,
    /// The access key that was used.
    pub access_key: Arc<str>,
    /// The generation of the secret that made the signature.
    pub generation: Generation,
    /// The digest that the body must have.
    pub payload: PayloadDigest,
    /// Verifies the chunks of the body, if they are signed.
    pub chunk_signatures: Option<Box<ChunkSignatures>>,
    /// The kind of the signature.
    pub kind: SignatureKind,
    /// The time in the signature, in whole seconds.
    pub signed_at: Timestamp,
    /// [`Credentials::version`](crate::Credentials::version) before the credential was looked up.
    pub credentials_version: u64,
}

impl Authentication {
    /// Returns the authentication of an unsigned request.
    #[must_use]
    pub fn anonymous(now: Timestamp) -> Self {
        Self {
            principal: Principal::Anonymous,
            access_key: "".into(),
            generation: 0,
            payload: PayloadDigest::Unsigned,
            chunk_signatures: None,
            kind: SignatureKind::None,
            signed_at: now,
            credentials_version: 0,
        }
    }
}
