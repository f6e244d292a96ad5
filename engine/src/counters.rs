//! Counters and histograms of the engine's work.
//!
//! Each executor and each committer has its own, on its own cache lines; `store/metrics.rs` sums them, on any thread.

use crate::error::EngineError;
use cairn_model::{Counter, DurationHistogram, Histogram};
use cairn_sync::Mutex;
use std::sync::Arc;

/// Upper bounds for the changes of a batch: powers of two up to the most that a batch takes.
pub(crate) static BATCH_BOUNDS: [u64; 10] =
    [1, 2, 4, 8, 16, 32, 64, 128, 256, crate::limits::BATCH_COMMANDS_MAX as u64];

/// Counters of one committer.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct CommitterCounters {
    /// Changes per batch.
    pub(crate) batches: Histogram<{ BATCH_BOUNDS.len() }>,
    /// Duration of each batch's transaction, from its begin until its changes are completed.
    pub(crate) commits: DurationHistogram,
    /// Duration of each flush of a volume.
    pub(crate) flushes: DurationHistogram,
}

impl Default for CommitterCounters {
    fn default() -> Self {
        let (commits, flushes) = (DurationHistogram::default(), DurationHistogram::default());
        Self { batches: Histogram::new(&BATCH_BOUNDS), commits, flushes }
    }
}

/// Counters of one executor.
#[derive(Default, Debug)]
#[repr(align(64))]
pub(crate) struct ExecutorCounters {
    pub(crate) cache_hits: Counter,
    pub(crate) cache_misses: Counter,
    pub(crate) blocks_read: Counter,
    pub(crate) read_bytes: Counter,
    pub(crate) written_bytes: Counter,
    /// Duration of each read, as the waiting task sees it.
    pub(crate) reads: DurationHistogram,
    /// Duration of each write, as the waiting task sees it.
    pub(crate) writes: DurationHistogram,
    pub(crate) refused_full: Counter,
    pub(crate) refused_quota: Counter,
    pub(crate) refused_overloaded: Counter,
}

impl ExecutorCounters {
    /// Counts a write that was refused because space, quota or the queue is full; returns the result unchanged.
    pub(crate) fn count_refusal<T>(&self, result: Result<T, EngineError>) -> Result<T, EngineError> {
        match &result {
            Err(EngineError::StorageFull) => self.refused_full.add(1),
            Err(EngineError::QuotaExceeded) => self.refused_quota.add(1),
            Err(EngineError::Overloaded) => self.refused_overloaded.add(1),
            _ => {}
        }
        result
    }
}

/// The counters of all executors.
#[derive(Default)]
pub(crate) struct AllExecutorCounters(Mutex<Vec<Arc<ExecutorCounters>>>);

impl AllExecutorCounters {
    /// Creates the counters of one more executor.
    pub(crate) fn add(&self) -> Arc<ExecutorCounters> {
        let counters = Arc::<ExecutorCounters>::default();
        self.0.lock().push(Arc::clone(&counters));
        counters
    }

    /// The counters of all executors.
    pub(crate) fn all(&self) -> Vec<Arc<ExecutorCounters>> {
        self.0.lock().clone()
    }
}
