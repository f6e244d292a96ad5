//! Limits of signature verification, with their reasons.

/// Sets of the cache of verified presigned URLs, a power of two. With [`PRESIGNED_WAYS`] entries each, an executor
/// remembers up to 16,384 URLs in less than 2 MiB, which the fixed memory of an executor includes.
pub(super) const PRESIGNED_SETS: usize = 4096;
/// Entries of a set.
pub(super) const PRESIGNED_WAYS: usize = 4;
