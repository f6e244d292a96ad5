//! Digests as bytes: their lengths, and the form of a CRC.

use cairn_engine::ChecksumAlgorithm;

/// The length of a digest in bytes.
#[must_use]
pub const fn digest_bytes(algorithm: ChecksumAlgorithm) -> usize {
    match algorithm {
        ChecksumAlgorithm::Crc32 | ChecksumAlgorithm::Crc32c => 4,
        ChecksumAlgorithm::Crc64Nvme | ChecksumAlgorithm::XxHash64 | ChecksumAlgorithm::XxHash3 => 8,
        ChecksumAlgorithm::Md5 | ChecksumAlgorithm::XxHash128 => 16,
        ChecksumAlgorithm::Sha1 => 20,
        ChecksumAlgorithm::Sha256 => 32,
        ChecksumAlgorithm::Sha512 => 64,
    }
}

/// Formats a CRC as the bytes of its digest, big-endian. A CRC of 32 bits is in the low half of `crc`.
pub(super) fn crc_bytes(algorithm: ChecksumAlgorithm, crc: u64) -> Vec<u8> {
    let bytes = crc.to_be_bytes();
    bytes[bytes.len() - digest_bytes(algorithm)..].to_vec()
}
