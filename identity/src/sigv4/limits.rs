//! Names and limits of signature verification, with their reasons.

/// Sets of the cache of verified presigned URLs, a power of two. With [`PRESIGNED_WAYS`] entries each, an executor
/// remembers up to 16,384 URLs in less than 2 MiB, which the fixed memory of an executor includes.
pub(super) const PRESIGNED_SETS: usize = 4096;
/// Entries of a set.
pub(super) const PRESIGNED_WAYS: usize = 4;

/// The only supported algorithm.
pub(super) const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// SigV4A, which clients only use for multi-region access points.
pub(super) const ALGORITHM_ASYMMETRIC: &str = "AWS4-ECDSA-P256-SHA256";

/// Greatest difference between the time of a request and the server's time, in seconds. 15 minutes, as on AWS.
pub const REQUEST_TIME_SKEW_SECONDS_MAX: u64 = 15 * 60;

/// Longest lifetime of a presigned URL, in seconds. 7 days, as on AWS.
pub const PRESIGNED_LIFETIME_SECONDS_MAX: u64 = 7 * 24 * 60 * 60;
