//! Computes digests of a streamed body and compares them.
//!
//! A checksum is computed only if the request declares one or its operation needs one. SHA-256 is computed once even if
//! it is needed twice. The engine computes the MD5, for the entity tag or because the request declares it, in `Content-MD5` or
//! as the checksum.

use crate::body::declared::DeclaredDigests;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::checksum::{self, RunningChecksum};
use cairn_engine::ChecksumAlgorithm;
use sha2::{Digest as _, Sha256};

/// RunningChecksum digests of one body.
pub(crate) struct BodyDigests {
    declared: DeclaredDigests,
    /// The algorithm of the checksum. SHA-256 is computed in `sha256`, MD5 by the engine, the others in `other`.
    algorithm: Option<ChecksumAlgorithm>,
    sha256: Option<Sha256>,
    other: Option<RunningChecksum>,
}

/// A checksum of the body: the verified one of the client, or one that the operation needs.
pub(crate) type CheckedChecksum = Option<(ChecksumAlgorithm, Vec<u8>)>;

impl BodyDigests {
    /// Prepares to compute the digests in `declared`.
    pub(crate) fn new(declared: DeclaredDigests) -> Self {
        Self::computing(declared, None)
    }

    /// Prepares to compute the digests in `declared`, and a checksum of `algorithm` if no other is declared.
    pub(crate) fn computing(declared: DeclaredDigests, algorithm: Option<ChecksumAlgorithm>) -> Self {
        let algorithm = declared.algorithm().or(algorithm);
        let wants_sha256 = declared.payload_sha256.is_some() || algorithm == Some(ChecksumAlgorithm::Sha256);
        let is_elsewhere =
            |algorithm| matches!(algorithm, ChecksumAlgorithm::Sha256 | ChecksumAlgorithm::Md5);
        let other = algorithm.filter(|algorithm| !is_elsewhere(*algorithm));
        Self {
            sha256: wants_sha256.then(Sha256::new),
            other: other.map(RunningChecksum::new),
            algorithm,
            declared,
        }
    }

    /// The algorithm of the checksum that a trailer will declare.
    pub(crate) fn trailing(&self) -> Option<ChecksumAlgorithm> {
        self.declared.trailing
    }

    /// Declares the checksum that the trailer had.
    pub(crate) fn declare_trailing(&mut self, checksum: Vec<u8>) {
        let algorithm = self.declared.trailing.expect("only a declared trailer has a checksum");
        self.declared.checksum = Some((algorithm, checksum));
    }

    /// Returns whether [`Self::check`] needs the MD5.
    pub(crate) fn wants_md5(&self) -> bool {
        self.declared.md5.is_some() || self.algorithm == Some(ChecksumAlgorithm::Md5)
    }

    /// Adds the next bytes of the body.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(bytes);
        }
        if let Some(other) = &mut self.other {
            other.update(bytes);
        }
    }

    /// Compares all digests, and the body's `md5`, with the declared ones.
    ///
    /// # Errors
    /// `XAmzContentSHA256Mismatch` or `BadDigest`.
    ///
    /// # Panics
    /// If the MD5 is needed and was not computed.
    pub(crate) fn check(self, md5: Option<[u8; 16]>) -> S3Result<CheckedChecksum> {
        let sha256: Option<[u8; 32]> = self.sha256.map(|sha256| sha256.finalize().into());
        if let (Some(declared), Some(computed)) = (self.declared.payload_sha256, sha256)
            && declared != computed
        {
            return Err(payload_mismatch(declared, computed));
        }
        if let Some(declared) = self.declared.md5 {
            let computed = md5.expect("a declared MD5 is computed");
            if declared != computed {
                return Err(S3Error::new(ErrorCode::BadDigest)
                    .element("ExpectedDigest", hex::encode(declared))
                    .element("CalculatedDigest", checksum::text(&computed)));
            }
        }
        let computed = match self.algorithm {
            Some(ChecksumAlgorithm::Sha256) => sha256.map(|digest| digest.to_vec()),
            Some(ChecksumAlgorithm::Md5) => {
                Some(md5.expect("a checksum that is an MD5 is computed").to_vec())
            }
            _ => self.other.map(RunningChecksum::finish),
        };
        let computed = self.algorithm.zip(computed);
        if self.declared.checksum.is_some()
            && let Some((algorithm, _)) = &computed
            && computed != self.declared.checksum
        {
            return Err(checksum_mismatch(*algorithm));
        }
        Ok(computed)
    }
}

