//! Creates a store, and loads bucket usage when it opens.

use crate::device::files::Files;
use crate::error::{OpenContext as _, OpenError};
use crate::format::superblock::{self, StoreId, Superblock};
use crate::limits::{SLICES_MAX, default_slices};
use crate::slice::Slice;
use crate::store::bucket_catalog::BucketCatalog;
use crate::store::options::StoreOptions;
use crate::types::bucket::Bucket;
use cairn_model::BucketName;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

/// Creates a store in an empty data folder. The superblock is written last, so a crash leaves no store.
pub(super) fn create(
    files: &Files,
    data_dir: &Path,
    options: &StoreOptions,
) -> Result<Superblock, OpenError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let slices = options.slices.unwrap_or_else(|| default_slices(cores)).clamp(1, SLICES_MAX);
    let mut id = [0u8; 16];
    getrandom::fill(&mut id).map_err(std::io::Error::other).doing("creating an identity for", data_dir)?;
    let superblock = Superblock { store: StoreId(id), slices };
    superblock::begin_creation(data_dir)?;
    BucketCatalog::create(data_dir, superblock.store)?;
    for number in 0..slices {
        Slice::create(files, data_dir, superblock, number)?;
    }
    for created in ["slices", "control"] {
        superblock::sync_folder(&data_dir.join(created))?;
    }
    superblock::mark_all_unmade(data_dir)?;
    superblock::create(data_dir, &options.master_key, superblock.store, slices)?;
    Ok(superblock)
}

/// Adds the usage in all slices to the buckets. Usage of an unknown bucket is logged and ignored.
pub(super) fn load_usage(
    data_dir: &Path,
    slices: &[Arc<Slice>],
    buckets: &BTreeMap<BucketName, Arc<Bucket>>,
) -> Result<(), OpenError> {
    let by_id: HashMap<u64, &Arc<Bucket>> = buckets.values().map(|bucket| (bucket.id, bucket)).collect();
    for slice in slices {
        let loaded = slice.each_usage(|id, usage| match by_id.get(&id) {
            Some(bucket) => bucket.load_usage(usage),
            None => tracing::warn!(target: "service::engine", slice = slice.number, id, objects = usage.objects, "usage of a bucket that does not exist"),
        });
        loaded.map_err(|error| OpenError::Damaged { path: data_dir.to_owned(), what: error.to_string() })?;
    }
    Ok(())
}
