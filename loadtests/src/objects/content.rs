//! Content of objects, verifiable in any range by any process.
//!
//! **Definition.** For a seed `s` let the *ring* be [`RING_BYTES`] bytes: the numbers of SplitMix64 seeded with `s`,
//! eight bytes each, little-endian. Let `start = hash(s, key) mod RING_BYTES`, with the hash of `random::hash`. Then byte `o` of the object `key` is
//! `ring[(start + o) mod RING_BYTES]`. It does not depend on the bucket and the object's size.
//!
//! Consequences:
//! - Creating a body costs nothing, because it consists of slices of the ring. Verifying one is a comparison of memory.
//! - Overwriting a key writes the same bytes (with the length of its number), so a GET that races a PUT can be verified. A stale
//!   version cannot be detected; the `mixed` workload distinguishes presence from absence instead.
//! - The length of the ring is odd: blocks whose size is a power of two repeat only after `RING_BYTES` of them, so two exchanged
//!   blocks are detected.

use std::io::IoSlice;

use crate::random::{Random, hash};
use crate::units::index;

/// Length of the ring: the third largest odd number below 4 MiB. Part of the definition of the content.
pub const RING_BYTES: usize = 4_194_301;

/// The bytes of all objects of one seed.
#[derive(Debug)]
pub struct Content {
    seed: u64,
    ring: Vec<u8>,
}

/// A position in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(usize);

impl Content {
    /// Computes the ring of this seed, which takes a few milliseconds.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut ring = Vec::with_capacity(RING_BYTES + 8);
        while ring.len() < RING_BYTES {
            ring.extend_from_slice(&random.next().to_le_bytes());
        }
        ring.truncate(RING_BYTES);
        Self { seed, ring }
    }

    /// Returns the position of byte `offset` of the object `key`.
    #[must_use]
    pub fn position(&self, key: &str, offset: u64) -> Position {
        let length = RING_BYTES as u64;
        let start = hash(self.seed, key.as_bytes()) % length;
        Position(index((start + offset % length) % length))
    }

    /// Returns the contiguous bytes from `position` on, at most `limit`.
    #[must_use]
    pub fn piece(&self, position: Position, limit: u64) -> &[u8] {
        let rest = &self.ring[position.0..];
        &rest[..rest.len().min(usize::try_from(limit).unwrap_or(usize::MAX))]
    }

    /// Returns the bytes from `position` on in two pieces, for a vectored write. The second is empty if the first has them all.
    pub(crate) fn slices(&self, position: Position, limit: u64) -> [IoSlice<'_>; 2] {
        let first = self.piece(position, limit);
        let second = self.piece(Position(0), limit - first.len() as u64);
        [IoSlice::new(first), IoSlice::new(second)]
    }

    /// Returns the position `count` bytes further on.
    #[must_use]
    pub fn advance(&self, position: Position, count: usize) -> Position {
        Position((position.0 + count % RING_BYTES) % RING_BYTES)
    }

    /// Returns whether `bytes` are the content at `position`.
    #[must_use]
    pub fn matches(&self, mut position: Position, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let expected = self.piece(position, bytes.len() as u64);
            let (head, rest) = bytes.split_at(expected.len());
            if head != expected {
                return false;
            }
            position = self.advance(position, head.len());
            bytes = rest;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(content: &Content, key: &str, offset: u64, length: u64) -> Vec<u8> {
        let mut position = content.position(key, offset);
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < length {
            let piece = content.piece(position, length - bytes.len() as u64);
            bytes.extend_from_slice(piece);
            position = content.advance(position, piece.len());
        }
        bytes
    }

    #[test]
    fn a_range_is_part_of_the_whole_object() {
        let content = Content::new(3);
        let whole = collect(&content, "a/b", 0, 9_000_000);
        for (offset, length) in [(0, 1), (5, 100), (4_194_300, 10), (1, 8_999_999)] {
            let range = collect(&content, "a/b", offset, length);
            assert_eq!(range, &whole[index(offset)..index(offset + length)]);
            assert!(content.matches(content.position("a/b", offset), &range));
        }
    }

    #[test]
    fn wrong_bytes_exchanged_blocks_and_other_keys_are_detected() {
        let content = Content::new(3);
        let mut bytes = collect(&content, "k", 0, 5_000_000);
        let position = content.position("k", 0);
        bytes[4_999_999] ^= 1;
        assert!(!content.matches(position, &bytes));
        bytes[4_999_999] ^= 1;
        let (left, right) = bytes.split_at_mut(1 << 22);
        left[..65_536].swap_with_slice(&mut right[..65_536]);
        assert!(!content.matches(position, &bytes), "blocks at a distance of 4 MiB were exchanged");
        assert!(!content.matches(position, &collect(&content, "l", 0, 100)));
        assert!(!Content::new(4).matches(Content::new(4).position("k", 0), &bytes));
    }

    #[test]
    fn the_first_bytes_are_pinned() {
        let content = Content::new(0);
        assert_eq!(content.ring[..8], 0xE220_A839_7B1D_CDAF_u64.to_le_bytes());
        assert_eq!(RING_BYTES % 2, 1);
    }

    #[test]
    fn two_pieces_span_the_end_of_the_ring() {
        let content = Content::new(1);
        let position = Position(RING_BYTES - 3);
        let [first, second] = content.slices(position, 10);
        assert_eq!((first.len(), second.len()), (3, 7));
    }
}
