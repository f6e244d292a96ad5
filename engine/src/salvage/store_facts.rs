//! Facts about a damaged store: its id, its slices, the names of its buckets.

use super::target::SalvageLoss;
use crate::format::block::block_check;
use crate::format::superblock::{self, StoreId};
use cairn_lmdb::{Record, SalvagedEnvironment};
use cairn_model::BucketName;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The offset of the store's id in the header of a volume (`device/volume.rs`).
const STORE_ID_IN_VOLUME: usize = 12;
/// The records of a bucket have at least 17 bytes; the first 8 are the id.
const BUCKET_RECORD_BYTES_MIN: usize = 17;

/// The known facts about a store.
pub(super) struct StoreFacts {
    /// The ids that it may have: that of the superblock, then those of the volumes. Sealed payloads cannot be opened without
    /// it.
    pub(super) ids_of_store: Vec<StoreId>,
    names: HashMap<u64, String>,
    /// Whether the catalog of buckets was read completely.
    pub(super) has_all_buckets: bool,
}

/// Returns the slices of a data folder with their folders, in order.
pub(super) fn slices(data_dir: &Path) -> Vec<(u16, PathBuf)> {
    let entries = std::fs::read_dir(data_dir.join("slices")).into_iter().flatten().flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse().ok();
    let mut found: Vec<_> =
        entries.map(|entry| entry.path()).filter_map(|path| Some((number(&path)?, path))).collect();
    found.sort();
    found
}

impl StoreFacts {
    /// Reads superblock and catalog. Also returns what is wrong with them.
    pub(super) fn read(data_dir: &Path, slices: &[(u16, PathBuf)]) -> (Self, Vec<SalvageLoss>) {
        let mut losses = Vec::new();
        let mut lose = |reason: String| losses.push(SalvageLoss { reason, ..SalvageLoss::default() });
        let identified = superblock::identify(data_dir);
        match &identified {
            Ok(Some(superblock)) => {
                let found = u16::try_from(slices.len()).unwrap_or(u16::MAX);
                if found < superblock.slices {
                    lose(format!("{} slices are missing", superblock.slices - found));
                }
            }
            Ok(None) => lose("the superblock is missing".to_owned()),
            Err(error) => lose(format!("the superblock is damaged: {error}")),
        }
        let mut ids_of_store: Vec<_> =
            identified.ok().flatten().map(|superblock| superblock.store).into_iter().collect();
        for id in stores_of_volumes(slices) {
            if !ids_of_store.contains(&id) {
                if !ids_of_store.is_empty() {
                    lose("superblock and volumes have different ids of the store".to_owned());
                }
                ids_of_store.push(id);
            }
        }
        let mut names = HashMap::new();
        let mut control = SalvagedEnvironment::open(&data_dir.join("control"));
        control.faults().iter().for_each(|fault| lose(format!("control: {fault}")));
        let buckets = control.table("buckets", &is_bucket);
        buckets.each(&control, &mut |found| {
            if let Some(id) = id_of(&found.record)
                && is_bucket(found.key, &found.record)
            {
                names.insert(id, String::from_utf8_lossy(found.key).into_owned());
            }
        });
        let has_all_buckets = buckets.lost.all().is_empty();
        if !has_all_buckets {
            lose("the catalog of buckets is damaged: some names may be unknown".to_owned());
        }
        (Self { ids_of_store, names, has_all_buckets }, losses)
    }

    /// Returns the name of a bucket, or a name made of its id.
    pub(super) fn name(&self, bucket: u64) -> String {
        self.names.get(&bucket).cloned().unwrap_or_else(|| format!("bucket-{bucket}"))
    }

    /// Returns whether a bucket may have this name, which the catalog or [`Self::name`] gives.
    pub(super) fn may_have_name(&self, name: &str) -> bool {
        !self.has_all_buckets || name.starts_with("bucket-") || self.names.values().any(|known| known == name)
    }

    /// Returns the ids of the buckets that are known by name.
    pub(super) fn ids(&self) -> HashMap<String, u64> {
        self.names.iter().map(|(id, name)| (name.clone(), *id)).collect()
    }

    /// Returns whether the catalog names a bucket, or may have named it.
    pub(super) fn may_have(&self, bucket: u64) -> bool {
        !self.has_all_buckets || self.names.contains_key(&bucket)
    }
}

fn is_bucket(key: &[u8], record: &Record<'_>) -> bool {
    let name = std::str::from_utf8(key).ok().and_then(|name| BucketName::parse(name).ok());
    name.is_some() && (1..=2).contains(&record.version) && record.body.len() >= BUCKET_RECORD_BYTES_MIN
}

fn id_of(record: &Record<'_>) -> Option<u64> {
    record.body.first_chunk().map(|id| u64::from_le_bytes(*id))
}

/// Every volume has the id of its store.
fn stores_of_volumes(slices: &[(u16, PathBuf)]) -> impl Iterator<Item = StoreId> {
    let volumes = slices.iter().flat_map(|(_, folder)| std::fs::read_dir(folder.join("volumes"))).flatten();
    volumes.flatten().filter_map(|entry| {
        let mut unit = [0; 4096];
        File::open(entry.path()).ok()?.read_exact_at(&mut unit, 0).ok()?;
        let (head, check) = unit.split_last_chunk()?;
        let id = head.get(STORE_ID_IN_VOLUME..)?.first_chunk()?;
        let is_whole = head.starts_with(b"CAIRNVOL") && block_check(head) == u64::from_le_bytes(*check);
        is_whole.then_some(StoreId(*id))
    })
}
