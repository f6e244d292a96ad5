//! Lock files: one process at a time has a folder open.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Locks a file, which is made if it is missing, against all other processes. The lock ends with the returned file.
///
/// # Errors
/// `WouldBlock` if another process has a lock, and those of the file system.
pub(crate) fn lock_exclusively(path: &Path) -> Result<File> {
    locked(
        File::options().create(true).truncate(false).write(true).open(path)?,
        FlockOperation::NonBlockingLockExclusive,
    )
}

/// Locks a file, without writing anything, against processes that lock it exclusively. `None` if the file is missing: then
/// no process has such a lock.
///
/// # Errors
/// As [`lock_exclusively`].
pub(crate) fn lock_to_read(path: &Path) -> Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => locked(opened?, FlockOperation::NonBlockingLockShared).map(Some),
    }
}

/// Does the same as [`lock_exclusively`], and on a read-only file system, where no process changes the folder, as
/// [`lock_to_read`].
///
/// # Errors
/// As [`lock_exclusively`].
pub(crate) fn lock_to_examine(path: &Path) -> Result<Option<File>> {
    match lock_exclusively(path) {
        Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => lock_to_read(path),
        locked => locked.map(Some),
    }
}

fn locked(file: File, operation: FlockOperation) -> Result<File> {
    flock(&file, operation).map_err(Error::from)?;
    Ok(file)
}
