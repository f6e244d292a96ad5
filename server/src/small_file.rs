//! Reads small files that the operator provides: secrets and certificates.
//!
//! Never blocks: FIFOs are rejected. Never reads more than the limit.

use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Errors of reading a small file.
#[derive(Debug)]
pub(crate) enum SmallFileError {
    /// The system's error.
    Io(io::Error),
    /// It is not a regular file but a folder, a FIFO or a device.
    NotRegular,
    /// It is larger than the limit.
    TooLarge,
}

impl From<io::Error> for SmallFileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Returns the content and the metadata of a regular file of at most `bytes_max` bytes.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<(Vec<u8>, Metadata), SmallFileError> {
    // Without this flag, opening a FIFO would wait for a writer.
    let non_blocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(non_blocking).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(SmallFileError::NotRegular);
    }
    let mut content = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut content)?;
    if content.len() as u64 > bytes_max {
        return Err(SmallFileError::TooLarge);
    }
    Ok((content, found))
}
