//! Removes old backups, and the packs that no other backup needs.

use crate::backup::error::{BackupError, Context as _};
use crate::backup::pack::{BlobId, index_path, pack_path, read_index};
use crate::backup::repository::BackupFolder;
use std::collections::HashSet;

/// The removed backups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Backups.
    pub backups: u64,
    /// Bytes of packs.
    pub bytes: u64,
}

/// Removes all backups but the newest `keep`, then the packs of which no kept backup needs anything. A pack of which one blob
/// is needed stays as a whole.
///
/// # Errors
/// If a kept backup cannot be read: then no pack is removed.
///
/// # Panics
/// If `keep` is 0.
pub fn prune(backups: &mut BackupFolder, keep: usize) -> Result<Pruned, BackupError> {
    assert!(keep > 0, "the newest backup is kept");
    let all = backups.backups()?;
    let (old, kept) = all.split_at(all.len().saturating_sub(keep));
    let mut needed: HashSet<BlobId> = HashSet::new();
    for backup in kept {
        needed.extend(backups.contents(backup)?.blobs());
    }
    let mut pruned = Pruned::default();
    for backup in old {
        // The manifest first: without it, the rest is no backup.
        for extension in ["json", "contents"] {
            let path = backups.backup_path(&backup.name, extension);
            std::fs::remove_file(&path).doing("removing", &path)?;
        }
        pruned.backups += 1;
    }
    let folder = backups.packs_folder();
    for number in backups.packs.keys().copied().collect::<Vec<_>>() {
        let (blobs, _) = read_index(&folder, number)?;
        if blobs.iter().any(|blob| needed.contains(&blob.id)) {
            continue;
        }
        pruned.bytes += blobs.iter().map(|blob| blob.length).sum::<u64>();
        // The index first: a pack without one is removed by the next backup.
        for path in [index_path(&folder, number), pack_path(&folder, number)] {
            std::fs::remove_file(&path).doing("removing", &path)?;
        }
        backups.packs.remove(&number);
        backups.blobs.retain(|_, (pack, _)| *pack != number);
    }
    Ok(pruned)
}
