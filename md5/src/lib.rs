//! MD5 (RFC 1321), one stream or up to sixteen at once.
//!
//! The entity tag of S3 is an MD5. One MD5 stream is a chain of dependent steps: about 0.6 GB/s per core, slower than disk and
//! network. Several streams, one per 32-bit lane of a vector register, take little longer than one: sixteen in AVX-512
//! registers, eight in those of AVX2. Therefore an executor hashes the buffers of its uploads together ([`update_lanes`]). A
//! processor without AVX2 uses scalar code. So does a single stream, unless there is AVX-512VL, which needs fewer instructions.
//!
//! MD5 provides no security here. The protocol requires it as the tag; block checks protect the bytes.

#[macro_use]
mod steps;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512vl;
mod digest;
mod lanes;
mod stream;

pub use digest::md5_digest;
pub use lanes::{digest_together, lanes_max, update_lanes};
pub use steps::MD5_BLOCK_BYTES;
pub use stream::{Lane, Md5};
