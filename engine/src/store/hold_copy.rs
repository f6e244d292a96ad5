//! The copy of metadata that a hold makes, and its description.
//!
//! ```text
//! <data-dir>/backup/                    has the names of the data folder, and can be copied over it
//! <data-dir>/backup/superblock.json     identity of the store
//! <data-dir>/backup/<environment>/data.mdb   a copy of each environment, without a commit log
//! <data-dir>/backup/hold.json           the description, written last
//! ```

use crate::error::{OpenContext as _, OpenError};
use crate::format::superblock::{self, StoreId};
use cairn_lmdb::free_gradually;
use cairn_model::Timestamp;
use cairn_model::iso8601::iso8601_millis;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Folder of the copy in the data folder.
pub(crate) const BACKUP_FOLDER: &str = "backup";
/// File of the description.
pub(crate) const HOLD_FILE: &str = "hold.json";

/// The description of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HoldFile {
    /// Version of this description.
    pub(crate) version: u32,
    /// Id of the hold.
    pub(crate) id: String,
    /// Id of the store in hex.
    pub(crate) store_id: String,
    /// Format version of the store.
    pub(crate) format_version: u32,
    /// The time when the copy was complete, RFC 3339.
    pub(crate) held_at: String,
    /// Inode of the store's `superblock.json`: a copied data folder usually has another one.
    pub(crate) superblock_inode: u64,
    /// The time when that file was created, in milliseconds since 1970, if the file system knows it: a copy was created later.
    /// Programs before 2026-11-27 did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) superblock_created: Option<u64>,
    /// The copied files.
    pub(crate) files: Vec<CopiedFile>,
}

/// A file of the copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CopiedFile {
    /// Path in the data folder.
    pub(crate) path: String,
    /// Length in bytes.
    pub(crate) bytes: u64,
    /// CRC-64/NVME in hex, 16 digits.
    pub(crate) crc64: String,
}

/// Version of the description that this program writes, and the only one that it reads.
const VERSION: u32 = 1;

impl HoldFile {
    pub(super) fn new(
        data_dir: &Path,
        id: &str,
        (store, format_version): (StoreId, u32),
        files: Vec<CopiedFile>,
        held_at: Timestamp,
    ) -> Result<Self, OpenError> {
        let (superblock_inode, superblock_created) = superblock_identity(data_dir)?;
        Ok(Self {
            version: VERSION,
            id: id.to_owned(),
            store_id: store.to_hex(),
            format_version,
            held_at: iso8601_millis(held_at.0),
            superblock_inode,
            superblock_created,
            files,
        })
    }

    /// Reads the description in a folder. `None` if there is none.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, OpenError> {
        let path = folder.join(HOLD_FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).doing("reading", &path),
        };
        let damaged = |what: String| OpenError::Damaged { path: path.clone(), what };
        let file: Self = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if file.version != VERSION {
            return Err(damaged(format!("version {} is unknown", file.version)));
        }
        Ok(Some(file))
    }

    /// Writes the description as the last file of the copy, durably.
    pub(super) fn write(&self, folder: &Path) -> Result<(), OpenError> {
        let path = folder.join(HOLD_FILE);
        let text = serde_json::to_vec_pretty(self).expect("it has only texts and numbers");
        let write = || {
            let mut file = File::create_new(&path)?;
            file.write_all(&text)?;
            file.sync_all()
        };
        write().doing("writing", &path)?;
        superblock::sync_folder(folder)
    }

    /// Returns whether `data_dir` is the data folder that was held, and not a copy of it.
    pub(crate) fn is_of(&self, data_dir: &Path) -> Result<bool, OpenError> {
        let (inode, created) = superblock_identity(data_dir)?;
        let is_created_then =
            self.superblock_created.is_none_or(|then| created.is_none_or(|now| now == then));
        Ok(inode == self.superblock_inode && is_created_then)
    }

    /// Compares the files below `folder` with the description.
    pub(crate) fn verify_files(&self, folder: &Path) -> Result<(), OpenError> {
        for file in &self.files {
            let path = folder.join(&file.path);
            let found = File::open(&path).and_then(crc64_of).doing("reading", &path)?;
            if found != (file.bytes, file.crc64.clone()) {
                let what = format!("it differs from the backup of {}: copy it again", self.held_at);
                return Err(OpenError::Damaged { path, what });
            }
        }
        Ok(())
    }
}

