//! Gives up the damaged commit logs of a stopped store.
//!
//! `cairn_lmdb::discard_log` describes what is kept and what is lost.

use crate::error::{OpenContext as _, OpenError};
use crate::slice::tables::METADATA_OPTIONS;
use crate::store::stopped_store::StoppedStore;
use cairn_lmdb::{DamagedLog, discard_log, examine_log};
use std::path::{Path, PathBuf};

/// What is to be done with damaged commit logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardMode {
    /// They are only examined. Nothing is changed.
    Examine,
    /// What precedes the damage is kept, and the rest is given up.
    Discard,
}

/// Examines the commit logs of the store in `data_dir`, and gives up the damaged ones. Returns them with their folders.
///
/// No process may be using the store. The master key is not needed. If one log cannot be given up, none is changed after it; another
/// call continues.
///
/// # Errors
/// [`OpenError`].
pub fn discard_damaged_logs(
    data_dir: &Path,
    mode: DiscardMode,
) -> Result<Vec<(PathBuf, DamagedLog)>, OpenError> {
    let store = StoppedStore::lock(data_dir)?;
    let mut damaged = Vec::new();
    for folder in store.slice_environments() {
        let found = match mode {
            DiscardMode::Examine => examine_log(&folder),
            DiscardMode::Discard => discard_log(&folder, METADATA_OPTIONS),
        };
        damaged.extend(found.doing("examining the commit log in", &folder)?.map(|log| (folder, log)));
    }
    Ok(damaged)
}
