//! Computes a checksum while bytes pass.

use cairn_engine::ChecksumAlgorithm;
use cairn_md5::Md5;
use crc_fast::CrcAlgorithm;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};
use std::hash::Hasher as _;
use twox_hash::{XxHash3_64, XxHash3_128, XxHash64};

use super::digest::crc_bytes;

/// Seed of the xxHashes.
const SEED: u64 = 0;

/// A checksum of bytes that is being computed.
pub struct RunningChecksum(Running);

enum Running {
    /// One of the CRCs.
    Crc(ChecksumAlgorithm, crc_fast::Digest),
    Sha1(Sha1),
    Sha256(Sha256),
    Sha512(Sha512),
    Md5(Md5),
    XxHash64(XxHash64),
    XxHash3(XxHash3_64),
    XxHash128(XxHash3_128),
}

impl RunningChecksum {
    /// Starts a checksum of no bytes.
    #[must_use]
    pub fn new(algorithm: ChecksumAlgorithm) -> Self {
        let crc = match algorithm {
            ChecksumAlgorithm::Crc32 => CrcAlgorithm::Crc32IsoHdlc,
            ChecksumAlgorithm::Crc32c => CrcAlgorithm::Crc32Iscsi,
            ChecksumAlgorithm::Crc64Nvme => CrcAlgorithm::Crc64Nvme,
            ChecksumAlgorithm::Sha1 => return Self(Running::Sha1(Sha1::new())),
            ChecksumAlgorithm::Sha256 => return Self(Running::Sha256(Sha256::new())),
            ChecksumAlgorithm::Sha512 => return Self(Running::Sha512(Sha512::new())),
            ChecksumAlgorithm::Md5 => return Self(Running::Md5(Md5::new())),
            ChecksumAlgorithm::XxHash64 => return Self(Running::XxHash64(XxHash64::with_seed(SEED))),
            ChecksumAlgorithm::XxHash3 => return Self(Running::XxHash3(XxHash3_64::with_seed(SEED))),
            ChecksumAlgorithm::XxHash128 => return Self(Running::XxHash128(XxHash3_128::with_seed(SEED))),
        };
        Self(Running::Crc(algorithm, crc_fast::Digest::new(crc)))
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Running::Crc(_, crc) => crc.update(bytes),
            Running::Sha1(sha1) => sha1.update(bytes),
            Running::Sha256(sha256) => sha256.update(bytes),
            Running::Sha512(sha512) => sha512.update(bytes),
            Running::Md5(md5) => md5.update(bytes),
            Running::XxHash64(hasher) => hasher.write(bytes),
            Running::XxHash3(hasher) => hasher.write(bytes),
            Running::XxHash128(hasher) => hasher.write(bytes),
        }
    }

    /// Returns the digest of all bytes.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        match self.0 {
            Running::Crc(algorithm, crc) => crc_bytes(algorithm, crc.finalize()),
            Running::Sha1(sha1) => sha1.finalize().to_vec(),
            Running::Sha256(sha256) => sha256.finalize().to_vec(),
            Running::Sha512(sha512) => sha512.finalize().to_vec(),
            Running::Md5(md5) => md5.finish().to_vec(),
            Running::XxHash64(hasher) => hasher.finish().to_be_bytes().to_vec(),
            Running::XxHash3(hasher) => hasher.finish().to_be_bytes().to_vec(),
            Running::XxHash128(hasher) => hasher.finish_128().to_be_bytes().to_vec(),
        }
    }
}
