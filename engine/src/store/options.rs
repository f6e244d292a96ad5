//! Options for opening a store.

use crate::limits::BufferLimits;
use cairn_model::{Clock, SystemClock};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

cairn_model::named_enum! {
    /// The kind of the entity tags of new objects and parts. Named as in the configuration.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub enum EtagKind {
        /// The MD5 of the bytes, as on Amazon S3.
        #[default]
        Md5 => "md5",
        /// Random bytes, in the form of an upload of one part. Bytes are hashed only if a request declares their MD5.
        Opaque => "opaque",
    }
}

cairn_model::named_enum! {
    /// The mechanism that makes changes of objects durable. Named as in the configuration.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub enum CommitMode {
        /// A commit log: one write and one flush for each batch.
        #[default]
        Log => "log",
        /// LMDB: two flushes of its data file for each batch.
        Lmdb => "lmdb",
    }
}

/// Options for opening a store.
pub struct StoreOptions {
    /// The data folder. Created if it is missing.
    pub data_dir: PathBuf,
    /// Number of slices of a new store. `None` means one for two cores of the host ([`crate::limits::default_slices`]). An
    /// existing store keeps its number.
    pub slices: Option<u16>,
    /// The credential master key.
    pub master_key: Zeroizing<Vec<u8>>,
    /// Limit of the block cache in bytes. 0 means no cache.
    pub cache_bytes: u64,
    /// Memory for the buffers of each executor.
    pub buffers: BufferLimits,
    /// With less free bytes than this on the file system, new writes are refused.
    pub reserve_bytes: u64,
    /// Free space counts as low below this part of the file system above the reserve, in percent. 0 means never.
    pub low_space_percent: u8,
    /// Free space in the volumes that was not needed for this time is given back to the file system. `None` means never.
    pub reclaim_after: Option<Duration>,
    /// Whether new payloads are sealed (`seal.rs`). Existing payloads can be read either way.
    pub encryption_at_rest: bool,
    /// The kind of the entity tags of new objects and parts.
    pub etags: EtagKind,
    /// The mechanism that makes changes durable. A store can be opened with either after the other.
    pub commit: CommitMode,
    /// Whether changes write storage events.
    pub events: bool,
    /// The source of dates.
    pub clock: Arc<dyn Clock>,
}

impl StoreOptions {
    /// Returns options without a cache and a reserve. Space never counts as low. New payloads are not sealed, and space is
    /// never given back.
    #[must_use]
    pub fn new(data_dir: PathBuf, master_key: Zeroizing<Vec<u8>>) -> Self {
        Self {
            data_dir,
            slices: None,
            master_key,
            cache_bytes: 0,
            buffers: BufferLimits::default(),
            reserve_bytes: 0,
            low_space_percent: 0,
            reclaim_after: None,
            encryption_at_rest: false,
            etags: EtagKind::default(),
            commit: CommitMode::default(),
            events: true,
            clock: Arc::new(SystemClock),
        }
    }
}
