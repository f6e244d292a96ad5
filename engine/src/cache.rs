//! The cache of checked blocks, which stands in for the page cache that direct I/O bypasses.
//!
//! Shared by all executors; bounded in bytes; scan-resistant (`quick_cache`). A block is named by its payload's random
//! id, so nothing needs to be invalidated when space is used again: a payload's bytes never change.

use crate::codec::PayloadId;
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::sync::Arc;

/// What a cached piece is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Piece {
    /// Block of the payload.
    Block(u32),
    /// Page of its check table.
    TablePage(u32),
}

#[derive(Clone)]
struct Bytes;

/// What an entry costs beside its bytes: key, pointers, allocator.
const ENTRY_OVERHEAD_BYTES: u64 = 128;

impl Weighter<(PayloadId, Piece), Arc<[u8]>> for Bytes {
    fn weight(&self, _: &(PayloadId, Piece), bytes: &Arc<[u8]>) -> u64 {
        bytes.len() as u64 + ENTRY_OVERHEAD_BYTES
    }
}

type Pieces = Cache<(PayloadId, Piece), Arc<[u8]>, Bytes>;

/// See the file's first lines.
pub(crate) struct BlockCache {
    cache: Option<Pieces>,
}

impl BlockCache {
    /// A cache of up to `bytes` bytes; 0: none.
    pub(crate) fn new(bytes: u64) -> Self {
        let items = usize::try_from(bytes / crate::limits::BLOCK_BYTES as u64).unwrap_or(usize::MAX).max(64);
        let options =
            OptionsBuilder::new().estimated_items_capacity(items).weight_capacity(bytes).build().ok();
        let cache = options.filter(|_| bytes > 0).map(|options| {
            let lifecycle = quick_cache::sync::DefaultLifecycle::default();
            Cache::with_options(options, Bytes, DefaultHashBuilder::default(), lifecycle)
        });
        Self { cache }
    }

    pub(crate) fn get(&self, id: PayloadId, piece: Piece) -> Option<Arc<[u8]>> {
        self.cache.as_ref()?.get(&(id, piece))
    }

    pub(crate) fn insert(&self, id: PayloadId, piece: Piece, bytes: Arc<[u8]>) {
        if let Some(cache) = &self.cache {
            cache.insert((id, piece), bytes);
        }
    }

    /// Bytes that the cached blocks take.
    pub(crate) fn bytes(&self) -> u64 {
        self.cache.as_ref().map_or(0, Cache::weight)
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockCache, Piece};
    use crate::codec::PayloadId;

    #[test]
    fn the_cache_stays_within_its_bound() {
        let cache = BlockCache::new(1 << 20);
        for n in 0..1000u32 {
            cache.insert(PayloadId([1; 16]), Piece::Block(n), vec![0; 65_536].into());
        }
        assert!(cache.bytes() <= 1 << 20, "{}", cache.bytes());
        assert!(cache.bytes() > 1 << 18, "{}", cache.bytes());
        assert!(BlockCache::new(0).get(PayloadId([1; 16]), Piece::Block(1)).is_none());
    }
}
