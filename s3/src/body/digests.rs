//! Digests of a body as it streams past, and their comparison with what was declared.
//!
//! SHA-1, SHA-256 and the CRCs are computed only when the request declares one, and SHA-256 once even when declared twice.
//! The MD5 is not computed here: the engine has it, for the entity tag.

use crate::body::declared::DeclaredDigests;
use crate::errors::{ErrorCode, S3Error, S3Result};
use cairn_engine::ChecksumAlgorithm;
use crc_fast::CrcAlgorithm;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// Running digests of one body.
pub(crate) struct BodyDigests {
    declared: DeclaredDigests,
    sha256: Option<Sha256>,
    sha1: Option<Sha1>,
    crc: Option<crc_fast::Digest>,
}

/// A checksum that a client declared and that fits, to be kept with the object.
pub(crate) type CheckedChecksum = Option<(ChecksumAlgorithm, Vec<u8>)>;

impl BodyDigests {
    /// Prepares the digests that `declared` asks for.
    pub(crate) fn new(declared: DeclaredDigests) -> Self {
        let algorithm = declared.checksum.as_ref().map(|(algorithm, _)| *algorithm);
        let wants_sha256 = declared.payload_sha256.is_some() || algorithm == Some(ChecksumAlgorithm::Sha256);
        let crc = match algorithm {
            Some(ChecksumAlgorithm::Crc32) => Some(CrcAlgorithm::Crc32IsoHdlc),
            Some(ChecksumAlgorithm::Crc32c) => Some(CrcAlgorithm::Crc32Iscsi),
            Some(ChecksumAlgorithm::Crc64Nvme) => Some(CrcAlgorithm::Crc64Nvme),
            _ => None,
        };
        Self {
            sha256: wants_sha256.then(Sha256::new),
            sha1: (algorithm == Some(ChecksumAlgorithm::Sha1)).then(Sha1::new),
            crc: crc.map(crc_fast::Digest::new),
            declared,
        }
    }

    /// Takes the next bytes of the body.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(bytes);
        }
        if let Some(sha1) = &mut self.sha1 {
            sha1.update(bytes);
        }
        if let Some(crc) = &mut self.crc {
            crc.update(bytes);
        }
    }

    /// Compares all digests, and the body's `md5`, with what was declared.
    ///
    /// # Errors
    /// `XAmzContentSHA256Mismatch` or `BadDigest`.
    pub(crate) fn check(self, md5: [u8; 16]) -> S3Result<CheckedChecksum> {
        let sha256: Option<[u8; 32]> = self.sha256.map(|sha256| sha256.finalize().into());
        if let (Some(declared), Some(computed)) = (self.declared.payload_sha256, sha256)
            && declared != computed
        {
            return Err(payload_mismatch(declared, computed));
        }
        if let Some(declared) = self.declared.md5
            && declared != md5
        {
            return Err(S3Error::new(ErrorCode::BadDigest)
                .element("ExpectedDigest", hex::encode(declared))
                .element("CalculatedDigest", hex::encode(md5)));
        }
        if let Some((algorithm, declared)) = &self.declared.checksum {
            let computed = match algorithm {
                ChecksumAlgorithm::Sha256 => sha256.map(|digest| digest.to_vec()),
                ChecksumAlgorithm::Sha1 => self.sha1.map(|sha1| sha1.finalize().to_vec()),
                ChecksumAlgorithm::Crc64Nvme => self.crc.map(|crc| crc.finalize().to_be_bytes().to_vec()),
                // A 32-bit CRC stands in the low half.
                ChecksumAlgorithm::Crc32 | ChecksumAlgorithm::Crc32c => {
                    self.crc.map(|crc| crc.finalize().to_be_bytes()[4..].to_vec())
                }
            };
            if computed.as_ref() != Some(declared) {
                let name = crate::attributes::checksum_name(*algorithm);
                let message = format!("The {name} you specified did not match the calculated checksum.");
                return Err(S3Error::with_message(ErrorCode::BadDigest, message));
            }
        }
        Ok(self.declared.checksum)
    }
}

/// The error of a body that has not the digest that was signed, with the digests that AWS sends.
pub(crate) fn payload_mismatch(declared: [u8; 32], computed: [u8; 32]) -> S3Error {
    S3Error::new(ErrorCode::XAmzContentSHA256Mismatch)
        .element("ClientComputedContentSHA256", hex::encode(declared))
        .element("S3ComputedContentSHA256", hex::encode(computed))
}

#[cfg(test)]
mod tests {
    use super::BodyDigests;
    use crate::body::declared::DeclaredDigests;
    use cairn_engine::ChecksumAlgorithm;

    /// The digests of `123456789`, the check value of the CRC catalogues.
    const CHECKS: [(ChecksumAlgorithm, &str); 5] = [
        (ChecksumAlgorithm::Crc32, "cbf43926"),
        (ChecksumAlgorithm::Crc32c, "e3069283"),
        (ChecksumAlgorithm::Crc64Nvme, "ae8b14860a799888"),
        (ChecksumAlgorithm::Sha1, "f7c3bc1d808e04732adf679965ccc34ca7ae3441"),
        (ChecksumAlgorithm::Sha256, "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"),
    ];

    fn checked(declared: DeclaredDigests, body: &[&[u8]]) -> Result<super::CheckedChecksum, &'static str> {
        let mut digests = BodyDigests::new(declared);
        for bytes in body {
            digests.update(bytes);
        }
        digests.check(cairn_engine::md5_digest(&body.concat())).map_err(|error| error.code())
    }

    #[test]
    fn every_algorithm_accepts_its_check_value_and_nothing_else() {
        for (algorithm, hex_digest) in CHECKS {
            let digest = hex::decode(hex_digest).expect("hex");
            let declared =
                DeclaredDigests { checksum: Some((algorithm, digest.clone())), ..DeclaredDigests::default() };
            let found = checked(declared.clone(), &[b"1234", b"", b"56789"]).expect("matches");
            assert_eq!(found, Some((algorithm, digest)));
            assert_eq!(checked(declared, &[b"12345678"]), Err("BadDigest"), "{algorithm:?}");
        }
    }

    #[test]
    fn a_wrong_payload_digest_and_a_wrong_md5_have_their_own_codes() {
        let sha256 = DeclaredDigests { payload_sha256: Some([0; 32]), ..DeclaredDigests::default() };
        assert_eq!(checked(sha256, &[b"x"]), Err("XAmzContentSHA256Mismatch"));
        let md5 = DeclaredDigests { md5: Some([0; 16]), ..DeclaredDigests::default() };
        assert_eq!(checked(md5, &[b"x"]), Err("BadDigest"));
    }

    #[test]
    fn one_sha256_serves_payload_and_checksum() {
        let digest = hex::decode(CHECKS[4].1).expect("hex");
        let declared = DeclaredDigests {
            payload_sha256: digest.clone().try_into().ok(),
            checksum: Some((ChecksumAlgorithm::Sha256, digest)),
            md5: None,
        };
        assert!(checked(declared, &[b"123456789"]).is_ok());
    }
}
