//! Checks the bodies of requests whose operation does not use one.
//!
//! The signature covers the digest of the body, and the server must compare the two. A request with another body than
//! the signed one is not what its signer asked for, even if the body is not used.

use crate::body::digests::payload_mismatch;
use crate::errors::{ErrorCode, S3Error, S3Result};
use cairn_identity::PayloadDigest;
use cairn_net::{RequestBody, YieldBudget};
use sha2::{Digest as _, Sha256};

/// Longest body that is read only for its digest, in bytes.
const BYTES_MAX: u64 = 1024 * 1024;
/// Size of the read buffer in bytes.
const BUFFER_BYTES: usize = 16 * 1024;
/// SHA-256 of an empty body. Nearly every request without a body declares it, so it is not computed each time.
const SHA256_OF_EMPTY: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27,
    0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// Compares a body with its signed digest and discards it. A body that was not signed is not read.
///
/// # Errors
/// `XAmzContentSHA256Mismatch`; `InvalidRequest` for a signed body that is too long to read only for its digest; errors
/// of the connection.
pub(crate) async fn check_unused_body(payload: PayloadDigest, body: &mut RequestBody<'_>) -> S3Result<()> {
    let PayloadDigest::Sha256(declared) = payload else { return Ok(()) };
    let computed = if body.remaining() == 0 { SHA256_OF_EMPTY } else { digest_of(body).await? };
    if declared == computed { Ok(()) } else { Err(payload_mismatch(declared, computed)) }
}

async fn digest_of(body: &mut RequestBody<'_>) -> S3Result<[u8; 32]> {
    if body.remaining() > BYTES_MAX {
        let message = "This operation takes no body: a signed one may have at most 1 MiB.";
        return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
    }
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut sha256 = Sha256::new();
    let mut yield_budget = YieldBudget::default();
    while body.remaining() > 0 {
        let count = body.read(&mut buffer).await?;
        assert!(count > 0, "a read returns bytes or fails while bytes are missing");
        sha256.update(&buffer[..count]);
        yield_budget.spend(count).await;
    }
    Ok(sha256.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::SHA256_OF_EMPTY;
    use sha2::{Digest as _, Sha256};

    #[test]
    fn digest_of_the_empty_body_is_right() {
        let computed: [u8; 32] = Sha256::digest(b"").into();
        assert_eq!(SHA256_OF_EMPTY, computed);
    }
}
