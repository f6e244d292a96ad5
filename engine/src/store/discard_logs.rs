//! Gives up the damaged commit logs of a stopped store.
//!
//! `cairn_lmdb::discard_log` describes what is kept and what is lost.

use crate::error::{OpenContext as _, OpenError};
use crate::format::keys;
use crate::slice::event_source::EventSource;
use crate::slice::tables::{METADATA_OPTIONS, OBJECTS_TABLE};
use crate::store::bucket_catalog::BucketCatalog;
use crate::store::stopped_store::StoppedStore;
use cairn_lmdb::{DamagedLog, discard_log, examine_log};
use cairn_model::BucketName;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The treatment of damaged commit logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardMode {
    /// They are only examined. No log and no data is changed.
    Examine,
    /// Everything before the damage is kept, and the rest is given up.
    Discard,
}

/// An object that a lost transaction changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostObject {
    /// The bucket. `None` if the catalog of buckets has none with that id any more, or cannot be read.
    pub bucket: Option<BucketName>,
    /// The key.
    pub key: Vec<u8>,
}

/// The damaged commit log of a slice.
#[derive(Clone, Debug)]
pub struct DamagedSlice {
    /// The folder of the slice's metadata.
    pub folder: PathBuf,
    /// The damaged log: its damage, and what is kept and lost.
    pub log: DamagedLog,
    /// The objects that the whole records after the damage change, in order. The log's length bounds their number.
    pub lost_objects: Vec<LostObject>,
}

/// Examines the commit logs of the store in `data_dir`, and gives up the damaged ones. Returns these.
///
/// No process may be using the store. The master key is not needed. If one log cannot be given up, none is changed after it;
/// another call continues.
///
/// # Errors
/// [`OpenError`].
pub fn discard_damaged_logs(data_dir: &Path, mode: DiscardMode) -> Result<Vec<DamagedSlice>, OpenError> {
    let store = match mode {
        DiscardMode::Examine => StoppedStore::lock_to_examine(data_dir)?,
        DiscardMode::Discard => StoppedStore::lock(data_dir)?,
    };
    let mut damaged = Vec::new();
    for folder in store.slice_environments() {
        let mut changed = BTreeSet::new();
        let mut lost = |table: &str, key: &[u8]| {
            let decoded = keys::decode(key).filter(|_| table == OBJECTS_TABLE);
            changed.extend(decoded.map(|(bucket, key, _)| (bucket, key)));
        };
        let found = match mode {
            DiscardMode::Examine => examine_log(&folder, &mut lost),
            DiscardMode::Discard => discard_log(&folder, METADATA_OPTIONS, &mut lost),
        };
        if let Some(log) = found.doing("examining the commit log in", &folder)? {
            damaged.push((folder, log, changed));
        }
    }
    if damaged.is_empty() {
        return Ok(Vec::new());
    }
    let names = bucket_names(data_dir, &store);
    let object = |(bucket, key)| LostObject { bucket: names.get(&bucket).cloned(), key };
    let slices = damaged.into_iter().map(|(folder, log, changed)| {
        let mut lost_objects: Vec<_> = changed.into_iter().map(object).collect();
        lost_objects.sort();
        DamagedSlice { folder, log, lost_objects }
    });
    Ok(slices.collect())
}

/// Returns the names of all buckets by their ids, as far as they can be read: this command must work on a damaged store.
/// Opening the catalog writes its lock file, and tidies up after a crash as a start does.
fn bucket_names(data_dir: &Path, store: &StoppedStore) -> BTreeMap<u64, BucketName> {
    let events = EventSource::new(&Arc::default(), false);
    let buckets = BucketCatalog::open(data_dir, store.id(), events).map(|(_, buckets)| buckets);
    buckets.unwrap_or_default().into_iter().map(|(name, bucket)| (bucket.id, name)).collect()
}
