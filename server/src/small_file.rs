//! Reading a small file that somebody else provides: a secret, a certificate.
//!
//! Never waits for who may not come: a pipe that nobody writes to is refused, not opened and waited for. Never reads more
//! than such a file has.

use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Why a file was not read.
#[derive(Debug)]
pub(crate) enum SmallFileError {
    /// What the system said.
    Io(io::Error),
    /// It is a folder, a pipe or a device.
    NotRegular,
    /// It has more bytes than were allowed.
    TooLarge,
}

impl From<io::Error> for SmallFileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The content of a regular file of at most `bytes_max` bytes, and what the system knows of it.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<(Vec<u8>, Metadata), SmallFileError> {
    // Without it, opening a pipe would wait for a writer.
    let not_waiting = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(not_waiting).open(path)?;
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
