//! The data folder: its lock, and the file systems that are refused.

use crate::error::{OpenContext, OpenError};
use std::fs::File;
use std::path::Path;

/// The file that is locked while the store is open.
pub(crate) const LOCK_FILE: &str = "lock";

/// Locks the data folder against other processes.
pub(crate) fn lock(data_dir: &Path) -> Result<File, OpenError> {
    let path = data_dir.join(LOCK_FILE);
    let open = File::options().create(true).truncate(false).write(true).open(&path);
    let file = open.doing("opening", &path)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::Locked(data_dir.to_owned())),
        Err(error) => Err(std::io::Error::from(error)).doing("locking", &path),
    }
}

/// Locks the data folder of a stopped store without writing anything. `None` if its lock file is missing, which no server was
/// using then.
pub(crate) fn lock_stopped(data_dir: &Path) -> Result<Option<File>, OpenError> {
    let path = data_dir.join(LOCK_FILE);
    let file = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.doing("opening", &path)?,
    };
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::Locked(data_dir.to_owned())),
        Err(error) => Err(std::io::Error::from(error)).doing("locking", &path),
    }
}

/// Does the same as [`lock`] for a command that only examines the store. On a read-only file system, where no server can use
/// it, the lock file may be missing.
pub(crate) fn lock_to_examine(data_dir: &Path) -> Result<Option<File>, OpenError> {
    match lock(data_dir) {
        Err(OpenError::Io { error, .. }) if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem => {
            lock_stopped(data_dir)
        }
        locked => locked.map(Some),
    }
}

/// Refuses network file systems: LMDB's locks and maps, and direct I/O, are not reliable there.
pub(crate) fn refuse_network_file_system(data_dir: &Path) -> Result<(), OpenError> {
    /// `f_type` of NFS, SMB, CIFS and SMB2 (linux/magic.h and the file systems' sources).
    const NETWORK: [i64; 4] = [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42];
    let stat = rustix::fs::statfs(data_dir).map_err(std::io::Error::from).doing("examining", data_dir)?;
    if NETWORK.contains(&stat.f_type) {
        let what = "a network file system cannot keep acknowledged writes safe";
        return Err(OpenError::UnsuitableFileSystem { path: data_dir.to_owned(), what });
    }
    Ok(())
}
