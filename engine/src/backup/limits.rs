//! Sizes that several files of this folder use.

/// Bytes of a page.
pub(super) const PAGE_BYTES: usize = 4096;
/// Bytes that are read at once: a multiple of a block.
pub(super) const PIECE_BYTES: usize = 1 << 20;
/// A pack is closed when it has this many bytes. A longer payload has a pack of its own.
pub(super) const PACK_BYTES: u64 = 256 << 20;
/// Most damaged payloads that are named. Further ones are counted.
pub(super) const DAMAGED_NAMED_MAX: usize = 1000;
