//! A stopped store, whose files a command examines or changes.

use crate::error::OpenError;
use crate::format::superblock::{self, StoreId, Superblock};
use crate::slice::Slice;
use crate::store::data_folder;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A store that no process can open meanwhile. Its master key is not needed.
pub(crate) struct StoppedStore {
    data_dir: PathBuf,
    superblock: Superblock,
    _lock: Option<File>,
}

impl StoppedStore {
    /// Locks the store in `data_dir`, to change it.
    ///
    /// # Errors
    /// [`OpenError::NoStore`], [`OpenError::Locked`], and those of a superblock that cannot be read.
    pub(crate) fn lock(data_dir: &Path) -> Result<Self, OpenError> {
        Self::lock_with(data_dir, |data_dir| data_folder::lock(data_dir).map(Some))
    }

    /// Locks the store in `data_dir`, which may be on a read-only file system, to examine it.
    ///
    /// # Errors
    /// As [`Self::lock`].
    pub(crate) fn lock_to_examine(data_dir: &Path) -> Result<Self, OpenError> {
        Self::lock_with(data_dir, data_folder::lock_to_examine)
    }

    fn lock_with(
        data_dir: &Path,
        lock: fn(&Path) -> Result<Option<File>, OpenError>,
    ) -> Result<Self, OpenError> {
        let none = || OpenError::NoStore(data_dir.to_owned());
        // The lock creates a file, so a folder without a store must be refused before.
        superblock::identify(data_dir)?.ok_or_else(none)?;
        let lock = lock(data_dir)?;
        let superblock = superblock::identify(data_dir)?.ok_or_else(none)?;
        Ok(Self { data_dir: data_dir.to_owned(), superblock, _lock: lock })
    }

    /// Returns the id of the store.
    pub(crate) const fn id(&self) -> StoreId {
        self.superblock.store
    }

    /// Returns the folders of the slices' metadata.
    pub(crate) fn slice_environments(&self) -> impl Iterator<Item = PathBuf> {
        slice_environments(&self.data_dir, self.superblock.slices)
    }
}

/// Returns the folders of the metadata of all slices of a store.
pub(crate) fn slice_environments(data_dir: &Path, slices: u16) -> impl Iterator<Item = PathBuf> {
    (0..slices).map(move |number| Slice::folder_of(data_dir, number).join("meta"))
}
