//! The checksum algorithms that each mode implements, and their names in messages.

use crate::compatibility::Compatibility;
use cairn_engine::ChecksumAlgorithm;
use cairn_transfer::checksum::name;

/// The mode that an algorithm needs: those that AWS added in 2026 are implemented in `extended` only.
const fn needs(algorithm: ChecksumAlgorithm) -> Compatibility {
    match algorithm {
        ChecksumAlgorithm::Crc32
        | ChecksumAlgorithm::Crc32c
        | ChecksumAlgorithm::Crc64Nvme
        | ChecksumAlgorithm::Sha1
        | ChecksumAlgorithm::Sha256 => Compatibility::Strict,
        ChecksumAlgorithm::Sha512
        | ChecksumAlgorithm::Md5
        | ChecksumAlgorithm::XxHash64
        | ChecksumAlgorithm::XxHash3
        | ChecksumAlgorithm::XxHash128 => Compatibility::Extended,
    }
}

/// Returns whether a mode implements an algorithm.
pub(crate) fn has(mode: Compatibility, algorithm: ChecksumAlgorithm) -> bool {
    mode == Compatibility::Extended || needs(algorithm) == mode
}

/// Names the algorithms of a mode, as in `A, B or C`.
pub(crate) fn of_mode(mode: Compatibility) -> String {
    listed(|algorithm| has(mode, algorithm))
}

/// Names the algorithms that only the mode `extended` implements.
pub(crate) fn of_extended_only() -> String {
    listed(|algorithm| needs(algorithm) == Compatibility::Extended)
}

fn listed(wanted: impl Fn(ChecksumAlgorithm) -> bool) -> String {
    let names: Vec<_> =
        ChecksumAlgorithm::ALL.into_iter().filter(|algorithm| wanted(*algorithm)).map(name).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::{of_extended_only, of_mode};
    use crate::compatibility::Compatibility;

    #[test]
    fn messages_name_the_algorithms_of_the_mode() {
        assert_eq!(of_mode(Compatibility::Strict), "CRC32, CRC32C, CRC64NVME, SHA1 or SHA256");
        assert_eq!(of_extended_only(), "SHA512, MD5, XXHASH64, XXHASH3 or XXHASH128");
        assert_eq!(
            of_mode(Compatibility::Extended),
            "CRC32, CRC32C, CRC64NVME, SHA1, SHA256, SHA512, MD5, XXHASH64, XXHASH3 or XXHASH128"
        );
    }
}
