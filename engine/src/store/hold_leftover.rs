//! Removes, at the start, what an interrupted hold left behind.
//!
//! | found | meaning | done |
//! |---|---|---|
//! | `backup/` with the inode and the time of creation of this superblock, or without a description | the process ended during a hold, or this is a snapshot of the whole file system | the folder is removed; the metadata of the data folder count |
//! | `backup/` with others | files were copied one by one during a hold, so their metadata are torn | the start is refused, and says what to do |
//! | `hold.json` in the data folder | the copy of the metadata was put over the copied data folder | its files are verified, then both descriptions are removed |

use crate::error::{OpenContext as _, OpenError};
use crate::format::superblock;
use crate::store::hold_copy::{HOLD_FILE, HoldFile, backup_folder, remove_folder};
use cairn_lmdb::remove_log_of_replaced_file;
use std::fs::File;
use std::path::Path;

/// Finishes a restoration, or removes what a hold has left. The data folder is locked, and none of its files is open.
///
/// # Errors
/// [`OpenError::Damaged`] if the files differ from the description; [`OpenError::CopyOfHeldStore`]; failures of the device.
pub(crate) fn clear(data_dir: &Path) -> Result<(), OpenError> {
    let backup = backup_folder(data_dir);
    if let Some(restored) = HoldFile::read(data_dir)? {
        restored.verify_files(data_dir)?;
        // Whoever put them there may not have flushed them, and the description is removed below.
        let flushed = File::open(data_dir).and_then(|folder| Ok(rustix::fs::syncfs(folder)?));
        flushed.doing("flushing the file system of", data_dir)?;
        for environment in restored.files.iter().filter_map(|file| file.path.strip_suffix("/data.mdb")) {
            // It was copied with the data folder, and belongs to the data file that was replaced.
            let folder = data_dir.join(environment);
            remove_log_of_replaced_file(&folder).doing("removing the commit log of", &folder)?;
        }
        tracing::info!(target: "service::engine", held_at = restored.held_at, "the store continues from a backup");
        remove_folder(&backup)?;
        let path = data_dir.join(HOLD_FILE);
        std::fs::remove_file(&path).doing("removing", &path)?;
        return superblock::sync_folder(data_dir);
    }
    match HoldFile::read(&backup) {
        Ok(Some(held)) if !held.is_of(data_dir)? => {
            return Err(OpenError::CopyOfHeldStore { path: backup, held_at: held.held_at });
        }
        _ => {}
    }
    if backup.exists() {
        remove_folder(&backup)?;
        superblock::sync_folder(data_dir)?;
    }
    Ok(())
}