/// Returns the inode of the superblock in a data folder, and when it was created, if the file system knows it.
///
/// On a new file system inodes are small numbers, and a copy may get that of the original by chance.
fn superblock_identity(data_dir: &Path) -> Result<(u64, Option<u64>), OpenError> {
    let path = superblock::path(data_dir);
    let found = std::fs::metadata(&path).doing("examining", &path)?;
    let created = found.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok((found.ino(), created.and_then(|time| u64::try_from(time.as_millis()).ok())))
}

/// Copies a small file, and describes it.
pub(super) fn copy_small_file(data_dir: &Path, folder: &Path, path: &str) -> Result<CopiedFile, OpenError> {
    let (from, to) = (data_dir.join(path), folder.join(path));
    std::fs::copy(&from, &to).doing("copying", &from)?;
    let copy = File::open(&to).doing("opening", &to)?;
    copy.sync_all().doing("flushing", &to)?;
    let (bytes, crc64) = crc64_of(copy).doing("reading", &to)?;
    Ok(CopiedFile { path: path.to_owned(), bytes, crc64 })
}

fn crc64_of(mut file: File) -> std::io::Result<(u64, String)> {
    struct Crc(crc_fast::Digest, u64);
    impl std::io::Write for Crc {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.update(bytes);
            self.1 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut crc = Crc(crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme), 0);
    std::io::copy(&mut file, &mut crc)?;
    Ok((crc.1, crc64_text(crc.0.finalize())))
}

/// Returns the form of a CRC in the description.
pub(super) fn crc64_text(crc64: u64) -> String {
    format!("{crc64:016x}")
}

/// Removes a folder with everything in it. It may be missing.
pub(super) fn remove_folder(folder: &Path) -> Result<(), OpenError> {
    unless_missing(std::fs::remove_dir_all(folder), folder)
}

/// As [`remove_folder`], while the store is in use: large files are freed step by step.
pub(super) fn remove_folder_gradually(folder: &Path) -> Result<(), OpenError> {
    unless_missing(remove_gradually(folder), folder)
}

fn unless_missing(removed: std::io::Result<()>, folder: &Path) -> Result<(), OpenError> {
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).doing("removing", folder),
        _ => Ok(()),
    }
}

fn remove_gradually(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        if kind.is_dir() {
            remove_gradually(&path)?;
            continue;
        }
        if kind.is_file() {
            let file = File::options().write(true).open(&path)?;
            // A file with another name is somebody's copy.
            if file.metadata()?.nlink() == 1 {
                free_gradually(&file)?;
            }
        }
        std::fs::remove_file(&path)?;
    }
    std::fs::remove_dir(folder)
}

/// Returns the folder of the copy.
pub(crate) fn backup_folder(data_dir: &Path) -> PathBuf {
    data_dir.join(BACKUP_FOLDER)
}

#[cfg(test)]
mod tests {
    use super::{HoldFile, remove_folder_gradually};
    use crate::format::superblock::{self, StoreId};
    use cairn_model::Timestamp;

    /// On new file systems inodes are small numbers. A copy that is taken for the original runs on torn metadata.
    #[test]
    fn a_copy_is_recognised_although_it_has_the_inode_of_the_original() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(superblock::path(folder.path()), b"{}").expect("written");
        let held = HoldFile::new(folder.path(), "id", (StoreId([1; 16]), 11), Vec::new(), Timestamp(1));
        let held = held.expect("described");
        assert!(held.is_of(folder.path()).expect("examined"));
        let earlier = held.superblock_created.map(|created| created - 1);
        assert!(earlier.is_some(), "the file system of this test knows when a file was created");
        assert!(
            !HoldFile { superblock_created: earlier, ..held.clone() }.is_of(folder.path()).expect("examined")
        );
        let other = held.superblock_inode + 1;
        assert!(
            !HoldFile { superblock_inode: other, ..held.clone() }.is_of(folder.path()).expect("examined")
        );
        // The description of an earlier program.
        assert!(HoldFile { superblock_created: None, ..held }.is_of(folder.path()).expect("examined"));
    }

    #[test]
    fn what_somebody_has_linked_stays_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let (copy, linked) = (folder.path().join("backup"), folder.path().join("linked"));
        std::fs::create_dir_all(copy.join("slices/00")).expect("made");
        std::fs::write(copy.join("slices/00/data.mdb"), b"kept").expect("written");
        std::fs::write(copy.join("hold.json"), b"{}").expect("written");
        std::fs::hard_link(copy.join("slices/00/data.mdb"), &linked).expect("linked");
        remove_folder_gradually(&copy).expect("removed");
        assert!(!copy.exists());
        assert_eq!(std::fs::read(&linked).expect("reads"), b"kept");
    }
}
