//! Checks the parts of a completion; computes size and checksum.
//!
//! The engine compares numbers and MD5s again when it creates the object, because a part may be replaced in between.

use super::PART_BYTES_MIN;
use super::named_parts::NamedPart;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::checksum::PartsChecksum;
use cairn_engine::{ChecksumAlgorithm, PartInfo, UploadChecksum};

/// The parts that have been added so far.
pub(crate) struct Assembly {
    checksum: Option<(UploadChecksum, PartsChecksum)>,
    size: u64,
    last: Option<PartInfo>,
}

/// An object made of parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Assembled {
    pub(crate) size: u64,
    /// Its kind is that of the upload.
    pub(crate) checksum: Option<(ChecksumAlgorithm, Vec<u8>)>,
}

impl Assembly {
    /// Starts without parts, for an upload with `checksum`.
    ///
    /// # Errors
    /// `InternalError` for a checksum that no upload can have.
    pub(crate) fn new(checksum: Option<UploadChecksum>) -> S3Result<Self> {
        let start = |upload| Some((upload, PartsChecksum::new(upload)?));
        let checksum = match checksum {
            None => None,
            Some(upload) => {
                Some(start(upload).ok_or_else(|| S3Error::internal("a full-object checksum is no CRC"))?)
            }
        };
        Ok(Self { checksum, size: 0, last: None })
    }

    /// Adds the next part.
    ///
    /// # Errors
    /// `InvalidPart` if it is not the named one; `EntityTooSmall` if the previous one, which is therefore not the last,
    /// is too small.
    pub(crate) fn add(&mut self, named: &NamedPart, stored: PartInfo) -> S3Result<()> {
        let checksum = stored.checksum.as_ref();
        // A named checksum must be the one that the part was uploaded with.
        let same = |named: &(ChecksumAlgorithm, Vec<u8>)| checksum == Some(named);
        if named.number != stored.number || named.etag != stored.etag() || !named.checksums.iter().all(same) {
            return Err(named.refusal());
        }
        if let Some(last) = self.last.take().filter(|last| last.size < PART_BYTES_MIN) {
            return Err(S3Error::new(ErrorCode::EntityTooSmall)
                .element("ProposedSize", last.size.to_string())
                .element("MinSizeAllowed", PART_BYTES_MIN.to_string())
                .element("PartNumber", last.number.to_string())
                .element("ETag", last.etag().to_string()));
        }
        if let Some((upload, sum)) = &mut self.checksum {
            let digest = checksum.filter(|(algorithm, _)| *algorithm == upload.algorithm);
            let (_, digest) =
                digest.ok_or_else(|| S3Error::internal("a part lacks the checksum of its upload"))?;
            sum.add(digest, stored.size);
        }
        self.size += stored.size;
        self.last = Some(stored);
        Ok(())
    }

    /// Returns the object of all added parts.
    pub(crate) fn finish(self) -> Assembled {
        let checksum = self.checksum.map(|(upload, sum)| (upload.algorithm, sum.finish()));
        Assembled { size: self.size, checksum }
    }
}

#[cfg(test)]
mod tests {
    use super::{Assembled, Assembly};
    use crate::errors::S3Result;
    use crate::headers::checksum::RunningChecksum;
    use crate::multipart::PART_BYTES_MIN;
    use crate::multipart::named_parts::NamedPart;
    use cairn_engine::{ChecksumAlgorithm, ChecksumKind, PartInfo, UploadChecksum};
    use cairn_model::{Etag, Timestamp};

    const CRC32: ChecksumAlgorithm = ChecksumAlgorithm::Crc32;

    fn digest(bytes: &[u8]) -> Vec<u8> {
        let mut running = RunningChecksum::new(CRC32);
        running.update(bytes);
        running.finish()
    }

    fn stored(number: u16, bytes: &[u8]) -> PartInfo {
        PartInfo {
            number,
            size: bytes.len() as u64,
            md5: cairn_md5::md5_digest(bytes),
            is_opaque: false,
            last_modified: Timestamp(0),
            checksum: Some((CRC32, digest(bytes))),
        }
    }

    fn named(part: &PartInfo) -> NamedPart {
        NamedPart {
            number: part.number,
            etag: part.etag(),
            checksums: part.checksum.iter().cloned().collect(),
        }
    }

    fn assembled(kind: Option<ChecksumKind>, parts: &[PartInfo]) -> S3Result<Assembled> {
        let mut assembly = Assembly::new(kind.map(|kind| UploadChecksum { algorithm: CRC32, kind }))?;
        for part in parts {
            assembly.add(&named(part), part.clone())?;
        }
        Ok(assembly.finish())
    }

    #[test]
    fn size_and_checksum_are_those_of_the_parts() {
        let (first, second) = (vec![1; 5 << 20], vec![2; 100]);
        let parts = [stored(1, &first), stored(7, &second)];
        let size = (first.len() + second.len()) as u64;
        assert_eq!(assembled(None, &parts).expect("ok"), Assembled { size, checksum: None });
        let whole = digest(&[first.clone(), second.clone()].concat());
        let checksum = Some((CRC32, whole));
        assert_eq!(
            assembled(Some(ChecksumKind::FullObject), &parts).expect("ok"),
            Assembled { size, checksum }
        );
        let checksum = Some((CRC32, digest(&[digest(&first), digest(&second)].concat())));
        assert_eq!(
            assembled(Some(ChecksumKind::Composite), &parts).expect("ok"),
            Assembled { size, checksum }
        );
    }

    #[test]
    fn only_the_last_part_may_be_small() {
        let (large, small) = (vec![0; 5 << 20], vec![0; (5 << 20) - 1]);
        assert!(assembled(None, &[stored(1, &large), stored(2, &small)]).is_ok());
        let refused = assembled(None, &[stored(1, &small), stored(2, &large)]).expect_err("too small");
        assert_eq!((refused.status(), refused.code()), (400, "EntityTooSmall"));
        let elements = refused.elements();
        assert_eq!(elements[0], ("ProposedSize", (PART_BYTES_MIN - 1).to_string()));
        assert_eq!(elements[1], ("MinSizeAllowed", "5242880".to_owned()));
        assert_eq!(elements[2], ("PartNumber", "1".to_owned()));
    }

    #[test]
    fn other_tag_or_checksum_is_invalid_part() {
        let part = stored(1, b"x");
        let opaque = NamedPart { etag: Etag::opaque(part.md5), ..named(&part) };
        let other_md5 = NamedPart { etag: Etag::single([0; 16]), ..named(&part) };
        let other_checksum = NamedPart { checksums: vec![(CRC32, vec![0; 4])], ..named(&part) };
        let other_algorithm =
            NamedPart { checksums: vec![(ChecksumAlgorithm::Crc32c, vec![0; 4])], ..named(&part) };
        for named in [opaque, other_md5, other_checksum, other_algorithm] {
            let mut assembly = Assembly::new(None).expect("nothing to compute");
            let refused = assembly.add(&named, part.clone()).expect_err("another part");
            assert_eq!((refused.status(), refused.code()), (400, "InvalidPart"));
        }
    }
}
