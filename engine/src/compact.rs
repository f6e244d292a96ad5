//! Compaction of a stopped store's metadata: the space that a mass deletion freed in it goes back to the file system.
//!
//! Environment after environment gets a compact copy in its place (`cairn_lmdb::compact`); whatever moment a crash chooses,
//! each is either as it was or compact. The store's lock is held, so a store that is in use is refused. Payloads are not
//! touched: a running store gives their space back by itself. The master key is not needed, for nothing is decrypted.

use crate::error::{OpenContext, OpenError};
use crate::limits::{METADATA_HEADROOM, SLICE_MAP_BYTES};
use crate::slice::Slice;
use crate::{store, superblock};
use cairn_lmdb::{CompactOptions, Compaction, compact};
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a store was not compacted. Environments that were done before stay compact.
#[derive(Debug)]
pub enum CompactError {
    /// The folder holds no store.
    NoStore(PathBuf),
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
            Self::NoStore(path) => write!(f, "{} holds no store", path.display()),
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

/// Compacts every environment of the store in `data_dir`, which no process may be using, and calls `done` for each, with its
/// folder. Blocks for as long as reading all metadata twice and writing it once takes.
///
/// # Errors
/// [`CompactError`]; nothing is lost.
pub fn compact_store(data_dir: &Path, mut done: impl FnMut(&Path, Compaction)) -> Result<(), CompactError> {
    let none = || CompactError::NoStore(data_dir.to_owned());
    superblock::identify(data_dir)?.ok_or_else(none)?;
    let _lock = store::lock(data_dir)?;
    let superblock = superblock::identify(data_dir)?.ok_or_else(none)?;
    let slices = (0..superblock.slices).map(|number| Slice::folder_of(data_dir, number).join("meta"));
    // The audit trail and the directory of accounts lie in the store's folder too, once a service has run on it.
    let others = superblock::MADE_BY_OTHERS.map(|name| data_dir.join(name)).into_iter();
    let others = others.filter(|path| path.join("data.mdb").is_file());
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
            Err(cairn_lmdb::Error::NoRoom { needed, available }) => {
                return Err(CompactError::NoRoom { path, needed, available });
            }
            failed => drop(failed.doing("compacting", &path)?),
        }
    }
    Ok(())
}
