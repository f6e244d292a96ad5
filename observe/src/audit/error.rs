//! Errors of the audit trail.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why an event could not be recorded or the trail not be read. A failed record leaves nothing in the trail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AuditError {
    /// The disk is full. The action must not be done. A later attempt may succeed.
    Full,
    /// Too many records or queries are waiting.
    Overloaded,
    /// The device failed, now or earlier. Nothing is recorded until the next start.
    Failed(String),
    /// The trail is closing.
    ShuttingDown,
}

impl fmt::Display for AuditError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => out.write_str("no space is left for the audit trail"),
            Self::Overloaded => out.write_str("too many records or queries are waiting for the audit trail"),
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

/// Why the trail did not open. The message says what the operator can do.
#[derive(Debug)]
pub enum AuditOpenError {
    /// The data file is missing, damaged or belongs to another store. Nothing was changed.
    Damaged {
        /// The folder of the trail.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// The operating system reported an error.
    Io {
        /// The folder of the trail.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl fmt::Display for AuditOpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { path, what } => write!(
                out,
                "{folder}: the audit trail cannot be opened: {what}. Nothing was changed. Restore the folder from a \
                 backup. To start a new trail, move the folder away and create it again with an empty file \
                 {folder}/{marker}",
                folder = path.display(),
                marker = cairn_lmdb::UNMADE_MARKER
            ),
            Self::Io { path, error } => {
                write!(out, "the audit trail in {} cannot be opened: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for AuditOpenError {}
