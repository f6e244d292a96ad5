//! What the objects contain, so that any process can check any range of any object without having written it.
//!
//! **Definition.** For a seed `s` let the *ring* be [`RING_BYTES`] bytes: the numbers of SplitMix64 seeded with `s`,
//! eight bytes each, little-endian. Let `start = hash(s, key) mod RING_BYTES`, with the hash of `random::hash`. Then byte `o` of the object `key` is
//! `ring[(start + o) mod RING_BYTES]`. The bucket and the object's size do not enter.
//!
//! Consequences:
//! - Making a body costs nothing, for it is slices of the ring; checking one is a comparison of memory.
//! - Overwriting a key writes the same bytes again (of the length its number has), so a GET that races a PUT can be
//!   checked. What this cannot show is a stale version; the `mixed` workload tells presence from absence instead.
//! - The ring's length is odd: blocks whose size is a power of two repeat only after `RING_BYTES` of them, so an
//!   object with two blocks exchanged is seen.

use std::io::IoSlice;

use crate::random::{Random, hash};
use crate::units::index;

/// Length of the ring: the largest odd number below 4 MiB but two. Part of the definition of the content.
pub const RING_BYTES: usize = 4_194_301;

/// The bytes of all objects of one seed.
#[derive(Debug)]
pub struct Content {
    seed: u64,
    ring: Vec<u8>,
}

/// A place in the ring: where an object, or a range of it, goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(usize);

impl Content {
    /// Makes the ring of this seed (a few milliseconds).
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

    /// Where byte `offset` of the object `key` stands.
    #[must_use]
    pub fn position(&self, key: &str, offset: u64) -> Position {
        let length = RING_BYTES as u64;
        let start = hash(self.seed, key.as_bytes()) % length;
        Position(index((start + offset % length) % length))
    }

    /// As many bytes from `position` on as lie in one piece, at most `limit`.
    #[must_use]
    pub fn piece(&self, position: Position, limit: u64) -> &[u8] {
        let rest = &self.ring[position.0..];
        &rest[..rest.len().min(usize::try_from(limit).unwrap_or(usize::MAX))]
    }

    /// Two pieces from `position` on, ready for a gathering write; the second is empty when one holds all.
    pub(crate) fn slices(&self, position: Position, limit: u64) -> [IoSlice<'_>; 2] {
        let first = self.piece(position, limit);
        let second = self.piece(Position(0), limit - first.len() as u64);
        [IoSlice::new(first), IoSlice::new(second)]
    }

    /// The position `count` bytes further on.
    #[must_use]
    pub fn advance(&self, position: Position, count: usize) -> Position {
        Position((position.0 + count % RING_BYTES) % RING_BYTES)
    }

    /// Whether `bytes` are what stands at `position`.
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
    fn any_range_is_that_part_of_the_whole_object() {
        let content = Content::new(3);
        let whole = collect(&content, "a/b", 0, 9_000_000);
        for (offset, length) in [(0, 1), (5, 100), (4_194_300, 10), (1, 8_999_999)] {
            let range = collect(&content, "a/b", offset, length);
            assert_eq!(range, &whole[index(offset)..index(offset + length)]);
            assert!(content.matches(content.position("a/b", offset), &range));
        }
    }

    #[test]
    fn one_wrong_byte_two_exchanged_blocks_or_another_key_are_seen() {
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
    fn the_first_bytes_are_pinned_for_other_processes_check_them() {
        let content = Content::new(0);
        assert_eq!(content.ring[..8], 0xE220_A839_7B1D_CDAF_u64.to_le_bytes());
        assert_eq!(RING_BYTES % 2, 1);
    }

    #[test]
    fn a_gathering_write_gets_both_sides_of_the_seam() {
        let content = Content::new(1);
        let position = Position(RING_BYTES - 3);
        let [first, second] = content.slices(position, 10);
        assert_eq!((first.len(), second.len()), (3, 7));
    }
}
