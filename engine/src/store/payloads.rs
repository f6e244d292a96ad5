//! The shared state of payload reads and writes: cache, memory limits, keys.

use crate::device::block_cache::BlockCache;
use crate::format::seal::WrappingKey;
use crate::limits::BufferLimits;
use crate::store::options::{EtagKind, StoreOptions};

/// The shared state of all readers and writers of payloads.
pub(crate) struct Payloads {
    pub(crate) cache: BlockCache,
    pub(crate) buffers: BufferLimits,
    pub(crate) wrapping_key: WrappingKey,
    /// Whether new payloads are sealed.
    pub(crate) encryption_at_rest: bool,
    pub(crate) etags: EtagKind,
}

impl Payloads {
    pub(crate) fn new(options: &StoreOptions, wrapping_key: WrappingKey) -> Self {
        Self {
            cache: BlockCache::new(options.cache_bytes),
            buffers: options.buffers,
            wrapping_key,
            encryption_at_rest: options.encryption_at_rest,
            etags: options.etags,
        }
    }
}
