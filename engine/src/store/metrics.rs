//! Metrics of the whole store, summed over executors and slices.

use crate::counters::{BATCH_BOUNDS, CommitterCounters, ExecutorCounters};
use crate::slice::Slice;
use crate::store::Store;
use cairn_lmdb::LogStatus;
use cairn_model::{Counter, DURATION_BOUNDS, DurationHistogram, HistogramSnapshot};
use std::sync::Arc;

/// Metrics of a store since it was opened. Durations are in nanoseconds.
#[derive(Clone, Debug)]
pub struct StoreMetrics {
    /// Commands that are waiting for the committer of each slice.
    pub queue_lengths: Vec<u64>,
    /// Number of commands in each batch.
    pub batches: HistogramSnapshot,
    /// Duration of each batch's transaction, from its begin until its commands are complete.
    pub commits: HistogramSnapshot,
    /// Duration of each flush of a volume before a commit.
    pub flushes: HistogramSnapshot,
    /// The commit logs of all slices together.
    pub log: LogStatus,
    /// Writes and changes of buckets that were refused because no space was left.
    pub refused_full: u64,
    /// Writes that were refused because of a quota.
    pub refused_quota: u64,
    /// Commands that were refused because the queue of the committer was full.
    pub refused_overloaded: u64,
    /// Blocks that readers found in the cache.
    pub cache_hits: u64,
    /// Blocks that readers did not find in the cache.
    pub cache_misses: u64,
    /// Blocks that were read from the device and verified, for any purpose.
    pub blocks_read: u64,
    /// Bytes read from volumes by direct I/O.
    pub read_bytes: u64,
    /// Bytes written to volumes by direct I/O.
    pub written_bytes: u64,
    /// Duration of each of these reads.
    pub reads: HistogramSnapshot,
    /// Duration of each of these writes.
    pub writes: HistogramSnapshot,
}

fn add(left: LogStatus, right: LogStatus) -> LogStatus {
    LogStatus {
        unsaved_bytes: left.unsaved_bytes + right.unsaved_bytes,
        checkpoints: left.checkpoints + right.checkpoints,
        waits: left.waits + right.waits,
        replayed_records: left.replayed_records + right.replayed_records,
    }
}

impl Store {
    /// Returns the metrics of the store since it was opened.
    #[must_use]
    pub fn metrics(&self) -> StoreMetrics {
        let executors = self.executor_counters.all();
        let sum = |one: fn(&ExecutorCounters) -> &Counter| executors.iter().map(|all| one(all).value()).sum();
        let times = |one: fn(&ExecutorCounters) -> &DurationHistogram| {
            HistogramSnapshot::sum_of(&DURATION_BOUNDS, executors.iter().map(|all| one(all).snapshot()))
        };
        let committed = |one: fn(&CommitterCounters) -> &DurationHistogram| {
            HistogramSnapshot::sum_of(
                &DURATION_BOUNDS,
                self.slices.iter().map(|slice| one(&slice.commits.counters).snapshot()),
            )
        };
        let batches = self.slices.iter().map(|slice| slice.commits.counters.batches.snapshot());
        let waiting = |slice: &Arc<Slice>| slice.commits.queue.waiting() as u64;
        StoreMetrics {
            queue_lengths: self.slices.iter().map(waiting).collect(),
            batches: HistogramSnapshot::sum_of(&BATCH_BOUNDS, batches),
            commits: committed(|counters| &counters.commits),
            flushes: committed(|counters| &counters.flushes),
            log: self
                .slices
                .iter()
                .map(|slice| slice.environment.log_status())
                .fold(LogStatus::default(), add),
            refused_full: sum(|counters| &counters.refused_full),
            refused_quota: sum(|counters| &counters.refused_quota),
            refused_overloaded: sum(|counters| &counters.refused_overloaded),
            cache_hits: sum(|counters| &counters.cache_hits),
            cache_misses: sum(|counters| &counters.cache_misses),
            blocks_read: sum(|counters| &counters.blocks_read),
            read_bytes: sum(|counters| &counters.read_bytes),
            written_bytes: sum(|counters| &counters.written_bytes),
            reads: times(|counters| &counters.reads),
            writes: times(|counters| &counters.writes),
        }
    }
}
