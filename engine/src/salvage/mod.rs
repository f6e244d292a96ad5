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
use crate::store::data_folder::lock_stopped;
use std::io;
use std::path::Path;
use store_facts::StoreFacts;
pub use target::{ContentError, SalvageLoss, SalvageTarget, SalvagedVersion, WriteContent};

/// Gives every version of the store in `data_dir` to the target, or those of one bucket, and all that is lost.
///
/// No process may be using the store. The master key is needed for sealed payloads only. Blocks.
///
/// # Errors
/// [`OpenError::NoStore`], [`OpenError::Locked`], [`OpenError::Io`] of the target.
pub fn salvage(
    data_dir: &Path,
    master_key: Option<&[u8]>,
    bucket: Option<&str>,
    target: &mut dyn SalvageTarget,
) -> Result<(), OpenError> {
    let slices = store_facts::slices(data_dir);
    if slices.is_empty() && !data_dir.join("control").is_dir() {
        return Err(OpenError::NoStore(data_dir.to_owned()));
    }
    let _lock = lock_stopped(data_dir)?;
    let (facts, losses) = StoreFacts::read(data_dir, &slices);
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
    done.doing("salvaging", data_dir)
}
