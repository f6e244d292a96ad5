//! The places of the blobs of a backup.
//!
//! The signed list of a backup names its packs by the hashes of their indexes, and these have the hash of each blob. A blob that
//! is damaged in these packs may have been written again by a later backup. That copy is taken if it has the same hash, so the
//! signature covers it too.

use crate::backup::error::BackupError;
use crate::backup::manifest::Header;
use crate::backup::pack::{Blob, BlobId, Places, open_pack, read_index};
use crate::backup::repository::BackupFolder;
use std::fs::File;

/// Returns where the blobs of a backup are. Those that are known to be damaged, and were not written again, have no place.
///
/// # Errors
/// If an index is not the one of the backup.
pub(super) fn places_of(backups: &BackupFolder, header: &Header) -> Result<Places, BackupError> {
    backups.check_packs(header)?;
    let (mut places, mut lost) = (Places::new(), Vec::new());
    for number in header.packs.iter().map(|pack| pack.number) {
        for (place, blob) in (0..).zip(read_index(&backups.packs_folder(), number)?.0) {
            if backups.damaged.contains(&(number, blob.id)) {
                lost.push(blob);
            } else {
                places.insert(blob.id, (number, place));
            }
        }
    }
    lost.retain(|blob| !places.contains_key(&blob.id));
    lost.sort_unstable_by_key(|blob| backups.blobs.get(&blob.id));
    let mut copies = BlobReader::new(backups, &backups.blobs);
    for blob in lost {
        let Some(place) = copies.place(&blob.id) else { continue };
        if copies
            .find(&blob.id)?
            .is_some_and(|(_, copy)| (copy.hash, copy.length) == (blob.hash, blob.length))
        {
            places.insert(blob.id, place);
        }
    }
    Ok(places)
}

/// Finds blobs in packs. Keeps the last index and the last pack.
pub(super) struct BlobReader<'f> {
    backups: &'f BackupFolder,
    places: &'f Places,
    open: Option<(u32, Option<File>, Vec<Blob>)>,
}

impl<'f> BlobReader<'f> {
    pub(super) const fn new(backups: &'f BackupFolder, places: &'f Places) -> Self {
        Self { backups, places, open: None }
    }

    /// Returns the place of a blob: its pack's number and its number in the pack. Blobs are read fastest in this order.
    pub(super) fn place(&self, id: &BlobId) -> Option<(u32, u32)> {
        self.places.get(id).copied()
    }

    /// Returns the pack that holds a blob, and what the index says about it. `None` if one of them is missing.
    fn find(&mut self, id: &BlobId) -> Result<Option<(&File, Blob)>, BackupError> {
        let Some((number, place)) = self.place(id) else { return Ok(None) };
        if self.open.as_ref().is_none_or(|(open, ..)| *open != number) {
            let folder = self.backups.packs_folder();
            self.open = Some((number, open_pack(&folder, number)?, read_index(&folder, number)?.0));
        }
        let (_, file, blobs) = self.open.as_ref().expect("it was opened");
        let blob = usize::try_from(place).ok().and_then(|place| blobs.get(place));
        Ok(file.as_ref().zip(blob.filter(|blob| blob.id == *id).copied()))
    }

    /// Hands over a blob in pieces. Returns whether it is there and what was written, which is known only at the end.
    pub(super) fn read(
        &mut self,
        id: &BlobId,
        take: &mut dyn FnMut(&[u8]) -> Result<(), BackupError>,
    ) -> Result<bool, BackupError> {
        self.find(id)?.map_or(Ok(false), |(pack, blob)| blob.read(pack, take))
    }
}
