//! AWS Signature Version 4 as S3 applies it, checked on the server's side.
//!
//! Source of the rules: "Authenticating Requests (AWS Signature Version 4)" in the Amazon S3 API reference.
//! One file per subject; `verify.rs` is where a request passes from top to bottom.

mod canonical;
mod date;
mod error;
mod header;
mod key;
mod payload;
mod percent;
mod presigned;
mod scope;
mod verify;

pub use error::{AuthError, MalformedReason, SignatureMismatch, UnsupportedSigning};
pub use scope::SIGNED_HEADERS_MAX;
pub use verify::Authenticator;

/// The signature of a string to sign in hex, for the fuzz targets: a client makes its own.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn sign(secret_key: &str, date: &str, region: &str, string_to_sign: &[u8]) -> String {
    hex::encode(key::SigningKey::derive(secret_key, date, region).sign(string_to_sign))
}

/// The only algorithm spoken here.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// SigV4A, which clients choose for multi-region access points only.
const ALGORITHM_ASYMMETRIC: &str = "AWS4-ECDSA-P256-SHA256";

/// How far the time of a request may lie from ours, in seconds, either way. AWS: 15 minutes.
pub const REQUEST_TIME_SKEW_SECONDS_MAX: u64 = 15 * 60;

/// The longest lifetime of a presigned URL, in seconds. AWS: 7 days.
pub const PRESIGNED_LIFETIME_SECONDS_MAX: u64 = 7 * 24 * 60 * 60;
