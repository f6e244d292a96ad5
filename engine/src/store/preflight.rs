//! Preflight checks of a data folder without opening the store.
//!
//! They find out what the folder holds, whether a process is using it, and whether its file system is suitable. They change
//! nothing, leave nothing behind, and do not open LMDB.

use crate::device::volume::volume_path;
use crate::error::{OpenContext, OpenError};
use crate::format::superblock;
use crate::format::superblock::StoreFacts;
use crate::limits::UNIT_BYTES;
use crate::slice::Slice;
use crate::store::data_folder;
use crate::store::stopped_store::slice_environments;
use cairn_lmdb::{DamagedLog, UNMADE_MARKER, examine_log};
use cairn_model::usize_of;
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Returns facts about the store in a folder. `None` if the folder holds no store, or does not exist.
///
/// # Errors
/// [`OpenError`] if its superblock is damaged, missing or of a later format.
pub fn preflight_store(data_dir: &Path) -> Result<Option<StoreFacts>, OpenError> {
    superblock::facts(data_dir)
}

/// Checks that `master_key` is the one that the store in a folder was created with. Succeeds if there is no store.
///
/// # Errors
/// [`OpenError::WrongMasterKey`], and as [`preflight_store`].
pub fn preflight_master_key(data_dir: &Path, master_key: &[u8]) -> Result<(), OpenError> {
    superblock::verify_key(data_dir, master_key)
}

/// A file or folder of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorePart {
    /// The path where it is expected.
    pub path: PathBuf,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Whether the store cannot be opened without it.
    pub is_required: bool,
}

/// Returns the files and folders that are read and written when a store with these facts is opened. Folders precede their
/// contents.
#[must_use]
pub fn store_parts(data_dir: &Path, facts: StoreFacts) -> Vec<StorePart> {
    let mut parts = vec![
        StorePart { path: superblock::path(data_dir), is_folder: false, is_required: true },
        StorePart { path: data_dir.join(data_folder::LOCK_FILE), is_folder: false, is_required: false },
    ];
    environment_parts(&data_dir.join("control"), true, &mut parts);
    for name in superblock::FOREIGN_ENVIRONMENTS {
        let folder = data_dir.join(name);
        let is_made =
            superblock::has_folder(name, facts.format_version) && !folder.join(UNMADE_MARKER).exists();
        environment_parts(&folder, is_made, &mut parts);
    }
    let required = |path, is_folder| StorePart { path, is_folder, is_required: true };
    parts.push(required(data_dir.join("slices"), true));
    for folder in (0..facts.slices).map(|number| Slice::folder_of(data_dir, number)) {
        parts.push(required(folder.clone(), true));
        environment_parts(&folder.join("meta"), true, &mut parts);
        let log = folder.join("meta/commit.log");
        parts.push(StorePart { path: log, is_folder: false, is_required: false });
        parts.push(required(folder.join("volumes"), true));
        let count = volume_count(&folder.join("volumes"));
        parts.extend((0..count).map(|number| required(volume_path(&folder, number), false)));
    }
    parts
}

/// Adds the folder of an LMDB environment and its files. LMDB creates a missing lock file.
fn environment_parts(folder: &Path, is_required: bool, parts: &mut Vec<StorePart>) {
    parts.push(StorePart { path: folder.to_owned(), is_folder: true, is_required });
    parts.push(StorePart { path: folder.join("data.mdb"), is_folder: false, is_required });
    parts.push(StorePart { path: folder.join("lock.mdb"), is_folder: false, is_required: false });
}

/// Returns the number of volumes in a slice's folder, at least 1: every slice has the first one. They are numbered from 0.
fn volume_count(folder: &Path) -> u32 {
    let volumes = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_volume = |name: &Path| name.extension().is_some_and(|extension| extension == "vol");
    let count = volumes.filter(|entry| is_volume(Path::new(&entry.file_name()))).count();
    u32::try_from(count).unwrap_or(u32::MAX).max(1)
}

/// Returns whether another process has the store in a folder open. Takes the lock for a moment if it is free.
///
/// # Errors
/// [`OpenError::Io`] if the lock file cannot be opened.
pub fn preflight_lock(data_dir: &Path) -> Result<bool, OpenError> {
    match data_folder::lock_stopped(data_dir) {
        Err(OpenError::Locked(_)) => Ok(true),
        locked => locked.map(|_| false),
    }
}

