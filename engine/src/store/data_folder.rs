//! The data folder: its lock, and the file systems that are refused.

use crate::device::lock_file;
use crate::error::{OpenContext, OpenError};
use std::fs::File;
use std::io;
use std::path::Path;

/// The file that is locked while the store is open.
pub(crate) const LOCK_FILE: &str = "lock";

/// Locks the data folder against other processes.
pub(crate) fn lock(data_dir: &Path) -> Result<File, OpenError> {
    unless_locked(data_dir, lock_file::lock_exclusively)
}

/// Locks the data folder of a stopped store without writing anything. `None` if its lock file is missing, which no server was
/// using then.
pub(crate) fn lock_stopped(data_dir: &Path) -> Result<Option<File>, OpenError> {
    unless_locked(data_dir, lock_file::lock_to_read)
}

/// Does the same as [`lock`] for a command that only examines the store, which may be on a read-only file system.
pub(crate) fn lock_to_examine(data_dir: &Path) -> Result<Option<File>, OpenError> {
    unless_locked(data_dir, lock_file::lock_to_examine)
}

fn unless_locked<T>(data_dir: &Path, lock: fn(&Path) -> io::Result<T>) -> Result<T, OpenError> {
    let path = data_dir.join(LOCK_FILE);
    match lock(&path) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(OpenError::Locked(data_dir.to_owned()))
        }
        locked => locked.doing("locking", &path),
    }
}

/// Refuses network file systems: LMDB's locks and maps, and direct I/O, are not reliable there.
pub(crate) fn refuse_network_file_system(data_dir: &Path) -> Result<(), OpenError> {
    /// `f_type` of NFS, SMB, CIFS and SMB2 (linux/magic.h and the file systems' sources).
    const NETWORK: [i64; 4] = [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42];
    let stat = rustix::fs::statfs(data_dir).map_err(io::Error::from).doing("examining", data_dir)?;
    if NETWORK.contains(&stat.f_type) {
        let what = "a network file system cannot keep acknowledged writes safe";
        return Err(OpenError::UnsuitableFileSystem { path: data_dir.to_owned(), what });
    }
    Ok(())
}
