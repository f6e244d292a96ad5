//! Checksums of objects and parts: names, text forms, computation and combination.
//!
//! Source: "Checking object integrity" (AWS). A checksum covers an object's bytes (`FULL_OBJECT`), or the concatenated
//! checksums of its parts (`COMPOSITE`). The text of a composite ends in `-` and the number of parts. A checksum is the Base64
//! of its digest; numbers are big-endian, and the seed of the xxHashes is 0.

mod combine;
mod digest;
mod parts;
mod running;

pub use digest::digest_bytes;
pub use parts::PartsChecksum;
pub use running::RunningChecksum;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_engine::{ChecksumAlgorithm, ChecksumKind};

/// The header with a checksum of this algorithm.
#[must_use]
pub const fn header(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Crc32 => "x-amz-checksum-crc32",
        ChecksumAlgorithm::Crc32c => "x-amz-checksum-crc32c",
        ChecksumAlgorithm::Crc64Nvme => "x-amz-checksum-crc64nvme",
        ChecksumAlgorithm::Sha1 => "x-amz-checksum-sha1",
        ChecksumAlgorithm::Sha256 => "x-amz-checksum-sha256",
        ChecksumAlgorithm::Sha512 => "x-amz-checksum-sha512",
        ChecksumAlgorithm::Md5 => "x-amz-checksum-md5",
        ChecksumAlgorithm::XxHash64 => "x-amz-checksum-xxhash64",
        ChecksumAlgorithm::XxHash3 => "x-amz-checksum-xxhash3",
        ChecksumAlgorithm::XxHash128 => "x-amz-checksum-xxhash128",
    }
}

/// The XML element with a checksum of this algorithm.
#[must_use]
pub const fn element(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Crc32 => "ChecksumCRC32",
        ChecksumAlgorithm::Crc32c => "ChecksumCRC32C",
        ChecksumAlgorithm::Crc64Nvme => "ChecksumCRC64NVME",
        ChecksumAlgorithm::Sha1 => "ChecksumSHA1",
        ChecksumAlgorithm::Sha256 => "ChecksumSHA256",
        ChecksumAlgorithm::Sha512 => "ChecksumSHA512",
        ChecksumAlgorithm::Md5 => "ChecksumMD5",
        ChecksumAlgorithm::XxHash64 => "ChecksumXXHASH64",
        ChecksumAlgorithm::XxHash3 => "ChecksumXXHASH3",
        ChecksumAlgorithm::XxHash128 => "ChecksumXXHASH128",
    }
}

/// The algorithm's name in XML and in `x-amz-sdk-checksum-algorithm`.
#[must_use]
pub const fn name(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Crc32 => "CRC32",
        ChecksumAlgorithm::Crc32c => "CRC32C",
        ChecksumAlgorithm::Crc64Nvme => "CRC64NVME",
        ChecksumAlgorithm::Sha1 => "SHA1",
        ChecksumAlgorithm::Sha256 => "SHA256",
        ChecksumAlgorithm::Sha512 => "SHA512",
        ChecksumAlgorithm::Md5 => "MD5",
        ChecksumAlgorithm::XxHash64 => "XXHASH64",
        ChecksumAlgorithm::XxHash3 => "XXHASH3",
        ChecksumAlgorithm::XxHash128 => "XXHASH128",
    }
}

/// Parses the name of an algorithm, ignoring case.
#[must_use]
pub fn of_name(text: &str) -> Option<ChecksumAlgorithm> {
    ChecksumAlgorithm::ALL.into_iter().find(|algorithm| name(*algorithm).eq_ignore_ascii_case(text))
}

/// The kind's name in headers and XML.
#[must_use]
pub const fn kind_name(kind: ChecksumKind) -> &'static str {
    match kind {
        ChecksumKind::FullObject => "FULL_OBJECT",
        ChecksumKind::Composite => "COMPOSITE",
    }
}

/// Parses the name of a kind, ignoring case.
#[must_use]
pub fn of_kind_name(text: &str) -> Option<ChecksumKind> {
    let kinds = [ChecksumKind::FullObject, ChecksumKind::Composite];
    kinds.into_iter().find(|kind| kind_name(*kind).eq_ignore_ascii_case(text))
}

/// The kinds of a checksum that an object in parts may have. The first one is that of uploads that name none.
#[must_use]
pub const fn kinds_in_parts(algorithm: ChecksumAlgorithm) -> &'static [ChecksumKind] {
    match algorithm {
        ChecksumAlgorithm::Crc32 | ChecksumAlgorithm::Crc32c => {
            &[ChecksumKind::Composite, ChecksumKind::FullObject]
        }
        ChecksumAlgorithm::Crc64Nvme => &[ChecksumKind::FullObject],
        ChecksumAlgorithm::Sha1
        | ChecksumAlgorithm::Sha256
        | ChecksumAlgorithm::Sha512
        | ChecksumAlgorithm::Md5
        | ChecksumAlgorithm::XxHash64
        | ChecksumAlgorithm::XxHash3
        | ChecksumAlgorithm::XxHash128 => &[ChecksumKind::Composite],
    }
}

