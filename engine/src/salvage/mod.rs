//! Salvage: reads the intact objects of a damaged, stopped store. Nothing of the store is written.
//!
//! Neither LMDB nor the engine's own threads are used: the metadata is read by `cairn_lmdb`'s salvage, which contains every
//! error, and payloads are read from the volumes with plain reads. Whatever is given to the target has passed its checks.

mod content;
mod lost;
mod objects;
mod store_facts;
mod target;

use crate::error::{OpenContext as _, OpenError};
use crate::format::seal::WrappingKey;
use crate::format::superblock::refuse_later_format;
use crate::store::data_folder::lock_stopped;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use store_facts::StoreFacts;
pub use target::{ContentError, SalvageLoss, SalvageTarget, SalvagedVersion, WriteContent};

/// A stopped store, which may be damaged. No process can open it while this exists.
pub struct DamagedStore {
    data_dir: PathBuf,
    slices: Vec<(u16, PathBuf)>,
    facts: StoreFacts,
    losses: Vec<SalvageLoss>,
    _lock: Option<File>,
}

impl DamagedStore {
    /// Opens the store in a data folder. Nothing is written. Blocks.
    ///
    /// # Errors
    /// [`OpenError::NoStore`], [`OpenError::Locked`], and [`OpenError::FormatTooNew`]: what a later program has written could be
    /// misread.
    pub fn open(data_dir: &Path) -> Result<Self, OpenError> {
        let slices = store_facts::slices(data_dir);
        if slices.is_empty() && !data_dir.join("control").is_dir() {
            return Err(OpenError::NoStore(data_dir.to_owned()));
        }
        refuse_later_format(data_dir)?;
        let lock = lock_stopped(data_dir)?;
        let (facts, losses) = StoreFacts::read(data_dir, &slices);
        Ok(Self { data_dir: data_dir.to_owned(), slices, facts, losses, _lock: lock })
    }

    /// Returns whether the store may have a bucket of this name, as far as is known.
    #[must_use]
    pub fn may_have_bucket(&self, name: &str) -> bool {
        self.facts.may_have_name(name)
    }

    /// Gives every version of the store to the target, or those of one bucket, and all that is lost. The master key is needed
    /// for sealed payloads only. Blocks.
    ///
    /// # Errors
    /// [`OpenError::Io`] of the target.
    pub fn salvage(
        self,
        master_key: Option<&[u8]>,
        bucket: Option<&str>,
        target: &mut dyn SalvageTarget,
    ) -> Result<(), OpenError> {
        let Self { data_dir, slices, facts, losses, _lock } = self;
        let write = || {
            losses.into_iter().try_for_each(|loss| target.loss(loss))?;
            let ids = facts.ids_of_store.iter();
            let keys = master_key.map(|key| ids.map(|id| WrappingKey::derive(key, *id)).collect());
            let wrapping: Vec<_> = keys.unwrap_or(Ok(Vec::new()))?;
            for (number, folder) in &slices {
                objects::salvage_slice((*number, folder), &facts, &wrapping, bucket, target)?;
            }
            Ok(())
        };
        let done: io::Result<()> = write();
        done.doing("salvaging", &data_dir)
    }
}

#[cfg(test)]
mod tests {
    use super::{DamagedStore, OpenError};

    /// The superblock was called damaged, and everything was read as if this program had written it.
    #[test]
    fn a_store_of_a_later_format_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("slices/00")).expect("a folder");
        std::fs::write(folder.path().join("superblock.json"), r#"{"format_version": 1000}"#).expect("writes");
        let refused = DamagedStore::open(folder.path()).map(drop);
        assert!(matches!(refused, Err(OpenError::FormatTooNew { found: 1000, .. })), "{refused:?}");
    }
}