/// Returns what is wrong with the commit logs of a store, with the folders of the damaged ones. Empty if there is no store.
/// Reads each log whole, so no process may be using the store ([`preflight_lock`]).
///
/// # Errors
/// As [`preflight_store`], and [`OpenError::Io`] or [`OpenError::Damaged`] if a log or its data file cannot be read.
pub fn preflight_commit_logs(data_dir: &Path) -> Result<Vec<(PathBuf, DamagedLog)>, OpenError> {
    let slices = preflight_store(data_dir)?.map_or(0, |facts| facts.slices);
    let mut damaged = Vec::new();
    for folder in slice_environments(data_dir, slices) {
        let found = examine_log(&folder, &mut |_, _| ()).doing("examining the commit log in", &folder)?;
        damaged.extend(found.map(|log| (folder, log)));
    }
    Ok(damaged)
}

/// Refuses a folder on a network file system.
///
/// # Errors
/// [`OpenError::UnsuitableFileSystem`].
pub fn preflight_file_system(data_dir: &Path) -> Result<(), OpenError> {
    data_folder::refuse_network_file_system(data_dir)
}

/// Writes a unit with direct I/O to an unnamed file in `folder`, and reads it back.
///
/// # Errors
/// [`OpenError::Io`] with the step that failed.
pub fn preflight_direct_io(folder: &Path) -> Result<(), OpenError> {
    let unit = usize_of(UNIT_BYTES);
    let flags = libc::O_DIRECT | libc::O_TMPFILE;
    let open = OpenOptions::new().read(true).write(true).custom_flags(flags).mode(0o600).open(folder);
    let file = open.doing("opening a file for direct I/O in", folder)?;
    // Finds an aligned buffer within twice as much memory.
    let mut memory = vec![0u8; 2 * unit];
    let start = memory.as_ptr().align_offset(unit).min(unit);
    let buffer = &mut memory[start..start + unit];
    buffer.fill(PATTERN);
    file.write_all_at(buffer, 0).doing("writing with direct I/O in", folder)?;
    file.sync_data().doing("flushing in", folder)?;
    buffer.fill(0);
    file.read_exact_at(buffer, 0).doing("reading with direct I/O in", folder)?;
    if buffer.iter().any(|byte| *byte != PATTERN) {
        let what = "data that was written with direct I/O cannot be read back";
        return Err(OpenError::UnsuitableFileSystem { path: folder.to_owned(), what });
    }
    Ok(())
}

/// The byte that is written and read back.
const PATTERN: u8 = 0xa5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_folder_holds_no_store_and_stays_empty() {
        // Direct I/O needs a real disk.
        let folder = tempfile::tempdir_in(".").expect("a folder");
        assert_eq!(preflight_store(folder.path()).expect("it can be checked"), None);
        assert!(!preflight_lock(folder.path()).expect("it can be checked"));
        preflight_master_key(folder.path(), b"any").expect("there is no store");
        preflight_file_system(folder.path()).expect("it is not a network file system");
        preflight_direct_io(folder.path()).expect("the disk has direct I/O");
        assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0);
    }

    #[test]
    fn preflight_finds_slices_lock_and_key_of_a_store() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        superblock::create(folder.path(), b"the key", crate::StoreId([7; 16]), 5).expect("a superblock");
        let before = std::fs::read(folder.path().join("superblock.json")).expect("it is there");
        let facts = preflight_store(folder.path()).expect("it can be checked");
        assert_eq!(facts, Some(StoreFacts { slices: 5, format_version: crate::FORMAT_VERSION }));
        preflight_master_key(folder.path(), b"the key").expect("it is the right one");
        let wrong = preflight_master_key(folder.path(), b"another");
        assert!(matches!(wrong, Err(OpenError::WrongMasterKey)), "{wrong:?}");
        let held = data_folder::lock(folder.path()).expect("nobody has it");
        assert!(preflight_lock(folder.path()).expect("it can be checked"));
        drop(held);
        assert!(!preflight_lock(folder.path()).expect("it can be checked"));
        assert_eq!(std::fs::read(folder.path().join("superblock.json")).expect("it is there"), before);
    }
}
