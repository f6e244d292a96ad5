//! The context of one executor: what all reads and writes on it share.

use crate::counters::ExecutorCounters;
use crate::device::executor_files::{Disk, DiskFile};
use crate::device::files::Files;
use crate::device::volume::volume_path;
use crate::error::{EngineError, OpenError};
use crate::executor::copy_queue::CopyQueue;
use crate::executor::hasher::Hasher;
use crate::executor::inline_hasher::InlineHasher;
use crate::executor::memory_budget::MemoryBudget;
use crate::fault_reports::{FoundWhile, StoreFault};
use crate::limits::BLOCK_BYTES;
use crate::slice::Slice;
use crate::store::Store;
use crate::store::activity::Activity;
use cairn_model::{u64_of, usize_of};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// The shared state of one executor's reads and writes. Not `Send`: its files belong to the executor's ring.
pub(crate) struct ExecutorContext {
    pub(crate) store: Arc<Store>,
    disk: Disk,
    /// Of upload buffers.
    pub(crate) memory_budget: MemoryBudget,
    /// Of documents and forms that are read into memory.
    pub(crate) small_bodies: MemoryBudget,
    /// Of payloads in volumes.
    pub(crate) hasher: Hasher,
    /// Of payloads that are stored with their record.
    pub(crate) inline_hasher: InlineHasher,
    /// Admits copies.
    pub(crate) copies: CopyQueue,
    /// Memory of the blocks that this executor's readers have read ahead.
    read_ahead_bytes: Cell<usize>,
    /// Counts requests, so that background work makes room for them.
    activity: Arc<Activity>,
    pub(crate) counters: Arc<ExecutorCounters>,
}

impl ExecutorContext {
    /// Opens the first volume of each slice on the executor that runs this.
    ///
    /// # Errors
    /// [`OpenError::Io`] when a volume cannot be opened for direct I/O.
    pub(crate) async fn open(store: Arc<Store>) -> Result<Rc<Self>, OpenError> {
        let counters = store.executor_counters.add();
        let context = Self {
            disk: Disk::new(Files::on(&store.faults), Arc::clone(&counters)),
            memory_budget: MemoryBudget::new(store.payloads.buffers.upload_bytes),
            small_bodies: MemoryBudget::new(store.payloads.buffers.small_body_bytes),
            hasher: Hasher::default(),
            inline_hasher: InlineHasher::default(),
            copies: CopyQueue::default(),
            read_ahead_bytes: Cell::new(0),
            activity: store.background.activities.add(),
            counters,
            store,
        };
        for slice in &context.store.slices {
            let path = volume_path(&slice.folder, 0);
            let opened = context.disk.file(slice.number, 0, &path).await;
            opened.map_err(|error| OpenError::Io { path, doing: "opening with io_uring", error })?;
        }
        Ok(Rc::new(context))
    }

    /// Counts a request that begins, so that background work makes room for it.
    pub(crate) fn begin_request(&self) {
        self.activity.note();
    }

    /// The file of a volume, opened on this executor.
    ///
    /// # Errors
    /// [`EngineError::Io`], which is also logged.
    pub(crate) async fn volume_file(&self, slice: &Slice, volume: u32) -> Result<Rc<DiskFile>, EngineError> {
        let path = volume_path(&slice.folder, volume);
        self.disk.file(slice.number, volume, &path).await.map_err(|error| {
            tracing::error!(target: "service::engine", path = %path.display(), %error, "a volume could not be opened");
            EngineError::Io(format!("opening a volume: {error}"))
        })
    }

    /// Returns whether readers may read more blocks ahead.
    pub(crate) fn may_read_ahead(&self) -> bool {
        u64_of(self.read_ahead_bytes.get()) < self.store.payloads.buffers.read_ahead_bytes
    }

    /// Adds blocks that a reader has begun to read ahead.
    pub(crate) fn add_read_ahead(&self, blocks: u64) {
        self.read_ahead_bytes.set(self.read_ahead_bytes.get() + usize_of(blocks) * BLOCK_BYTES);
    }

    /// Removes blocks that a reader has returned or dropped.
    pub(crate) fn remove_read_ahead(&self, blocks: u64) {
        let bytes = usize_of(blocks) * BLOCK_BYTES;
        assert!(bytes <= self.read_ahead_bytes.get(), "only blocks that were added are removed");
        self.read_ahead_bytes.set(self.read_ahead_bytes.get() - bytes);
    }

    /// Reports a record of `object` that failed its check; returns the result unchanged.
    pub(crate) fn report_damage<T>(
        &self,
        result: Result<T, EngineError>,
        object: impl Fn() -> String,
    ) -> Result<T, EngineError> {
        if let Err(EngineError::Corrupt(what)) = &result {
            let (object, version, found_while) = (&*object(), None, FoundWhile::Serving);
            self.store.fault_reports.report(&StoreFault::Damage { object, version, what, found_while });
        }
        result
    }
}
