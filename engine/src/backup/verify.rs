//! Verifies every byte of a folder of backups.

use crate::backup::error::BackupError;
use crate::backup::pack::{BlobId, read_index};
use crate::backup::progress::Progress;
use crate::backup::repository::{BackupFolder, BlobReader};
use crate::backup::restore::read_blob;
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
    /// Blobs that are damaged.
    pub damaged: u64,
}

/// Reads everything in a folder of backups, and compares it with the manifests. The signatures of these are not checked.
///
/// # Errors
/// If the folder cannot be read, and if `progress` says to end.
pub fn verify_backups(backups: &BackupFolder, progress: &mut Progress<'_>) -> Result<Verified, BackupError> {
    let mut verified = Verified::default();
    let damaged = read_packs(backups, progress, &mut verified)?;
    for backup in backups.backups()? {
        let wrong = backups.contents(&backup).and_then(|contents| {
            backups.check_packs(&contents.header)?;
            let is_bad = |id: &BlobId| damaged.contains(id) || !backups.blobs.contains_key(id);
            match contents.blobs().filter(is_bad).count() {
                0 => Ok(()),
                count => {
                    Err(BackupError(format!("{count} of its pages and payloads are missing or damaged")))
                }
            }
        });
        verified.backups.push((backup.name, wrong.err().map(|error| error.to_string())));
    }
    Ok(verified)
}

/// Reads all packs. Returns the damaged blobs.
fn read_packs(
    backups: &BackupFolder,
    progress: &mut Progress<'_>,
    verified: &mut Verified,
) -> Result<HashSet<BlobId>, BackupError> {
    let folder = backups.packs_folder();
    let mut expected = 0;
    for number in backups.packs.keys() {
        let (blobs, _) = read_index(&folder, *number)?;
        expected += blobs.iter().map(|blob| blob.length).sum::<u64>();
    }
    let mut reader = BlobReader::new(backups);
    let mut damaged = HashSet::new();
    for number in backups.packs.keys() {
        for blob in read_index(&folder, *number)?.0 {
            if !read_blob(&mut reader, &blob.id, &mut |_| Ok(()))? {
                damaged.insert(blob.id);
                verified.damaged += 1;
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
