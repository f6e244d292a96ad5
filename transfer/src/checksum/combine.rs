//! Combines the CRCs of parts into the object's, without reading its bytes.

use super::digest::crc_bytes;
use cairn_engine::ChecksumAlgorithm;

/// The CRC of consecutive parts, computed from the CRC and the size of each.
///
/// A CRC is the remainder of its message as a polynomial over GF(2). If a message A precedes a message B of n bytes, A
/// is multiplied by x^(8n), so the CRC of both is crc(A) · x^(8n) + crc(B). The constants that the algorithms add at
/// the beginning and at the end are equal and cancel out. `crc_fast::checksum_combine` does the same with matrices that
/// it computes anew for each part: 10 000 parts would take half a second. Here a part of the same size as the previous
/// one takes one product.
pub(super) struct CombinedCrc {
    algorithm: ChecksumAlgorithm,
    field: Field,
    crc: u64,
    /// The size of the last part, and x^(8 · size).
    last: (u64, u64),
}

impl CombinedCrc {
    /// Starts with the CRC of no bytes; `None` for an algorithm that is not a CRC.
    pub(super) fn new(algorithm: ChecksumAlgorithm) -> Option<Self> {
        // The generators with their bits reversed, from the catalogue of parametrised CRC algorithms.
        let field = match algorithm {
            ChecksumAlgorithm::Crc32 => Field { one: 1 << 31, generator: 0xedb8_8320 },
            ChecksumAlgorithm::Crc32c => Field { one: 1 << 31, generator: 0x82f6_3b78 },
            ChecksumAlgorithm::Crc64Nvme => Field { one: 1 << 63, generator: 0x9a6c_9329_ac4b_c9b5 },
            ChecksumAlgorithm::Sha1
            | ChecksumAlgorithm::Sha256
            | ChecksumAlgorithm::Sha512
            | ChecksumAlgorithm::Md5
            | ChecksumAlgorithm::XxHash64
            | ChecksumAlgorithm::XxHash3
            | ChecksumAlgorithm::XxHash128 => return None,
        };
        let last = (0, field.one);
        Some(Self { algorithm, field, crc: 0, last })
    }

    /// Appends a part of `size` bytes.
    pub(super) fn push(&mut self, digest: &[u8], size: u64) {
        if self.last.0 != size {
            self.last = (size, self.field.weight_of_bytes(size));
        }
        let crc = digest.iter().fold(0, |crc, byte| crc << 8 | u64::from(*byte));
        self.crc = self.field.product(self.last.1, self.crc) ^ crc;
    }

    /// Returns the digest of all parts.
    pub(super) fn finish(&self) -> Vec<u8> {
        crc_bytes(self.algorithm, self.crc)
    }
}

/// Polynomials modulo a generator, with reversed bits: the highest bit is the coefficient of x^0.
#[derive(Clone, Copy)]
struct Field {
    one: u64,
    generator: u64,
}

impl Field {
    fn product(self, a: u64, mut b: u64) -> u64 {
        let (mut bit, mut product) = (self.one, 0);
        while bit != 0 {
            if a & bit != 0 {
                product ^= b;
            }
            // b · x
            b = if b & 1 == 0 { b >> 1 } else { b >> 1 ^ self.generator };
            bit >>= 1;
        }
        product
    }

    /// Computes x^(8 · bytes) by squaring.
    fn weight_of_bytes(self, mut bytes: u64) -> u64 {
        let (mut weight, mut square) = (self.one, self.one >> 8);
        while bytes > 0 {
            if bytes & 1 == 1 {
                weight = self.product(weight, square);
            }
            square = self.product(square, square);
            bytes >>= 1;
        }
        weight
    }
}

#[cfg(test)]
mod tests {
    use super::CombinedCrc;
    use crate::checksum::RunningChecksum;
    use cairn_engine::ChecksumAlgorithm::{self, Crc32, Crc32c, Crc64Nvme};
    use proptest::prelude::*;

    fn digest(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> Vec<u8> {
        let mut running = RunningChecksum::new(algorithm);
        running.update(bytes);
        running.finish()
    }

    proptest! {
        #[test]
        fn combined_crc_equals_crc_of_the_whole(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..8)) {
            for algorithm in [Crc32, Crc32c, Crc64Nvme] {
                let mut combined = CombinedCrc::new(algorithm).expect("a CRC");
                for part in &parts {
                    combined.push(&digest(algorithm, part), part.len() as u64);
                }
                prop_assert_eq!(combined.finish(), digest(algorithm, &parts.concat()));
            }
        }

        #[test]
        fn combination_agrees_with_crc_fast(first: u32, second: u32, size in 0..=5_u64 << 30) {
            for (algorithm, theirs) in [
                (Crc32, crc_fast::CrcAlgorithm::Crc32IsoHdlc),
                (Crc32c, crc_fast::CrcAlgorithm::Crc32Iscsi),
            ] {
                let mut combined = CombinedCrc::new(algorithm).expect("a CRC");
                combined.push(&first.to_be_bytes(), 7);
                combined.push(&second.to_be_bytes(), size);
                let expected = crc_fast::checksum_combine(theirs, first.into(), second.into(), size);
                prop_assert_eq!(combined.finish(), expected.to_be_bytes()[4..].to_vec());
            }
        }
    }

    #[test]
    fn other_digests_are_not_combined() {
        let crcs = [Crc32, Crc32c, Crc64Nvme];
        for algorithm in ChecksumAlgorithm::ALL {
            assert_eq!(CombinedCrc::new(algorithm).is_some(), crcs.contains(&algorithm), "{algorithm:?}");
        }
    }
}
