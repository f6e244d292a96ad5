//! The error of a folder of backups.

use std::fmt;
use std::io;
use std::path::Path;

/// An error of an operation on a folder of backups. The text says what to do.
#[derive(Debug)]
pub struct BackupError(pub(super) String);

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BackupError {}

impl BackupError {
    /// A file that is not what was written.
    pub(super) fn damaged(path: &Path, what: impl fmt::Display) -> Self {
        Self(format!("{}: {what}", path.display()))
    }
}

/// Adds the operation and the path to errors of the file system.
pub(super) trait Context<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, BackupError>;
}

impl<T> Context<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, BackupError> {
        self.map_err(|error| BackupError(format!("{doing} {}: {error}", path.display())))
    }
}
