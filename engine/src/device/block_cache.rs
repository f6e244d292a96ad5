//! Cache of verified blocks. It replaces the page cache, which direct I/O bypasses.
//!
//! All executors share the cache. It is bounded in bytes and scan-resistant (`quick_cache`). An entry's key is the random id
//! of its payload, whose bytes never change. So nothing needs to be invalidated when space is reused.

use crate::format::payload_id::PayloadId;
use crate::limits::BLOCK_BYTES;
use cairn_model::{u64_of, usize_of};
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::sync::Arc;

/// A cached part of a payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Piece {
    /// Block of the payload, by number.
    Block(u32),
    /// Page of its check table, by number.
    TablePage(u32),
}

#[derive(Clone)]
struct EntryWeighter;

/// Memory of an entry in addition to its bytes: key, pointers, heap overhead.
const ENTRY_OVERHEAD_BYTES: u64 = 128;

impl Weighter<(PayloadId, Piece), Arc<[u8]>> for EntryWeighter {
    fn weight(&self, _: &(PayloadId, Piece), bytes: &Arc<[u8]>) -> u64 {
        u64_of(bytes.len()) + ENTRY_OVERHEAD_BYTES
    }
}

type Entries = Cache<(PayloadId, Piece), Arc<[u8]>, EntryWeighter>;

/// The cache.
pub(crate) struct BlockCache {
    cache: Option<Entries>,
}

impl BlockCache {
    /// Creates a cache of at most `bytes` bytes. With 0 bytes nothing is cached.
    pub(crate) fn new(bytes: u64) -> Self {
        let items = (usize_of(bytes) / BLOCK_BYTES).max(64);
        let options =
            OptionsBuilder::new().estimated_items_capacity(items).weight_capacity(bytes).build().ok();
        let cache = options.filter(|_| bytes > 0).map(|options| {
            let lifecycle = quick_cache::sync::DefaultLifecycle::default();
            Cache::with_options(options, EntryWeighter, DefaultHashBuilder::default(), lifecycle)
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

    /// Returns the memory that the cache uses, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.cache.as_ref().map_or(0, Cache::weight)
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockCache, Piece};
    use crate::format::payload_id::PayloadId;

    #[test]
    fn cache_stays_within_its_limit() {
        let cache = BlockCache::new(1 << 20);
        for n in 0..1000u32 {
            cache.insert(PayloadId([1; 16]), Piece::Block(n), vec![0; 65_536].into());
        }
        assert!(cache.bytes() <= 1 << 20, "{}", cache.bytes());
        assert!(cache.bytes() > 1 << 18, "{}", cache.bytes());
        assert!(BlockCache::new(0).get(PayloadId([1; 16]), Piece::Block(1)).is_none());
    }
}
