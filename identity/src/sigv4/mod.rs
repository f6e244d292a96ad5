//! Verification of AWS signatures: Version 4, and Version 2 in URLs and forms.
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
mod version_2;

pub use error::{AuthError, MalformedReason, SignatureMismatch, UnsupportedSigning};
pub use limits::{PRESIGNED_LIFETIME_SECONDS_MAX, REQUEST_TIME_SKEW_SECONDS_MAX};
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
