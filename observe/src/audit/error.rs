//! What recording, reading and opening the trail can fail with.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why an event was not recorded, or the trail not read. Nothing of a failed record is in the trail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AuditError {
    /// No space on the disk for the trail. What was to be recorded must not be done; later it may work again.
    Full,
    /// More records or queries wait than may.
    Overloaded,
    /// The device failed, or a write to the trail failed before: nothing is recorded until the next start.
    Failed(String),
    /// The trail is closing.
    ShuttingDown,
}

impl fmt::Display for AuditError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => out.write_str("no space is left for the audit trail"),
            Self::Overloaded => out.write_str("too much waits for the audit trail"),
            Self::Failed(reason) => write!(out, "the audit trail failed: {reason}"),
            Self::ShuttingDown => out.write_str("the audit trail is closing"),
        }
    }
}

impl std::error::Error for AuditError {}

impl From<cairn_lmdb::Error> for AuditError {
    fn from(error: cairn_lmdb::Error) -> Self {
        match error {
            cairn_lmdb::Error::Full => Self::Full,
            other => Self::Failed(other.to_string()),
        }
    }
}

/// Why the trail did not open. The text says what to do about it.
#[derive(Debug)]
pub enum AuditOpenError {
    /// The data file is missing, damaged or belongs to another store. Nothing was changed.
    Damaged {
        /// The folder of the trail.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The operating system refused.
    Io {
        /// The folder of the trail.
        path: PathBuf,
        /// Its answer.
        error: io::Error,
    },
}

impl fmt::Display for AuditOpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { path, what } => write!(
                out,
                "{folder}: {what}; nothing was changed: restore the audit trail from a backup, or move the folder \
                 away and make it anew with an empty file {folder}/{marker} to begin another trail",
                folder = path.display(),
                marker = cairn_lmdb::UNMADE_MARKER
            ),
            Self::Io { path, error } => write!(out, "the audit trail in {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for AuditOpenError {}
