//! A merge of one table of all slices: their records in one order, with seeks past what is not wanted.
//!
//! Each slice is read in one snapshot, which ends with the merge.

use crate::error::EngineError;
use crate::keys;
use cairn_lmdb::{ReadTxn, Record, Scan, Table};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// One slice's records from a place on, with the next one in hand.
struct SliceCursor<'t> {
    txn: &'t ReadTxn<'t>,
    table: Table,
    scan: Scan<'t>,
    head: (&'t [u8], Record<'t>),
}

/// Orders cursors by their next key, smallest first out of the heap.
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

/// See the file's first lines.
pub(crate) struct Merge<'t> {
    heap: BinaryHeap<ByKey<'t>>,
    /// Records whose keys do not begin with this are left out; they stand behind all that do.
    prefix: &'t [u8],
    /// Records read and seeks made so far.
    steps: usize,
}

impl<'t> Merge<'t> {
    /// Begins at `place` in each of the slices.
    pub(crate) fn new(
        slices: impl Iterator<Item = (&'t ReadTxn<'t>, Table)>,
        place: &[u8],
        prefix: &'t [u8],
    ) -> Result<Self, EngineError> {
        let mut heap = BinaryHeap::new();
        for (txn, table) in slices {
            let mut scan = txn.scan(table, place)?;
            let first = scan.next().transpose()?.filter(|(key, _)| key.starts_with(prefix));
            heap.extend(first.map(|head| ByKey(SliceCursor { txn, table, scan, head })));
        }
        Ok(Self { heap, prefix, steps: 0 })
    }

    /// The record with the least key that is left.
    pub(crate) fn head(&self) -> Option<(&'t [u8], Record<'t>)> {
        self.heap.peek().map(|ByKey(cursor)| cursor.head)
    }

    /// Records read and seeks made since the begin.
    pub(crate) const fn steps(&self) -> usize {
        self.steps
    }

    /// Leaves the head behind.
    pub(crate) fn advance(&mut self) -> Result<(), EngineError> {
        let Some(mut top) = self.heap.peek_mut() else { return Ok(()) };
        self.steps += 1;
        match top.0.scan.next().transpose()?.filter(|(key, _)| key.starts_with(self.prefix)) {
            Some(head) => top.0.head = head,
            None => drop(PeekMut::pop(top)),
        }
        Ok(())
    }

    /// Leaves everything in front of `place` behind, with a seek in each slice that has some.
    pub(crate) fn skip_to(&mut self, place: &[u8]) -> Result<(), EngineError> {
        while let Some(mut top) = self.heap.peek_mut().filter(|top| top.key() < place) {
            self.steps += 1;
            let mut scan = top.0.txn.scan(top.0.table, place)?;
            match scan.next().transpose()?.filter(|(key, _)| key.starts_with(self.prefix)) {
                Some(head) => (top.0.scan, top.0.head) = (scan, head),
                None => drop(PeekMut::pop(top)),
            }
        }
        Ok(())
    }

    /// Leaves the head behind with all that belongs to the same object key, of which there may be any number.
    pub(crate) fn skip_key(&mut self) -> Result<(), EngineError> {
        let Some((key, _)) = self.head() else { return Ok(()) };
        let shared = key.get(..keys::shared_length(key)).unwrap_or_default();
        self.advance()?;
        match self.head() {
            Some((next, _)) if next.starts_with(shared) => self.skip_to(&keys::behind_all_of(shared)),
            _ => Ok(()),
        }
    }
}

/// The common prefix of a key, if the delimiter occurs behind the list's prefix.
pub(crate) fn common_prefix<'k>(key: &'k [u8], prefix: &[u8], delimiter: Option<&[u8]>) -> Option<&'k [u8]> {
    let delimiter = delimiter.filter(|delimiter| !delimiter.is_empty())?;
    let rest = key.get(prefix.len()..)?;
    let at = rest.windows(delimiter.len()).position(|window| window == delimiter)?;
    key.get(..prefix.len() + at + delimiter.len())
}
