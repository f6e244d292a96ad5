//! Checksums of objects and parts: names, text forms, computation and combination.
//!
//! Source: "Checking object integrity" (AWS). A checksum covers an object's bytes (`FULL_OBJECT`), or the concatenated
//! checksums of its parts (`COMPOSITE`). The text of a composite ends in `-` and the number of parts.

mod combine;
mod digest;

pub(crate) use combine::CombinedCrc;
pub(crate) use digest::digest_bytes;

use digest::crc_bytes;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_engine::{ChecksumAlgorithm, ChecksumKind};
use crc_fast::CrcAlgorithm;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// The header with a checksum of this algorithm.
pub(crate) const fn header(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Crc32 => "x-amz-checksum-crc32",
        ChecksumAlgorithm::Crc32c => "x-amz-checksum-crc32c",
        ChecksumAlgorithm::Crc64Nvme => "x-amz-checksum-crc64nvme",
        ChecksumAlgorithm::Sha1 => "x-amz-checksum-sha1",
        ChecksumAlgorithm::Sha256 => "x-amz-checksum-sha256",
    }
}

/// The XML element with a checksum of this algorithm.
pub(crate) const fn element(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Crc32 => "ChecksumCRC32",
        ChecksumAlgorithm::Crc32c => "ChecksumCRC32C",
        ChecksumAlgorithm::Crc64Nvme => "ChecksumCRC64NVME",
        ChecksumAlgorithm::Sha1 => "ChecksumSHA1",
        ChecksumAlgorithm::Sha256 => "ChecksumSHA256",
    }
}

/// The algorithm's name in XML and in `x-amz-sdk-checksum-algorithm`.
pub(crate) const fn name(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Crc32 => "CRC32",
        ChecksumAlgorithm::Crc32c => "CRC32C",
        ChecksumAlgorithm::Crc64Nvme => "CRC64NVME",
        ChecksumAlgorithm::Sha1 => "SHA1",
        ChecksumAlgorithm::Sha256 => "SHA256",
    }
}

/// Parses the name of an algorithm, ignoring case.
pub(crate) fn of_name(text: &str) -> Option<ChecksumAlgorithm> {
    ChecksumAlgorithm::ALL.into_iter().find(|algorithm| name(*algorithm).eq_ignore_ascii_case(text))
}

/// The kind's name in headers and XML.
pub(crate) const fn kind_name(kind: ChecksumKind) -> &'static str {
    match kind {
        ChecksumKind::FullObject => "FULL_OBJECT",
        ChecksumKind::Composite => "COMPOSITE",
    }
}

/// Parses the name of a kind, ignoring case.
pub(crate) fn of_kind_name(text: &str) -> Option<ChecksumKind> {
    let kinds = [ChecksumKind::FullObject, ChecksumKind::Composite];
    kinds.into_iter().find(|kind| kind_name(*kind).eq_ignore_ascii_case(text))
}

/// Decodes a digest; `None` if the text is not base64 of the right length.
pub(crate) fn parse_digest(algorithm: ChecksumAlgorithm, text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok().filter(|digest| digest.len() == digest_bytes(algorithm))
}

/// Formats a digest of bytes.
pub(crate) fn text(digest: &[u8]) -> String {
    STANDARD.encode(digest)
}

/// Formats an object's checksum. `parts` is the number of its parts.
pub(crate) fn object_text(digest: &[u8], kind: ChecksumKind, parts: u32) -> String {
    match kind {
        ChecksumKind::FullObject => text(digest),
        ChecksumKind::Composite => format!("{}-{parts}", text(digest)),
    }
}

/// A checksum that is being computed.
pub(crate) enum RunningChecksum {
    /// One of the CRCs.
    Crc(ChecksumAlgorithm, crc_fast::Digest),
    Sha1(Sha1),
    Sha256(Sha256),
}

impl RunningChecksum {
    /// Starts a checksum of no bytes.
    pub(crate) fn new(algorithm: ChecksumAlgorithm) -> Self {
        let crc = match algorithm {
            ChecksumAlgorithm::Crc32 => CrcAlgorithm::Crc32IsoHdlc,
            ChecksumAlgorithm::Crc32c => CrcAlgorithm::Crc32Iscsi,
            ChecksumAlgorithm::Crc64Nvme => CrcAlgorithm::Crc64Nvme,
            ChecksumAlgorithm::Sha1 => return Self::Sha1(Sha1::new()),
            ChecksumAlgorithm::Sha256 => return Self::Sha256(Sha256::new()),
        };
        Self::Crc(algorithm, crc_fast::Digest::new(crc))
    }

    /// Adds the next bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc(_, crc) => crc.update(bytes),
            Self::Sha1(sha1) => sha1.update(bytes),
            Self::Sha256(sha256) => sha256.update(bytes),
        }
    }

    /// Returns the digest of all bytes.
    pub(crate) fn finish(self) -> Vec<u8> {
        match self {
            Self::Crc(algorithm, crc) => crc_bytes(algorithm, crc.finalize()),
            Self::Sha1(sha1) => sha1.finalize().to_vec(),
            Self::Sha256(sha256) => sha256.finalize().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RunningChecksum, element, header, name, object_text, of_name, parse_digest};
    use cairn_engine::{ChecksumAlgorithm, ChecksumKind};

    #[test]
    fn names_in_headers_and_elements_agree() {
        for algorithm in ChecksumAlgorithm::ALL {
            let name = name(algorithm);
            assert_eq!(header(algorithm), format!("x-amz-checksum-{}", name.to_ascii_lowercase()));
            assert_eq!(element(algorithm), format!("Checksum{name}"));
            assert_eq!(of_name(&name.to_ascii_lowercase()), Some(algorithm));
            assert_eq!(RunningChecksum::new(algorithm).finish().len(), super::digest_bytes(algorithm));
        }
        assert_eq!(of_name("MD5"), None);
    }

    #[test]
    fn text_of_a_composite_ends_with_the_number_of_parts() {
        let digest = [0, 0, 0, 1];
        assert_eq!(object_text(&digest, ChecksumKind::FullObject, 3), "AAAAAQ==");
        assert_eq!(object_text(&digest, ChecksumKind::Composite, 3), "AAAAAQ==-3");
        assert_eq!(parse_digest(ChecksumAlgorithm::Crc32, "AAAAAQ=="), Some(digest.to_vec()));
        assert_eq!(parse_digest(ChecksumAlgorithm::Crc32, "AAAAAQ==-3"), None);
        assert_eq!(parse_digest(ChecksumAlgorithm::Crc64Nvme, "AAAAAQ=="), None);
    }
}
