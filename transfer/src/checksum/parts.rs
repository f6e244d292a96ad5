//! The checksum of an object that is made of parts.

use cairn_engine::{ChecksumKind, UploadChecksum};

use super::combine::CombinedCrc;
use super::running::RunningChecksum;

/// The checksum of an object while it is computed from those of its parts.
pub struct PartsChecksum(Sum);

enum Sum {
    Composite(Box<RunningChecksum>),
    FullObject(CombinedCrc),
}

impl PartsChecksum {
    /// Starts without parts. `None` for a checksum that no upload can have: of the whole object, by another algorithm than a
    /// CRC.
    #[must_use]
    pub fn new(upload: UploadChecksum) -> Option<Self> {
        Some(Self(match upload.kind {
            ChecksumKind::Composite => Sum::Composite(Box::new(RunningChecksum::new(upload.algorithm))),
            ChecksumKind::FullObject => Sum::FullObject(CombinedCrc::new(upload.algorithm)?),
        }))
    }

    /// Adds the next part: its digest by the upload's algorithm, and its size in bytes.
    pub fn add(&mut self, digest: &[u8], size: u64) {
        match &mut self.0 {
            Sum::Composite(running) => running.update(digest),
            Sum::FullObject(crc) => crc.push(digest, size),
        }
    }

    /// Returns the digest of the object.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        match self.0 {
            Sum::Composite(running) => running.finish(),
            Sum::FullObject(crc) => crc.finish(),
        }
    }
}
