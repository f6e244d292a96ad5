//! K-way merge of one table of all slices, with seeks.
//!
//! Records come in key order.
//!
//! Each slice is read in one snapshot. The snapshots end with the merge.

use crate::error::EngineError;
use crate::format::keys;
use cairn_lmdb::{ReadTxn, Record, Scan, Table};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A cursor over the records of one slice, with the next record already read.
struct SliceCursor<'t> {
    txn: &'t ReadTxn<'t>,
    table: Table,
    scan: Scan<'t>,
    head: (&'t [u8], Record<'t>),
}

/// Orders cursors by their next key, so that the heap yields the smallest key first.
struct ByKey<'t>(SliceCursor<'t>);

impl ByKey<'_> {
    fn key(&self) -> &[u8] {
        self.0.head.0
    }
}

impl PartialEq for ByKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for ByKey<'_> {}
impl PartialOrd for ByKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for ByKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(self.key())
    }
}

/// The merged records of all slices.
pub(crate) struct Merge<'t> {
    heap: BinaryHeap<ByKey<'t>>,
    /// The merge ends at the first key of each slice that does not begin with this.
    prefix: &'t [u8],
    /// Number of records read and seeks made, without `versions`.
    steps: usize,
    /// Number of older versions read.
    versions: usize,
}

/// Older versions of a key that count as one step. They are mostly on the same page, so reading one takes a fraction of a seek.
const VERSIONS_PER_STEP: usize = 8;

impl<'t> Merge<'t> {
    /// Begins at the key `start` in each slice.
    pub(crate) fn new(
        slices: impl Iterator<Item = (&'t ReadTxn<'t>, Table)>,
        start: &[u8],
        prefix: &'t [u8],
    ) -> Result<Self, EngineError> {
        let mut heap = BinaryHeap::new();
        for (txn, table) in slices {
            let mut scan = txn.scan(table, start)?;
            let first = scan.next().transpose()?.filter(|(key, _)| key.starts_with(prefix));
            heap.extend(first.map(|head| ByKey(SliceCursor { txn, table, scan, head })));
        }
        Ok(Self { heap, prefix, steps: 0, versions: 0 })
    }

    /// The remaining record with the smallest key.
    pub(crate) fn head(&self) -> Option<(&'t [u8], Record<'t>)> {
        self.heap.peek().map(|ByKey(cursor)| cursor.head)
    }

    /// The snapshot and the table that the head is from.
    pub(crate) fn source(&self) -> Option<(&'t ReadTxn<'t>, Table)> {
        self.heap.peek().map(|ByKey(cursor)| (cursor.txn, cursor.table))
    }

    /// Counts seeks that were made beside the merge.
    pub(crate) const fn note_seeks(&mut self, seeks: usize) {
        self.steps += seeks;
    }

    /// Number of records read and seeks made since the merge began.
    pub(crate) const fn steps(&self) -> usize {
        self.steps + self.versions / VERSIONS_PER_STEP
    }

    /// Advances past the head.
    pub(crate) fn advance(&mut self) -> Result<(), EngineError> {
        self.steps += 1;
        self.read_next()
    }

    /// Advances past the head to an older version of its key.
    pub(crate) fn advance_to_older(&mut self) -> Result<(), EngineError> {
        self.versions += 1;
        self.read_next()
    }

    fn read_next(&mut self) -> Result<(), EngineError> {
        let Some(mut top) = self.heap.peek_mut() else { return Ok(()) };
        match top.0.scan.next().transpose()?.filter(|(key, _)| key.starts_with(self.prefix)) {
            Some(head) => top.0.head = head,
            None => drop(PeekMut::pop(top)),
        }
        Ok(())
    }

    /// Advances to the first key at or after `target`. Costs one seek per slice that has smaller keys.
    pub(crate) fn skip_to(&mut self, target: &[u8]) -> Result<(), EngineError> {
        while let Some(mut top) = self.heap.peek_mut().filter(|top| top.key() < target) {
            self.steps += 1;
            let mut scan = top.0.txn.scan(top.0.table, target)?;
            match scan.next().transpose()?.filter(|(key, _)| key.starts_with(self.prefix)) {
                Some(head) => (top.0.scan, top.0.head) = (scan, head),
                None => drop(PeekMut::pop(top)),
            }
        }
        Ok(())
    }

    /// Advances past all versions of the head's object key. Costs at most one seek per slice, however many there are.
    pub(crate) fn skip_key(&mut self) -> Result<(), EngineError> {
        let Some((key, _)) = self.head() else { return Ok(()) };
        self.skip_versions(key.get(..keys::shared_length(key)).unwrap_or_default())
    }

    /// Advances past the remaining versions whose encoded keys begin with `shared`, as [`Self::skip_key`].
    pub(crate) fn skip_versions(&mut self, shared: &[u8]) -> Result<(), EngineError> {
        let is_of_key = |merge: &Self| merge.head().is_some_and(|(key, _)| key.starts_with(shared));
        if is_of_key(self) {
            self.advance()?;
        }
        if is_of_key(self) {
            self.skip_to(&keys::after_all_of(shared))?;
        }
        Ok(())
    }
}

/// The common prefix of a key, if the delimiter occurs after the prefix of the list.
pub(crate) fn common_prefix<'k>(key: &'k [u8], prefix: &[u8], delimiter: Option<&[u8]>) -> Option<&'k [u8]> {
    let delimiter = delimiter.filter(|delimiter| !delimiter.is_empty())?;
    let rest = key.get(prefix.len()..)?;
    let at = rest.windows(delimiter.len()).position(|window| window == delimiter)?;
    key.get(..prefix.len() + at + delimiter.len())
}
