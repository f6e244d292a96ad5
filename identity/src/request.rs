//! What goes into a verification and what comes out of it.

use crate::Principal;
use cairn_model::Timestamp;
use std::sync::Arc;

/// What a signature covers, borrowed from the request as it came.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    /// The method as sent, in upper case.
    pub method: &'a str,
    /// The raw path, percent-encoding and all, without the query.
    pub path: &'a str,
    /// The raw query without its `?`. `Some("")` and `None` sign alike.
    pub query: Option<&'a str>,
    /// Every header in the order sent, repeated ones included: names in lower case, values trimmed.
    pub headers: &'a [(&'a str, &'a [u8])],
}

/// What the signer said about the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadDigest {
    /// `UNSIGNED-PAYLOAD`: the signature does not cover the body.
    Unsigned,
    /// The SHA-256 that the body must have; the caller refuses another with `XAmzContentSHA256Mismatch`.
    Sha256([u8; 32]),
}

/// Where the signature stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureKind {
    /// In the `Authorization` header.
    Header,
    /// In the query of a presigned URL.
    Presigned,
}

/// The proof that a request was signed by a known principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authentication {
    /// Who signed.
    pub principal: Principal,
    /// The access key that was used.
    pub access_key: Arc<str>,
    /// What the body must be.
    pub payload: PayloadDigest,
    /// Header or presigned URL.
    pub kind: SignatureKind,
    /// The time that the signer put into the signature, in whole seconds.
    pub signed_at: Timestamp,
}
