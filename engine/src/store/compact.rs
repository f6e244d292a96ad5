//! Compaction of a stopped store's metadata: gives freed space back to the file system, for example after a mass deletion.
//!
//! One environment after the other is replaced by a compact copy (`cairn_lmdb::compact`). After a crash at any moment, each is
//! either unchanged or compact. The store's lock is held, so a store that is in use is refused. Payloads are not touched: a
//! running store gives their space back by itself. The master key is not needed, because nothing is decrypted.

use crate::error::{OpenContext, OpenError};
use crate::format::superblock;
use crate::limits::{METADATA_HEADROOM, SLICE_MAP_BYTES};
use crate::store::stopped_store::StoppedStore;
use cairn_lmdb::{CompactOptions, Compaction, compact};
use std::fmt;
use std::path::{Path, PathBuf};

/// The error of a store that was not compacted. Environments that were compacted before the error stay compact.
#[derive(Debug)]
pub enum CompactError {
    /// The store cannot be used.
    Open(OpenError),
    /// A copy of this environment does not fit on the file system.
    NoRoom {
        /// The environment.
        path: PathBuf,
        /// Bytes that the copy takes.
        needed: u64,
        /// Bytes that are free.
        available: u64,
    },
}

impl fmt::Display for CompactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::NoRoom { path, needed, available } => write!(
                f,
                "the compact copy of {} needs {needed} bytes beside the original, {available} are free: make room for it; \
                 this environment is as it was",
                path.display()
            ),
        }
    }
}

impl std::error::Error for CompactError {}

impl From<OpenError> for CompactError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

/// Compacts every environment of the store in `data_dir`. Calls `done` with the folder of each.
///
/// No process may be using the store. Blocks while all metadata is read twice and written once.
///
/// # Errors
/// [`CompactError`]. No data is lost.
pub fn compact_store(data_dir: &Path, mut done: impl FnMut(&Path, Compaction)) -> Result<(), CompactError> {
    let store = StoppedStore::lock(data_dir)?;
    // The audit trail and the directory of accounts exist only after a service has run on the store.
    let others = superblock::FOREIGN_ENVIRONMENTS.map(|name| data_dir.join(name)).into_iter();
    let others = others.filter(|path| path.join("data.mdb").is_file());
    let slices = store.slice_environments();
    for path in std::iter::once(data_dir.join("control")).chain(others).chain(slices) {
        if !path.join("data.mdb").is_file() {
            let what = "the environment's data file is missing".to_owned();
            return Err(OpenError::Damaged { path, what }.into());
        }
        let stat = rustix::fs::statvfs(&path).map_err(std::io::Error::from).doing("examining", &path)?;
        let options = CompactOptions {
            map_bytes: SLICE_MAP_BYTES,
            headroom_bytes: METADATA_HEADROOM,
            available_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        };
        match compact(&path, options) {
            Ok(compaction) => done(&path, compaction),
            Err(cairn_lmdb::Error::NoSpaceForCopy { needed, available }) => {
                return Err(CompactError::NoRoom { path, needed, available });
            }
            failed => drop(failed.doing("compacting", &path)?),
        }
    }
    Ok(())
}
