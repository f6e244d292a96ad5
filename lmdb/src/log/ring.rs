//! The log's file as a ring: which parts are in use.
//!
//! Records follow each other. A record that does not fit before the end of the file is placed at its beginning, if the records
//! there are not needed any more. A reader therefore looks for the next record behind the last one, and then at the beginning.

use std::collections::VecDeque;

/// The used part of the file. Offsets and lengths are in bytes.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Length of the file.
    pub(crate) capacity: u64,
    /// The position of the next record, if it fits.
    head: u64,
    /// Sequence and offset of each record that is needed, in their order.
    needed: VecDeque<(u64, u64)>,
}

impl Ring {
    /// Returns a ring without needed records. The next one is placed at `head` if it fits.
    pub(crate) const fn empty(capacity: u64, head: u64) -> Self {
        Self { capacity, head, needed: VecDeque::new() }
    }

    /// Places the record with the next sequence. Returns its offset, or `None` if there is no room.
    pub(crate) fn place(&mut self, sequence: u64, bytes: u64) -> Option<u64> {
        assert!(bytes > 0, "no record is empty");
        assert!(self.needed.back().is_none_or(|(last, _)| *last < sequence), "sequences only grow");
        let offset = match self.needed.front() {
            // The needed records end at the head, and others begin after it.
            Some((_, tail)) if self.head <= *tail => (self.head + bytes <= *tail).then_some(self.head)?,
            _ if self.head + bytes <= self.capacity => self.head,
            Some((_, tail)) => (bytes <= *tail).then_some(0)?,
            None => (bytes <= self.capacity).then_some(0)?,
        };
        self.head = offset + bytes;
        self.needed.push_back((sequence, offset));
        Some(offset)
    }

    /// Takes the last placed record back. It was placed when the head was at `head`.
    pub(crate) fn take_back(&mut self, head: u64) {
        self.needed.pop_back();
        self.head = head;
    }

    /// Frees all records before the sequence `first`.
    pub(crate) fn free_before(&mut self, first: u64) {
        while self.needed.front().is_some_and(|(sequence, _)| *sequence < first) {
            self.needed.pop_front();
        }
    }

    /// Returns where the next record is placed if it fits.
    pub(crate) const fn head(&self) -> u64 {
        self.head
    }

    /// Returns whether a longer file has more room at the head: no needed record follows it.
    pub(crate) fn can_extend(&self) -> bool {
        self.needed.front().is_none_or(|(_, tail)| *tail < self.head)
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;

    #[test]
    fn records_wrap_and_never_overwrite_needed_ones() {
        let mut ring = Ring::empty(10, 0);
        assert_eq!(ring.place(1, 4), Some(0));
        assert_eq!(ring.place(2, 4), Some(4));
        assert_eq!(ring.place(3, 4), None, "both records are needed");
        ring.free_before(2);
        assert_eq!(ring.place(3, 4), Some(0));
        assert_eq!(ring.place(4, 1), None);
        assert!(!ring.can_extend());
        ring.free_before(3);
        assert_eq!(ring.place(4, 6), Some(4));
        ring.take_back(4);
        assert_eq!(ring.place(4, 5), Some(4));
    }

    #[test]
    fn an_empty_ring_has_room_for_a_record_of_its_whole_length() {
        let mut ring = Ring::empty(10, 6);
        assert_eq!(ring.place(1, 10), Some(0));
        assert_eq!(ring.place(2, 1), None);
        assert!(ring.can_extend());
        ring.free_before(2);
        assert_eq!(ring.place(2, 1), Some(0));
    }

    /// Compares with a list of the needed records, for many sizes in a row.
    #[test]
    fn needed_records_never_overlap() {
        let mut state = 1u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut ring = Ring::empty(64, 0);
        let mut needed: Vec<(u64, u64, u64)> = Vec::new();
        let (mut sequence, mut refused) = (1, 0);
        for _ in 0..100_000 {
            let bytes = next(70) + 1;
            if let Some(offset) = ring.place(sequence, bytes) {
                assert!(offset + bytes <= 64);
                let overlaps = |(_, start, end): &(u64, u64, u64)| offset < *end && *start < offset + bytes;
                assert!(!needed.iter().any(overlaps), "{needed:?} {offset} {bytes}");
                needed.push((sequence, offset, offset + bytes));
                sequence += 1;
            } else {
                refused += 1;
                let first = sequence - next(needed.len() as u64 + 1);
                needed.retain(|(sequence, _, _)| *sequence >= first);
                ring.free_before(first);
            }
        }
        assert!(refused > 1000 && sequence > 1000);
    }
}