/// Decodes a digest; `None` if the text is not base64 of the right length.
#[must_use]
pub fn parse_digest(algorithm: ChecksumAlgorithm, text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok().filter(|digest| digest.len() == digest_bytes(algorithm))
}

/// Formats a digest of bytes.
#[must_use]
pub fn text(digest: &[u8]) -> String {
    STANDARD.encode(digest)
}

/// Formats an object's checksum. `parts` is the number of its parts.
#[must_use]
pub fn object_text(digest: &[u8], kind: ChecksumKind, parts: u32) -> String {
    match kind {
        ChecksumKind::FullObject => text(digest),
        ChecksumKind::Composite => format!("{}-{parts}", text(digest)),
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
        assert_eq!(of_name("MD4"), None);
    }

    fn digest_in_pieces(algorithm: ChecksumAlgorithm, bytes: &[u8], piece: usize) -> String {
        let mut running = RunningChecksum::new(algorithm);
        bytes.chunks(piece).for_each(|bytes| running.update(bytes));
        hex::encode(running.finish())
    }

    /// The expected values are those of awscrt, with which SDKs of AWS compute them. The lengths are those at which the
    /// hashes change their way, and the bytes come in pieces of several sizes.
    #[test]
    fn xxhashes_are_those_of_the_sdks() {
        for (length, xxhash64, xxhash3, xxhash128) in [
            (0, "ef46db3751d8e999", "2d06800538d394c2", "99aa06d3014798d86001c324468d497f"),
            (3, "56e6957632a487f9", "15f7093b173d005c", "46f66cb93538156515f7093b173d005c"),
            (8, "3da5c7aa269683e0", "dec6a9a43575982e", "803c675a846cc6c256bb836ceb6d4baa"),
            (16, "a19ad429b02bc413", "7e484c18d74895d0", "650fe308c566747df853dd94614dfa07"),
            (17, "fe9f0feb7eeedc09", "208bde5ee2bed407", "18217300b5132d5a78c349fe81b2f26c"),
            (128, "725a5b9b3bedfe94", "f92b70eaa21a6288", "b4f87b99d2db8a511e04fad9f0cacb4d"),
            (129, "28fc8362643627d7", "f8f76713f2bb60fa", "6881633650cd8924c51bc887976aef63"),
            (240, "d430520ae3ed2fc6", "ccc7375172c41f03", "de57aab31e77a2ff93e173833f75ab66"),
            (241, "d3f50496d5bf27e0", "0b3b630948ce4a00", "92b991a7192f3f080b3b630948ce4a00"),
            (1_024, "149aa44972cdae00", "23bc880ebf0d29c6", "4c17271c906df79223bc880ebf0d29c6"),
            (1_025, "2c9d0b038b4a4b35", "c09fdfbc398c7d82", "70a4eb1b9691d77fc09fdfbc398c7d82"),
            (100_000, "3ac9cbc5a9b7f843", "ccf90df7e7e37036", "8ce7a24d31cd94b1ccf90df7e7e37036"),
        ] {
            let mut next = 7_u8;
            let bytes: Vec<u8> = std::iter::repeat_with(|| {
                let byte = next;
                next = next.wrapping_add(31);
                byte
            })
            .take(length)
            .collect();
            for piece in [1, 63, 300, 65_536] {
                for (algorithm, expected) in [
                    (ChecksumAlgorithm::XxHash64, xxhash64),
                    (ChecksumAlgorithm::XxHash3, xxhash3),
                    (ChecksumAlgorithm::XxHash128, xxhash128),
                ] {
                    assert_eq!(digest_in_pieces(algorithm, &bytes, piece), expected, "{length} {piece}");
                }
            }
        }
    }

    /// FIPS 180-2, appendix C.1, and RFC 1321, appendix A.5.
    #[test]
    fn sha512_and_md5_are_those_of_their_standards() {
        for (algorithm, expected) in [
            (
                ChecksumAlgorithm::Sha512,
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                 2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            ),
            (ChecksumAlgorithm::Md5, "900150983cd24fb0d6963f7d28e17f72"),
        ] {
            for piece in [1, 2, 3] {
                assert_eq!(digest_in_pieces(algorithm, b"abc", piece), expected);
            }
        }
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