/// Returns the error for a checksum that differs from the declared one.
pub(crate) fn checksum_mismatch(algorithm: ChecksumAlgorithm) -> S3Error {
    let name = checksum::name(algorithm);
    let message = format!("The {name} you specified did not match the calculated checksum.");
    S3Error::with_message(ErrorCode::BadDigest, message)
}

/// Returns the error for a body whose digest differs from the signed one, with the elements that AWS sends.
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

    /// The digests of `123456789`, the check value of the CRC catalogues. Those of the xxHashes are from awscrt.
    const CHECKS: [(ChecksumAlgorithm, &str); 10] = [
        (ChecksumAlgorithm::Crc32, "cbf43926"),
        (ChecksumAlgorithm::Crc32c, "e3069283"),
        (ChecksumAlgorithm::Crc64Nvme, "ae8b14860a799888"),
        (ChecksumAlgorithm::Sha1, "f7c3bc1d808e04732adf679965ccc34ca7ae3441"),
        (ChecksumAlgorithm::Sha256, "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"),
        (
            ChecksumAlgorithm::Sha512,
            "d9e6762dd1c8eaf6d61b3c6192fc408d4d6d5f1176d0c29169bc24e71c3f274a\
             d27fcd5811b313d681f7e55ec02d73d499c95455b6b5bb503acf574fba8ffe85",
        ),
        (ChecksumAlgorithm::Md5, "25f9e794323b453885f5181f1b624d0b"),
        (ChecksumAlgorithm::XxHash64, "8cb841db40e6ae83"),
        (ChecksumAlgorithm::XxHash3, "72dcb18b67a17dff"),
        (ChecksumAlgorithm::XxHash128, "33119477ede5dcd5e9716427681d5860"),
    ];

    /// The MD5 as the engine computes it, if it is needed.
    fn md5_for(digests: &BodyDigests, body: &[u8]) -> Option<[u8; 16]> {
        digests.wants_md5().then(|| cairn_md5::md5_digest(body))
    }

    fn checked(declared: DeclaredDigests, body: &[&[u8]]) -> Result<super::CheckedChecksum, &'static str> {
        let mut digests = BodyDigests::new(declared);
        for bytes in body {
            digests.update(bytes);
        }
        let md5 = md5_for(&digests, &body.concat());
        digests.check(md5).map_err(|error| error.code())
    }

    #[test]
    fn every_algorithm_accepts_only_its_check_value() {
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
    fn undeclared_checksum_is_computed_on_request() {
        for (algorithm, hex_digest) in CHECKS {
            let mut digests = BodyDigests::computing(DeclaredDigests::default(), Some(algorithm));
            digests.update(b"123456789");
            let md5 = md5_for(&digests, b"123456789");
            let found = digests.check(md5).expect("nothing was declared");
            assert_eq!(found, Some((algorithm, hex::decode(hex_digest).expect("hex"))));
        }
    }

    #[test]
    fn trailing_checksum_is_compared_like_a_declared_one() {
        for (algorithm, hex_digest) in CHECKS {
            let digest = hex::decode(hex_digest).expect("hex");
            let checked = |sent: Vec<u8>| {
                let declared = DeclaredDigests { trailing: Some(algorithm), ..DeclaredDigests::default() };
                let mut digests = BodyDigests::new(declared);
                digests.update(b"123456789");
                digests.declare_trailing(sent);
                let md5 = md5_for(&digests, b"123456789");
                digests.check(md5).map_err(|error| error.code())
            };
            assert_eq!(checked(digest.clone()), Ok(Some((algorithm, digest.clone()))));
            assert_eq!(checked(vec![0; digest.len()]), Err("BadDigest"));
        }
    }

    #[test]
    fn wrong_sha256_and_wrong_md5_have_their_own_codes() {
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
            ..DeclaredDigests::default()
        };
        assert!(checked(declared, &[b"123456789"]).is_ok());
    }
}
