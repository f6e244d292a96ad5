//! The error type of this crate.

use std::fmt;

/// A failure of LMDB or a record with a wrong checksum.
#[derive(Debug)]
pub enum Error {
    /// A record's bytes do not match its checksum.
    Corrupt {
        /// Key of the record in hex, cut to 64 bytes.
        key: String,
        /// The part that does not match.
        what: &'static str,
    },
    /// The data file ends before its last used page. Reading it would kill the process with SIGBUS.
    Truncated {
        /// Bytes that the environment uses.
        expected: u64,
        /// Length of the file in bytes.
        found: u64,
    },
    /// The commit log is missing, or a record before its end is damaged. Acknowledged changes would be lost.
    DamagedLog(String),
    /// A compact copy would not fit on the file system; nothing was written.
    NoSpaceForCopy {
        /// Bytes that the copy needs.
        needed: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// Another compaction of the environment is running.
    CompactionRunning,
    /// The caller ended the compaction.
    Cancelled,
    /// The environment changes faster than a compaction can follow.
    TooManyChanges,
    /// The environment has a table that this program does not know, so an open environment cannot be compacted.
    UnknownTable(String),
    /// No space: the file system or the map is full.
    Full,
    /// The operating system refused a read, a write or a flush.
    Io(std::io::Error),
    /// Any other error of LMDB.
    Lmdb(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt { key, what } => write!(f, "record {key}: {what}"),
            Self::Truncated { expected, found } => {
                write!(f, "the data file was truncated: it has {found} bytes but uses {expected}")
            }
            Self::DamagedLog(what) => write!(f, "the commit log: {what}"),
            Self::NoSpaceForCopy { needed, available } => {
                write!(
                    f,
                    "no space for a compact copy: it needs {needed} bytes beside the original, but only {available} are free"
                )
            }
            Self::CompactionRunning => f.write_str("a compaction is already running"),
            Self::Cancelled => f.write_str("the copy was cancelled"),
            Self::TooManyChanges => f.write_str(
                "the metadata changes faster than a compaction can follow: try again under less load",
            ),
            Self::UnknownTable(name) => {
                write!(
                    f,
                    "the table {name} is unknown to this program: stop the service to compact its store"
                )
            }
            Self::Full => f.write_str("no space left for metadata"),
            Self::Io(error) => write!(f, "metadata I/O: {error}"),
            Self::Lmdb(text) => write!(f, "metadata store: {text}"),
        }
    }
}

impl std::error::Error for Error {}

/// Returns whether a write failed because a file cannot be longer: the disk, a quota or the limit of a process is used up.
pub(crate) fn is_no_space(error: &std::io::Error) -> bool {
    /// `EFBIG`, `ENOSPC` and `EDQUOT` of Linux.
    const NO_SPACE: [i32; 3] = [27, 28, 122];
    error.raw_os_error().is_some_and(|code| NO_SPACE.contains(&code))
}

impl From<heed::Error> for Error {
    fn from(error: heed::Error) -> Self {
        match error {
            heed::Error::Io(io) if is_no_space(&io) => Self::Full,
            heed::Error::Io(io) => Self::Io(io),
            heed::Error::Mdb(heed::MdbError::MapFull) => Self::Full,
            other => Self::Lmdb(other.to_string()),
        }
    }
}
