//! The replica of a slice: running totals of the records that a scan has read.

use crate::format::extent::Extent;
use crate::format::free_map::{CHUNK_BYTES, CHUNK_UNITS};
use crate::slice::change_log::{Change, ChangeKind, FollowedTable};
use crate::types::bucket::Usage;
use cairn_lmdb::Totals;
use std::collections::BTreeMap;

/// Bits of one chunk of the free map, in words: bit n of word m is unit 64·m + n.
pub(super) const CHUNK_WORDS: usize = CHUNK_BYTES / 8;
pub(super) type Words = [u64; CHUNK_WORDS];
const WORD_UNITS: u32 = 64;

/// A set of units, with the layout of the free map. Takes at most 32 MiB per TiB of volumes: units outside of volumes are
/// never added.
#[derive(Debug, Default)]
pub(super) struct UnitSet {
    /// By volume and chunk.
    pub(super) chunks: BTreeMap<(u32, u32), Box<Words>>,
}

impl UnitSet {
    /// Adds the units of an extent; returns how many of them were already in the set.
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

    /// Removes the units of an extent.
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

/// The words that hold the bits of an extent: volume and chunk, index of the word, bits in the word.
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

/// The totals of the records read so far.
#[derive(Debug, Default)]
pub(super) struct Replica {
    pub(super) owned: UnitSet,
    /// Usage by bucket id. Buckets without records have no entry.
    pub(super) usage: BTreeMap<u64, Usage>,
    /// Number of part records.
    pub(super) parts: u64,
    /// Count and hash of the records that were read, including damaged ones.
    pub(super) totals: Totals,
}

impl Replica {
    /// Adds to the usage of a bucket. Removals are added as wrapped negative numbers.
    pub(super) fn add_usage(&mut self, bucket: u64, counts: &Usage) {
        let usage = self.usage.entry(bucket).or_default();
        usage.add(counts);
        if *usage == Usage::default() {
            self.usage.remove(&bucket);
        }
    }

    /// Counts a stored record, damaged or not.
    pub(super) fn count(&mut self, table: FollowedTable, hash: u64) {
        self.totals.records += 1;
        self.totals.hash = self.totals.hash.wrapping_add(hash);
        self.parts += u64::from(table == FollowedTable::Parts);
    }

    /// Applies a change if it concerns records that were read: those up to and including `cursor`.
    pub(super) fn apply(&mut self, change: Change, cursor: &Cursor) {
        let was_read = |table: FollowedTable, key: &[u8]| (table, key) <= (cursor.table, &cursor.key);
        match change {
            Change::Record { kind, table, key, bucket, counts, extents, hash } if was_read(table, &key) => {
                match kind {
                    ChangeKind::Added => {
                        self.count(table, hash);
                        self.add_usage(bucket, &counts);
                        extents.iter().for_each(|extent| {
                            self.owned.insert(*extent);
                        });
                    }
                    ChangeKind::Removed => {
                        self.totals.records = self.totals.records.wrapping_sub(1);
                        self.totals.hash = self.totals.hash.wrapping_sub(hash);
                        self.parts = self.parts.wrapping_sub(u64::from(table == FollowedTable::Parts));
                        self.add_usage(bucket, &counts.negated());
                        extents.iter().for_each(|extent| self.owned.remove(*extent));
                    }
                }
            }
            Change::Counts { table, key, bucket, counts } if was_read(table, &key) => {
                self.add_usage(bucket, &counts);
            }
            // The current object of a key is counted with the first version of the key.
            Change::Current { versions, bucket, counts } if was_read(FollowedTable::Objects, &versions) => {
                self.add_usage(bucket, &counts);
            }
            _ => {}
        }
    }
}

/// The position of a scan: table and key of the last record that was read. An empty key is the start of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) table: FollowedTable,
    pub(super) key: Vec<u8>,
}

impl Cursor {
    pub(super) const fn before(table: FollowedTable) -> Self {
        Self { table, key: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::UnitSet;
    use crate::format::extent::Extent;
    use crate::format::free_map::CHUNK_UNITS;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Compares with a standard set, around the edges of words and chunks.
        #[test]
        fn unit_set_behaves_like_a_set(
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
