//! The shadow of a slice: what its object records amount to, up to the place that a scan has reached.

use crate::changes::{Change, ChangeKind};
use crate::extent::Extent;
use crate::free_map::{CHUNK_BYTES, CHUNK_UNITS};
use cairn_lmdb::Totals;
use std::collections::BTreeMap;

/// Bits of one chunk of the free map, in words: bit n of word m is unit 64·m + n.
pub(super) const CHUNK_WORDS: usize = CHUNK_BYTES / 8;
pub(super) type Words = [u64; CHUNK_WORDS];
const WORD_UNITS: u32 = 64;

/// A set of units, in the shape of the free map. It takes as much memory as the free map takes on disk, at most 32 MiB
/// for each TiB of volumes: units outside of volumes are never put in.
#[derive(Debug, Default)]
pub(super) struct UnitSet {
    /// By volume and chunk.
    pub(super) chunks: BTreeMap<(u32, u32), Box<Words>>,
}

impl UnitSet {
    /// Adds the units of an extent; returns how many of them were in the set already.
    pub(super) fn insert(&mut self, extent: Extent) -> u32 {
        let mut twice = 0;
        for (chunk, word, mask) in masks(extent) {
            let words = self.chunks.entry(chunk).or_insert_with(|| Box::new([0; CHUNK_WORDS]));
            if let Some(word) = words.get_mut(word) {
                twice += (*word & mask).count_ones();
                *word |= mask;
            }
        }
        twice
    }

    /// Takes the units of an extent out.
    pub(super) fn remove(&mut self, extent: Extent) {
        for (chunk, word, mask) in masks(extent) {
            if let Some(word) = self.chunks.get_mut(&chunk).and_then(|words| words.get_mut(word)) {
                *word &= !mask;
            }
        }
    }

    /// Number of units.
    pub(super) fn units(&self) -> u64 {
        self.chunks.values().flat_map(|words| words.iter()).map(|word| u64::from(word.count_ones())).sum()
    }
}

/// The words that hold an extent's bits: volume and chunk, number of the word, the bits in it.
fn masks(extent: Extent) -> impl Iterator<Item = ((u32, u32), usize, u64)> {
    let (mut unit, end) = (extent.start, extent.start.saturating_add(extent.units));
    std::iter::from_fn(move || {
        let left = end.checked_sub(unit).filter(|left| *left > 0)?;
        let (chunk, word, bit) = (unit / CHUNK_UNITS, unit % CHUNK_UNITS / WORD_UNITS, unit % WORD_UNITS);
        let count = left.min(WORD_UNITS - bit);
        unit += count;
        Some(((extent.volume, chunk), word as usize, (u64::MAX >> (WORD_UNITS - count)) << bit))
    })
}

/// Records and bytes of one bucket in this slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

/// See the file's first lines.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    pub(super) owned: UnitSet,
    /// By id of the bucket; buckets without records have no entry.
    pub(super) usage: BTreeMap<u64, Sums>,
    /// Count and hash of the table of objects, damaged records included.
    pub(super) totals: Totals,
}

impl Shadow {
    /// Adds a record to the sums.
    pub(super) fn add_record(&mut self, bucket: u64, bytes: u64) {
        let sums = self.usage.entry(bucket).or_default();
        sums.objects += 1;
        sums.bytes = sums.bytes.wrapping_add(bytes);
    }

    /// Counts a stored record, whole or not.
    pub(super) fn count(&mut self, hash: u64) {
        self.totals.records += 1;
        self.totals.hash = self.totals.hash.wrapping_add(hash);
    }

    /// Applies a change of a record that was read before.
    pub(super) fn apply(&mut self, change: Change) {
        match change.kind {
            ChangeKind::Added => {
                self.count(change.hash);
                self.add_record(change.bucket, change.bytes);
                for extent in change.extents {
                    self.owned.insert(extent);
                }
            }
            ChangeKind::Removed => {
                self.totals.records = self.totals.records.wrapping_sub(1);
                self.totals.hash = self.totals.hash.wrapping_sub(change.hash);
                let sums = self.usage.entry(change.bucket).or_default();
                sums.objects = sums.objects.wrapping_sub(1);
                sums.bytes = sums.bytes.wrapping_sub(change.bytes);
                if *sums == Sums::default() {
                    self.usage.remove(&change.bucket);
                }
                for extent in change.extents {
                    self.owned.remove(extent);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::UnitSet;
    use crate::extent::Extent;
    use crate::free_map::CHUNK_UNITS;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a plain set, around the edges of words and chunks.
        #[test]
        fn a_unit_set_is_a_set(
            ops in prop::collection::vec((any::<bool>(), 0u32..2, CHUNK_UNITS - 200..CHUNK_UNITS + 200, 1u32..150), 1..40)
        ) {
            let (mut set, mut plain) = (UnitSet::default(), BTreeSet::new());
            for (add, volume, start, units) in ops {
                let extent = Extent { volume, start, units };
                let all = (start..start + units).map(|unit| (volume, unit));
                if add {
                    let twice = all.clone().filter(|unit| plain.contains(unit)).count();
                    prop_assert_eq!(set.insert(extent) as usize, twice);
                    plain.extend(all);
                } else {
                    set.remove(extent);
                    all.for_each(|unit| {
                        plain.remove(&unit);
                    });
                }
                prop_assert_eq!(set.units(), plain.len() as u64);
            }
        }
    }
}
