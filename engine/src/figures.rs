//! What the store counts and measures of its own work.
//!
//! Each executor and each committer counts on cache lines of its own; [`Store::figures`] sums them up, on any thread.

use crate::error::EngineError;
use crate::slice::Slice;
use crate::store::Store;
use cairn_model::{DURATION_BOUNDS, Durations, Histogram, HistogramReading, Tally};
use std::sync::{Arc, Mutex, PoisonError};

/// Upper bounds for the changes of a batch: powers of two up to the most that a batch takes.
static BATCH_BOUNDS: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, crate::limits::BATCH_JOBS_MAX as u64];

/// What one committer counts.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct CommitterFigures {
    /// Changes of each batch.
    pub(crate) batches: Histogram<{ BATCH_BOUNDS.len() }>,
    /// Time that each batch's transaction took, from its begin to the answers.
    pub(crate) commits: Durations,
    /// Time that each flush of a volume took.
    pub(crate) flushes: Durations,
}

impl Default for CommitterFigures {
    fn default() -> Self {
        let (commits, flushes) = (Durations::default(), Durations::default());
        Self { batches: Histogram::new(&BATCH_BOUNDS), commits, flushes }
    }
}

/// What one executor counts.
#[derive(Default, Debug)]
#[repr(align(64))]
pub(crate) struct ExecutorFigures {
    pub(crate) cache_hits: Tally,
    pub(crate) cache_misses: Tally,
    pub(crate) blocks_read: Tally,
    pub(crate) read_bytes: Tally,
    pub(crate) written_bytes: Tally,
    /// Time that each read and each write took, as the task saw it that waited.
    pub(crate) reads: Durations,
    pub(crate) writes: Durations,
    refused_full: Tally,
    refused_quota: Tally,
    refused_overloaded: Tally,
}

impl ExecutorFigures {
    /// Counts a write that is refused for want of space, quota or room in the queue.
    pub(crate) fn counted<T>(&self, result: Result<T, EngineError>) -> Result<T, EngineError> {
        match &result {
            Err(EngineError::StorageFull) => self.refused_full.add(1),
            Err(EngineError::QuotaExceeded) => self.refused_quota.add(1),
            Err(EngineError::Overloaded) => self.refused_overloaded.add(1),
            _ => {}
        }
        result
    }
}

/// The figures of all executors.
#[derive(Default)]
pub(crate) struct ExecutorsFigures(Mutex<Vec<Arc<ExecutorFigures>>>);

impl ExecutorsFigures {
    /// Figures for one more executor.
    pub(crate) fn add(&self) -> Arc<ExecutorFigures> {
        let figures = Arc::<ExecutorFigures>::default();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&figures));
        figures
    }

    fn all(&self) -> Vec<Arc<ExecutorFigures>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a store has done since it was opened. Durations are in nanoseconds.
#[derive(Clone, Debug)]
pub struct StoreFigures {
    /// Changes that wait for each slice's committer now.
    pub queue_lengths: Vec<u64>,
    /// Changes of each batch that was committed.
    pub batches: HistogramReading,
    /// How long the transaction of each batch took, from its begin to the answers.
    pub commits: HistogramReading,
    /// How long each flush of a volume in front of a commit took.
    pub flushes: HistogramReading,
    /// Writes, and changes of buckets, refused because no space is left.
    pub refused_full: u64,
    /// Writes refused because of a quota.
    pub refused_quota: u64,
    /// Changes refused because too many waited for the committer.
    pub refused_overloaded: u64,
    /// Blocks that readers found in the cache.
    pub cache_hits: u64,
    /// Blocks that readers did not find there.
    pub cache_misses: u64,
    /// Blocks read from the device and checked, for whatever reason.
    pub blocks_read: u64,
    /// Bytes that direct reads of volumes brought.
    pub read_bytes: u64,
    /// Bytes that direct writes of volumes took.
    pub written_bytes: u64,
    /// How long each of these reads took.
    pub reads: HistogramReading,
    /// How long each of these writes took.
    pub writes: HistogramReading,
}

impl Store {
    /// What the store has done since it was opened.
    #[must_use]
    pub fn figures(&self) -> StoreFigures {
        let executors = self.executors_figures.all();
        let sum = |one: fn(&ExecutorFigures) -> &Tally| executors.iter().map(|all| one(all).value()).sum();
        let times = |one: fn(&ExecutorFigures) -> &Durations| {
            HistogramReading::sum_of(&DURATION_BOUNDS, executors.iter().map(|all| one(all).read()))
        };
        let committed = |one: fn(&CommitterFigures) -> &Durations| {
            HistogramReading::sum_of(
                &DURATION_BOUNDS,
                self.slices.iter().map(|slice| one(&slice.figures).read()),
            )
        };
        let batches = self.slices.iter().map(|slice| slice.figures.batches.read());
        let waiting = |slice: &Arc<Slice>| slice.queue.waiting() as u64;
        StoreFigures {
            queue_lengths: self.slices.iter().map(waiting).collect(),
            batches: HistogramReading::sum_of(&BATCH_BOUNDS, batches),
            commits: committed(|figures| &figures.commits),
            flushes: committed(|figures| &figures.flushes),
            refused_full: sum(|figures| &figures.refused_full),
            refused_quota: sum(|figures| &figures.refused_quota),
            refused_overloaded: sum(|figures| &figures.refused_overloaded),
            cache_hits: sum(|figures| &figures.cache_hits),
            cache_misses: sum(|figures| &figures.cache_misses),
            blocks_read: sum(|figures| &figures.blocks_read),
            read_bytes: sum(|figures| &figures.read_bytes),
            written_bytes: sum(|figures| &figures.written_bytes),
            reads: times(|figures| &figures.reads),
            writes: times(|figures| &figures.writes),
        }
    }
}
