//! Server-side verification of AWS Signature Version 4 for S3.
//!
//! Source: "Authenticating Requests (AWS Signature Version 4)" in the Amazon S3 API reference. `verify.rs` has the steps that
//! a request passes, from top to bottom.

#[cfg(any(test, feature = "fuzzing"))]
use crate::chunk_signatures::ChunkSignatures;

mod canonical;
mod claim;
mod date;
mod error;
mod form;
mod header;
mod key;
mod limits;
mod payload;
mod percent;
mod presigned;
mod presigned_cache;
mod scope;
mod verify;

pub use error::{AuthError, MalformedReason, SignatureMismatch, UnsupportedSigning};
pub use scope::SIGNED_HEADERS_MAX;
pub use verify::Authenticator;

/// Signs a string as a client would, in hexadecimal digits. For the fuzz targets only.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn sign(secret_key: &str, date: &str, region: &str, string_to_sign: &[u8]) -> String {
    hex::encode(key::SigningKey::derive(secret_key, date, region).sign(string_to_sign))
}

/// Verifies chunks after an example with this date, scope and signature. For tests and fuzz targets only.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn chunk_signatures(secret_key: &str, date: &str, scope: &str, seed: [u8; 64]) -> ChunkSignatures {
    let region = scope.split('/').nth(1).expect("a scope has a region");
    let key = key::SigningKey::derive(secret_key, &date[..8], region);
    ChunkSignatures::new(key.into_mac(), date, scope, seed)
}

/// The only supported algorithm.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// SigV4A, which clients only use for multi-region access points.
const ALGORITHM_ASYMMETRIC: &str = "AWS4-ECDSA-P256-SHA256";

/// Greatest difference between the time of a request and the server's time, in seconds. 15 minutes, as on AWS.
pub const REQUEST_TIME_SKEW_SECONDS_MAX: u64 = 15 * 60;

/// Longest lifetime of a presigned URL, in seconds. 7 days, as on AWS.
pub const PRESIGNED_LIFETIME_SECONDS_MAX: u64 = 7 * 24 * 60 * 60;
