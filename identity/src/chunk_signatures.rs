//! Signatures of the chunks of an `aws-chunked` body, and of its trailer.
//!
//! Source: "Signature Calculations for the Authorization Header: Transferring Payload in Multiple Chunks" and "Including
//! Trailing Headers" in the Amazon S3 API reference. Each signature covers the one before it. The first covers the signature
//! of the request, so chunks cannot be left out, repeated, reordered or moved to another request.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use std::fmt;
use subtle::ConstantTimeEq;

const CHUNK: &str = "AWS4-HMAC-SHA256-PAYLOAD\n";
const TRAILER: &str = "AWS4-HMAC-SHA256-TRAILER\n";
/// SHA-256 of no bytes, for the headers of a chunk, of which there are none.
const SHA256_OF_EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Verifies the signatures of one body, in the order of its chunks.
#[derive(Clone)]
pub struct ChunkSignatures {
    /// The signing key of the request, with its HMAC state prepared. Zeroed on drop.
    key: Hmac<Sha256>,
    /// The time and the scope of the request, one per line.
    context: Box<str>,
    /// The previous signature in hexadecimal digits.
    previous: [u8; 64],
}

/// A signature of a chunk or trailer that is not the computed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkSignatureMismatch {
    /// The text that the client should have signed.
    pub string_to_sign: String,
    /// The signature as sent.
    pub signature_provided: String,
}

impl ChunkSignatures {
    /// Begins after a request with this verified signature. `date` and `scope` are those of its string to sign.
    pub(crate) fn new(key: Hmac<Sha256>, date: &str, scope: &str, seed: [u8; 64]) -> Self {
        Self { key, context: format!("{date}\n{scope}\n").into(), previous: seed }
    }

    /// Verifies the signature of the next chunk, whose data has this SHA-256.
    ///
    /// # Errors
    /// [`ChunkSignatureMismatch`]. The body must be refused then.
    pub fn verify_chunk(
        &mut self,
        sha256: &[u8; 32],
        signature: &[u8],
    ) -> Result<(), Box<ChunkSignatureMismatch>> {
        let digest = hex_digits(sha256);
        self.verify(CHUNK, &[SHA256_OF_EMPTY.as_bytes(), b"\n", &digest], signature)
    }

    /// Verifies the signature of the trailer. `fields` are its fields except the signature: name in lower case, colon, value
    /// and line feed of each.
    ///
    /// # Errors
    /// [`ChunkSignatureMismatch`]. The body must be refused then.
    pub fn verify_trailer(
        &mut self,
        fields: &[u8],
        signature: &[u8],
    ) -> Result<(), Box<ChunkSignatureMismatch>> {
        let digest = hex_digits(&Sha256::digest(fields).into());
        self.verify(TRAILER, &[&digest], signature)
    }

    fn verify(
        &mut self,
        algorithm: &str,
        digests: &[&[u8]],
        signature: &[u8],
    ) -> Result<(), Box<ChunkSignatureMismatch>> {
        let mut lines: [&[u8]; 7] = [b""; 7];
        lines[..4].copy_from_slice(&[algorithm.as_bytes(), self.context.as_bytes(), &self.previous, b"\n"]);
        lines[4..4 + digests.len()].copy_from_slice(digests);
        let mut mac = self.key.clone();
        lines.iter().for_each(|line| mac.update(line));
        let computed = hex_digits(&mac.finalize().into_bytes().into());
        if !bool::from(computed.ct_eq(signature)) {
            return Err(Box::new(ChunkSignatureMismatch {
                string_to_sign: String::from_utf8_lossy(&lines.concat()).into_owned(),
                signature_provided: String::from_utf8_lossy(signature).into_owned(),
            }));
        }
        self.previous = computed;
        Ok(())
    }
}

impl fmt::Debug for ChunkSignatures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ChunkSignatures").finish_non_exhaustive()
    }
}

/// Returns the hexadecimal digits of a digest.
pub(crate) fn hex_digits(digest: &[u8; 32]) -> [u8; 64] {
    let mut digits = [0; 64];
    hex::encode_to_slice(digest, &mut digits).expect("64 digits hold 32 bytes");
    digits
}

/// The keys are equal if both were made for the same signature.
impl PartialEq for ChunkSignatures {
    fn eq(&self, other: &Self) -> bool {
        self.context == other.context && bool::from(self.previous.ct_eq(&other.previous))
    }
}

impl Eq for ChunkSignatures {}

#[cfg(test)]
mod tests {
    use crate::fuzz::chunk_signatures as after;
    use sha2::{Digest, Sha256};

    /// The examples of both AWS pages: 65536 and 1024 bytes of `a`, and the last chunk.
    const CHUNK_SIGNATURES: [&str; 3] = [
        "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
    ];
    const TRAILED_SIGNATURES: [&str; 3] = [
        "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
        "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
        "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
    ];
    const TRAILER_SIGNATURE: &str = "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435";

    fn digests() -> [[u8; 32]; 3] {
        [65_536, 1024, 0].map(|size| Sha256::digest(vec![b'a'; size]).into())
    }

    #[test]
    fn published_chunks_verify_in_their_order_only() {
        let seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
        let mut signatures = after(seed);
        for (digest, signature) in digests().iter().zip(CHUNK_SIGNATURES) {
            signatures.verify_chunk(digest, signature.as_bytes()).expect("the published signature");
        }
        let mut signatures = after(seed);
        let skipped = signatures.verify_chunk(&digests()[1], CHUNK_SIGNATURES[1].as_bytes());
        assert!(skipped.expect_err("the first chunk is missing").string_to_sign.contains(seed));
        signatures.verify_chunk(&digests()[0], CHUNK_SIGNATURES[0].as_bytes()).expect("the first");
        assert!(signatures.verify_chunk(&digests()[0], CHUNK_SIGNATURES[0].as_bytes()).is_err(), "repeated");
        assert!(
            signatures.verify_chunk(&digests()[2], CHUNK_SIGNATURES[1].as_bytes()).is_err(),
            "other data"
        );
    }

    #[test]
    fn published_trailer_verifies_and_an_altered_one_does_not() {
        let mut signatures = after("106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e");
        for (digest, signature) in digests().iter().zip(TRAILED_SIGNATURES) {
            signatures.verify_chunk(digest, signature.as_bytes()).expect("the published signature");
        }
        let signature = TRAILER_SIGNATURE.as_bytes();
        assert!(signatures.verify_trailer(b"x-amz-checksum-crc32c:sOO8/Q==", signature).is_err());
        assert!(signatures.verify_trailer(b"x-amz-checksum-crc32c:tOO8/Q==\n", signature).is_err());
        assert!(signatures.verify_trailer(b"x-amz-checksum-crc32c:sOO8/Q==\n", b"").is_err());
        signatures.verify_trailer(b"x-amz-checksum-crc32c:sOO8/Q==\n", signature).expect("the published one");
    }

    #[test]
    fn debug_output_never_shows_a_key() {
        assert_eq!(format!("{:?}", after(CHUNK_SIGNATURES[0])), "ChunkSignatures { .. }");
    }
}
