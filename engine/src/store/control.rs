//! The buckets of an open store, and the queue for their changes.

use crate::counters::ExecutorCounters;
use crate::error::EngineError;
use crate::slice::command::Reply;
use crate::store::bucket_catalog::{BucketCatalog, Buckets, CatalogCommand};
use crate::types::bucket::Bucket;
use cairn_model::BucketName;
use cairn_sync::Mutex;
use futures_channel::oneshot;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// The bucket catalog as requests use it.
pub(crate) struct Control {
    pub(crate) catalog: Arc<BucketCatalog>,
    /// The buckets in memory.
    pub(super) buckets: Arc<Buckets>,
    /// The queue of the thread `control`.
    commands: Mutex<Sender<CatalogCommand>>,
    /// Counts refused changes of buckets, which no executor counts.
    counters: Arc<ExecutorCounters>,
}

impl Control {
    pub(super) fn new(
        catalog: BucketCatalog,
        buckets: Arc<Buckets>,
        commands: Sender<CatalogCommand>,
        counters: Arc<ExecutorCounters>,
    ) -> Self {
        Self { catalog: Arc::new(catalog), buckets, commands: Mutex::new(commands), counters }
    }

    /// Returns the bucket with this name, if it exists.
    pub(super) fn bucket(&self, name: &BucketName) -> Option<Arc<Bucket>> {
        self.buckets.read().get(name).cloned()
    }

    /// Returns all buckets in order of their names.
    pub(super) fn all(&self) -> Vec<Arc<Bucket>> {
        self.buckets.read().values().cloned().collect()
    }

    /// Queues a command for the thread.
    ///
    /// # Errors
    /// [`EngineError::ShuttingDown`] when the thread has ended.
    pub(crate) fn send(&self, command: CatalogCommand) -> Result<(), EngineError> {
        let commands = self.commands.lock();
        commands.send(command).map_err(|_| EngineError::ShuttingDown)
    }

    /// Queues a change of buckets and waits for its outcome. Counts a refusal.
    ///
    /// # Errors
    /// The refusal, and [`EngineError::ShuttingDown`] when the thread has ended.
    pub(super) async fn change<T>(
        &self,
        command: impl FnOnce(Reply<T>) -> CatalogCommand,
    ) -> Result<T, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply))?;
        self.counters.count_refusal(answer.await.map_err(|_| EngineError::ShuttingDown)?)
    }

    /// Refuses a change of buckets for want of space, and counts it.
    pub(super) fn refuse_full<T>(&self) -> Result<T, EngineError> {
        self.counters.count_refusal(Err(EngineError::StorageFull))
    }
}
