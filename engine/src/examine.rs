//! A data folder looked at from outside, for who must know before a store is opened: what it holds, whether somebody uses
//! it, and whether a store can live on its file system.
//!
//! Nothing is made, changed or left behind; LMDB is not opened.

use crate::error::{OpenContext, OpenError};
use crate::limits::UNIT_BYTES;
use crate::slice::Slice;
use crate::volume::volume_path;
use crate::{store, superblock};
use cairn_lmdb::UNMADE_MARKER;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// What is known of a store without opening it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreFacts {
    /// Its slices.
    pub slices: u16,
    /// The version of its format.
    pub format_version: u32,
}

/// What the store in a folder is; `None` when the folder holds none, or is not there.
///
/// # Errors
/// [`OpenError`] when its superblock is damaged, missing or of a later format.
pub fn examine_store(data_dir: &Path) -> Result<Option<StoreFacts>, OpenError> {
    superblock::facts(data_dir)
}

/// Whether `master_key` is the one that the store in a folder was made with; also where there is no store.
///
/// # Errors
/// [`OpenError::WrongMasterKey`], and as [`examine_store`].
pub fn examine_master_key(data_dir: &Path, master_key: &[u8]) -> Result<(), OpenError> {
    superblock::verify_key(data_dir, master_key)
}

/// A file or folder of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorePart {
    /// Where it is, or should be.
    pub path: PathBuf,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Whether the store does not open without it.
    pub is_required: bool,
}

/// The files and folders that are read and written when the store with these facts is opened, each before those in it.
#[must_use]
pub fn store_parts(data_dir: &Path, facts: StoreFacts) -> Vec<StorePart> {
    let mut parts = vec![
        StorePart { path: superblock::path(data_dir), is_folder: false, is_required: true },
        StorePart { path: data_dir.join(store::LOCK_FILE), is_folder: false, is_required: false },
    ];
    environment_parts(&data_dir.join("control"), true, &mut parts);
    for name in superblock::MADE_BY_OTHERS {
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
        parts.push(required(folder.join("volumes"), true));
        let count = volume_count(&folder.join("volumes"));
        parts.extend((0..count).map(|number| required(volume_path(&folder, number), false)));
    }
    parts
}

/// The folder of an LMDB environment and its files; LMDB makes the one of its locks when it is not there.
fn environment_parts(folder: &Path, is_required: bool, parts: &mut Vec<StorePart>) {
    parts.push(StorePart { path: folder.to_owned(), is_folder: true, is_required });
    parts.push(StorePart { path: folder.join("data.mdb"), is_folder: false, is_required });
    parts.push(StorePart { path: folder.join("lock.mdb"), is_folder: false, is_required: false });
}

/// Volumes in a slice's folder of them, at least the first, without which there is no slice. They are numbered from 0.
fn volume_count(folder: &Path) -> u32 {
    let volumes = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_volume = |name: &Path| name.extension().is_some_and(|extension| extension == "vol");
    let count = volumes.filter(|entry| is_volume(Path::new(&entry.file_name()))).count();
    u32::try_from(count).unwrap_or(u32::MAX).max(1)
}

/// Whether another process has the store in a folder open. The lock is held for a moment when nobody has it.
///
/// # Errors
/// [`OpenError::Io`] when the lock file cannot be opened.
pub fn examine_lock(data_dir: &Path) -> Result<bool, OpenError> {
    let path = data_dir.join(store::LOCK_FILE);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened.doing("opening", &path)?,
    };
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(false),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(io::Error::from(error)).doing("locking", &path),
    }
}

/// Refuses a folder on a network file system.
///
/// # Errors
/// [`OpenError::UnsuitableFileSystem`].
pub fn examine_file_system(data_dir: &Path) -> Result<(), OpenError> {
    store::refuse_network_file_system(data_dir)
}

/// Writes a unit with direct I/O to a file without a name in `folder`, and reads it again.
///
/// # Errors
/// [`OpenError::Io`] with the step that failed.
pub fn examine_direct_io(folder: &Path) -> Result<(), OpenError> {
    let unit = usize::try_from(UNIT_BYTES).unwrap_or(4096);
    let flags = libc::O_DIRECT | libc::O_TMPFILE;
    let open = OpenOptions::new().read(true).write(true).custom_flags(flags).mode(0o600).open(folder);
    let file = open.doing("opening a file for direct I/O in", folder)?;
    // Aligned memory, found within twice as much.
    let mut memory = vec![0u8; 2 * unit];
    let start = memory.as_ptr().align_offset(unit).min(unit);
    let buffer = &mut memory[start..start + unit];
    buffer.fill(PATTERN);
    file.write_all_at(buffer, 0).doing("writing with direct I/O in", folder)?;
    file.sync_data().doing("flushing in", folder)?;
    buffer.fill(0);
    file.read_exact_at(buffer, 0).doing("reading with direct I/O in", folder)?;
    if buffer.iter().any(|byte| *byte != PATTERN) {
        let what = "what was written with direct I/O does not come back";
        return Err(OpenError::UnsuitableFileSystem { path: folder.to_owned(), what });
    }
    Ok(())
}

/// What is written and read back.
const PATTERN: u8 = 0xa5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_folder_holds_no_store_and_stays_empty() {
        // Direct I/O needs a real disk.
        let folder = tempfile::tempdir_in(".").expect("a folder");
        assert_eq!(examine_store(folder.path()).expect("it can be looked at"), None);
        assert!(!examine_lock(folder.path()).expect("it can be looked at"));
        examine_master_key(folder.path(), b"any").expect("no store has no key");
        examine_file_system(folder.path()).expect("it is no network");
        examine_direct_io(folder.path()).expect("the disk has direct I/O");
        assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0);
    }

    #[test]
    fn a_store_is_seen_with_its_slices_lock_and_key() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        superblock::create(folder.path(), b"the key", crate::StoreId([7; 16]), 5).expect("a superblock");
        let before = std::fs::read(folder.path().join("superblock.json")).expect("it is there");
        let facts = examine_store(folder.path()).expect("it can be looked at");
        assert_eq!(facts, Some(StoreFacts { slices: 5, format_version: superblock::FORMAT_VERSION }));
        examine_master_key(folder.path(), b"the key").expect("it is the right one");
        let wrong = examine_master_key(folder.path(), b"another");
        assert!(matches!(wrong, Err(OpenError::WrongMasterKey)), "{wrong:?}");
        let held = store::lock(folder.path()).expect("nobody has it");
        assert!(examine_lock(folder.path()).expect("it can be looked at"));
        drop(held);
        assert!(!examine_lock(folder.path()).expect("it can be looked at"));
        assert_eq!(std::fs::read(folder.path().join("superblock.json")).expect("it is there"), before);
    }
}
