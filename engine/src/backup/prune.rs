//! Removes old backups, and the packs that no other backup needs.

use crate::backup::error::BackupError;
use crate::backup::pack::{BlobId, read_index, remove_if_present};
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
/// If a manifest, or the list of a kept backup, is damaged: nobody knows what it needs, so nothing is removed.
///
/// # Panics
/// If `keep` is 0.
pub fn prune(backups: &mut BackupFolder, keep: usize) -> Result<Pruned, BackupError> {
    assert!(keep > 0, "the newest backup is kept");
    let all = backups.backups()?;
    let refused = |damage: &dyn std::fmt::Display| {
        let what = "give this backup up by deleting its files, or repair them";
        BackupError(format!("no old backup was removed, because one is damaged: {damage}: {what}"))
    };
    if let Some(damage) = all.iter().find_map(|backup| backup.damage.as_ref()) {
        return Err(refused(damage));
    }
    let (old, kept) = all.split_at(all.len().saturating_sub(keep));
    let mut needed: HashSet<BlobId> = HashSet::new();
    for backup in kept {
        needed.extend(backups.contents(backup).map_err(|error| refused(&error))?.blobs());
    }
    let mut pruned = Pruned::default();
    for backup in old {
        // The manifest first: without it, the rest is no backup.
        for extension in ["json", "contents"] {
            remove_if_present(&backups.backup_path(&backup.name, extension))?;
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
        backups.remove_pack(number)?;
        backups.packs.remove(&number);
        backups.blobs.retain(|_, (pack, _)| *pack != number);
    }
    Ok(pruned)
}
