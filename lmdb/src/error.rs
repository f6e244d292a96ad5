//! What can go wrong with an environment.

use std::fmt;

/// A failure of LMDB, or of a record's check.
#[derive(Debug)]
pub enum Error {
    /// A record's check does not fit its bytes. The key is given in hex, cut to 64 bytes.
    Corrupt {
        /// Key of the record in hex.
        key: String,
        /// What did not fit.
        what: &'static str,
    },
    /// The data file is shorter than its own last page: reading it would end the process with SIGBUS.
    Truncated {
        /// Bytes that the environment says it uses.
        expected: u64,
        /// Bytes that the file has.
        found: u64,
    },
    /// A compact copy would not fit on the file system; nothing was written.
    NoRoom {
        /// Bytes that the copy takes.
        needed: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// No space: the file system or the map is full.
    Full,
    /// The operating system refused a read, a write or a flush.
    Io(std::io::Error),
    /// Any other answer of LMDB.
    Lmdb(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt { key, what } => write!(f, "record {key}: {what}"),
            Self::Truncated { expected, found } => {
                write!(f, "the data file has {found} bytes but uses {expected}: it was truncated")
            }
            Self::NoRoom { needed, available } => {
                write!(f, "a compact copy needs {needed} bytes beside the original, {available} are free")
            }
            Self::Full => f.write_str("no space left for metadata"),
            Self::Io(error) => write!(f, "metadata I/O: {error}"),
            Self::Lmdb(text) => write!(f, "metadata store: {text}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<heed::Error> for Error {
    fn from(error: heed::Error) -> Self {
        /// `EFBIG`, `ENOSPC` and `EDQUOT` of Linux.
        const NO_SPACE: [i32; 3] = [27, 28, 122];
        match error {
            heed::Error::Io(io) if io.raw_os_error().is_some_and(|code| NO_SPACE.contains(&code)) => {
                Self::Full
            }
            heed::Error::Io(io) => Self::Io(io),
            heed::Error::Mdb(heed::MdbError::MapFull) => Self::Full,
            other => Self::Lmdb(other.to_string()),
        }
    }
}
