//! The format version of a store: what it allows, and how it is raised.
//!
//! What a later version adds are tables, which are created after the superblock says so, and records that are only written once
//! the version allows them. So an upgrade is one file, the superblock, that replaces another.

use crate::error::{EngineError, OpenContext as _, OpenError};
use crate::format::format_version::Feature;
use crate::format::superblock;
use crate::limits::METADATA_HEADROOM_MIN;
use crate::slice::Slice;
use crate::store::Store;
use crate::store::preflight::store_parts;
use crate::store::stopped_store::StoppedStore;
use cairn_lmdb::examine_log;
use std::path::Path;

impl Store {
    /// Returns the format version of the store.
    #[must_use]
    pub fn format_version(&self) -> u32 {
        self.format.version()
    }

    /// Refuses what the store's format version does not have.
    ///
    /// # Errors
    /// [`EngineError::NeedsUpgrade`].
    pub fn require(&self, feature: Feature) -> Result<(), EngineError> {
        feature.require(self.format_version())
    }

    /// Raises the format version to the latest, durably. Blocks. One caller at a time.
    ///
    /// # Errors
    /// [`EngineError::AlreadyRunning`] while the store is held for a backup, whose description names the superblock.
    /// Failures of the device.
    pub(crate) fn raise_format(&self) -> Result<(), EngineError> {
        // Held until the end, so that no hold begins.
        let hold = self.background.holds.lock();
        if hold.state.is_active() {
            return Err(EngineError::AlreadyRunning("a backup"));
        }
        superblock::upgrade(self.disk.path()).map_err(|error| EngineError::Io(error.to_string()))?;
        self.slices.iter().try_for_each(|slice| slice.create_absent_tables())?;
        // Only now: nothing of the new version may be written before the superblock says so.
        self.format.raise();
        Ok(())
    }
}

/// Tries to upgrade the store in `data_dir`, and with `apply` upgrades it. Returns the format version that it had.
///
/// No process may be using the store. The master key is not needed. The trial looks at the superblock, at all files that the
/// store is opened with, at the commit logs, and at the free space.
///
/// # Errors
/// [`OpenError`]. The store is as it was.
pub fn upgrade_stopped_store(data_dir: &Path, apply: bool) -> Result<u32, OpenError> {
    let store = if apply { StoppedStore::lock(data_dir) } else { StoppedStore::lock_to_examine(data_dir) }?;
    let none = || OpenError::NoStore(data_dir.to_owned());
    let facts = superblock::facts(data_dir)?.ok_or_else(none)?;
    Slice::refuse_uncounted(data_dir, facts.slices)?;
    for part in store_parts(data_dir, facts).into_iter().filter(|part| part.is_required) {
        let is_there = if part.is_folder { part.path.is_dir() } else { part.path.is_file() };
        if !is_there {
            return Err(OpenError::Damaged { path: part.path, what: "it is missing".to_owned() });
        }
    }
    for path in store.slice_environments() {
        if let Some(log) = examine_log(&path, &mut |_, _| ()).doing("examining the commit log in", &path)? {
            return Err(OpenError::DamagedLog { path, what: log.what });
        }
    }
    let stat = rustix::fs::statvfs(data_dir).map_err(std::io::Error::from).doing("examining", data_dir)?;
    if stat.f_bavail.saturating_mul(stat.f_frsize) < METADATA_HEADROOM_MIN {
        let error = std::io::Error::from(std::io::ErrorKind::StorageFull);
        return Err(OpenError::Io { path: data_dir.to_owned(), doing: "upgrading", error });
    }
    if apply {
        superblock::upgrade(data_dir)?;
    }
    Ok(facts.format_version)
}
