//! Verifies every byte of a folder of backups.

use crate::backup::error::BackupError;
use crate::backup::pack::{BlobId, open_pack, read_index};
use crate::backup::places::places_of;
use crate::backup::progress::Progress;
use crate::backup::repository::BackupFolder;
use std::collections::HashSet;

/// The result of a verification.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Each backup with what is wrong with it, if anything is.
    pub backups: Vec<(String, Option<String>)>,
    /// Blobs that were read.
    pub blobs: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Damaged blobs that a backup lacks. Those that were written again, or that no backup needs, do not count. If a backup
    /// cannot be read, all that have no whole copy do: nobody knows what it needs. If damage could not be noted, all of it
    /// counts.
    pub damaged: u64,
    /// Whether the next backup knows which blobs are damaged, and writes them again.
    pub is_noted: bool,
}

/// Reads everything in a folder of backups, and compares it with the manifests. The signatures of these are not checked. Notes
/// in the folder which blobs are damaged, if that is possible.
///
/// # Errors
/// If the folder cannot be read, and if `progress` says to end.
pub fn verify_backups(
    backups: &mut BackupFolder,
    progress: &mut Progress<'_>,
) -> Result<Verified, BackupError> {
    let mut verified = Verified::default();
    let damaged = read_packs(backups, progress, &mut verified)?;
    let damaged_ids: HashSet<BlobId> = damaged.iter().map(|(_, id)| *id).collect();
    verified.is_noted = backups.note_damage(damaged).is_ok();
    let mut needed = HashSet::new();
    for backup in backups.backups()? {
        let lacking = backups.contents(&backup).and_then(|contents| {
            let places = places_of(backups, &contents.header)?;
            Ok(contents.blobs().filter(|id| !places.contains_key(id)).collect::<Vec<_>>())
        });
        let wrong = match lacking {
            Ok(lacking) if lacking.is_empty() => None,
            Ok(lacking) => {
                let wrong = format!("{} of its pages and payloads are missing or damaged", lacking.len());
                needed.extend(lacking);
                Some(wrong)
            }
            Err(error) => {
                needed.extend(damaged_ids.iter().filter(|id| !backups.blobs.contains_key(*id)));
                Some(error.to_string())
            }
        };
        verified.backups.push((backup.name, wrong));
    }
    // What is not noted would be taken for whole by the next backup.
    verified.damaged =
        if verified.is_noted { damaged_ids.intersection(&needed).count() } else { damaged_ids.len() } as u64;
    Ok(verified)
}

/// Reads all packs. Returns the damaged blobs with their packs. Of a missing pack, all are.
fn read_packs(
    backups: &BackupFolder,
    progress: &mut Progress<'_>,
    verified: &mut Verified,
) -> Result<HashSet<(u32, BlobId)>, BackupError> {
    let folder = backups.packs_folder();
    let mut expected = 0;
    for number in backups.packs.keys() {
        let (blobs, _) = read_index(&folder, *number)?;
        expected += blobs.iter().map(|blob| blob.length).sum::<u64>();
    }
    let mut damaged = HashSet::new();
    for number in backups.packs.keys() {
        let pack = open_pack(&folder, *number)?;
        for blob in read_index(&folder, *number)?.0 {
            if !pack.as_ref().map_or(Ok(false), |pack| blob.read(pack, &mut |_| Ok(())))? {
                damaged.insert((*number, blob.id));
            }
            verified.blobs += 1;
            verified.bytes += blob.length;
            if !progress(verified.bytes, expected) {
                return Err(BackupError("the verification was interrupted".to_owned()));
            }
        }
    }
    Ok(damaged)
}
