//! Power cuts of a simulated disk: what the next start finds.
//!
//! A cut leaves the durable images and a subset of the changes since the last flush that depends on a seed. Each write is
//! kept as a whole, lost as a whole, or torn at sectors of 512 bytes. Changes of length, and changes of names, are kept up to
//! some point of their order, as a journal keeps them.

use super::simulated_disk::{Change, FileState, Names, PAGE_BYTES};
use super::{Random, SimulatedDisk};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

const SECTOR_BYTES: usize = 512;
// One bit of a random u64 decides about each sector of a page.
const _: () = assert!(PAGE_BYTES.is_multiple_of(SECTOR_BYTES) && PAGE_BYTES / SECTOR_BYTES <= 64);

/// The changes since the last flush that remain after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// All of them.
    All,
    /// None of them.
    Nothing,
    /// A subset that depends on the seed, with torn writes.
    Torn(u64),
}

/// The content of a disk at one moment, flushed or not.
#[derive(Clone, Debug)]
pub struct DiskSnapshot {
    files: Vec<FileState>,
    names: Names,
}

impl SimulatedDisk {
    /// Returns a snapshot of this moment.
    #[must_use]
    pub fn snapshot(&self) -> DiskSnapshot {
        let (files, names) = self.files_and_names();
        DiskSnapshot { files, names }
    }
}

impl DiskSnapshot {
    /// Returns whether everything was flushed. Then all cuts are the same.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.names.changes.is_empty() && self.files.iter().all(|file| file.changes.is_empty())
    }

    /// Returns the disk after a power cut at this moment, for a store in the data folder `root`.
    #[must_use]
    pub fn cut(&self, root: &Path, kept: Kept) -> SimulatedDisk {
        let mut random = Random::new(if let Kept::Torn(seed) = kept { seed } else { 0 });
        let files = self.files.iter().map(|file| file.after_cut(kept, &mut random)).collect();
        let mut names = self.names.durable.clone();
        let kept_names = kept.ordered(self.names.changes.len(), &mut random);
        for change in self.names.changes.iter().take(kept_names).flatten() {
            change.apply(&mut names);
        }
        SimulatedDisk::holding(root, random.next(), files, names)
    }
}

impl Kept {
    /// Returns how many of `count` ordered changes are kept.
    fn ordered(self, count: usize, random: &mut Random) -> usize {
        match self {
            Self::All => count,
            Self::Nothing => 0,
            Self::Torn(_) => random.index(count + 1),
        }
    }
}

impl FileState {
    fn after_cut(&self, kept: Kept, random: &mut Random) -> Self {
        let mut image = Arc::clone(&self.durable);
        let lengths: Vec<u64> = self.changes.iter().filter_map(Change::length).collect();
        let kept_lengths = kept.ordered(lengths.len(), random);
        let length = kept_lengths.checked_sub(1).map_or(self.durable_length, |last| lengths[last]);
        // One decision for each write, in their order.
        let mut fates: HashMap<u64, u64> = HashMap::new();
        for change in &self.changes {
            let Change::Page { write, number, page, .. } = change else { continue };
            let fate = *fates.entry(*write).or_insert_with(|| random.below(3));
            let sectors = match (kept, fate) {
                (Kept::All, _) | (Kept::Torn(_), 0) => u64::MAX,
                (Kept::Nothing, _) | (Kept::Torn(_), 1) => continue,
                (Kept::Torn(_), _) => random.next(),
            };
            let pages = Arc::make_mut(&mut image);
            let mut mixed = pages.get(number).map_or([0; PAGE_BYTES], |page| **page);
            let both = mixed.chunks_mut(SECTOR_BYTES).zip(page.chunks(SECTOR_BYTES));
            for (_, (old, new)) in both.enumerate().filter(|(sector, _)| sectors >> sector & 1 == 1) {
                old.copy_from_slice(new);
            }
            pages.insert(*number, Arc::new(mixed));
        }
        if image.last_key_value().is_some_and(|(last, _)| (last + 1) * PAGE_BYTES as u64 > length) {
            Arc::make_mut(&mut image).split_off(&length.div_ceil(PAGE_BYTES as u64));
        }
        Self { live: Arc::clone(&image), length, durable: image, durable_length: length, changes: Vec::new() }
    }
}

impl Change {
    fn length(&self) -> Option<u64> {
        if let Self::Length(bytes) = self { Some(*bytes) } else { None }
    }
}
