//! Every limit of an environment, with its reason.

use std::time::Duration;

/// Most threads that may ever read an environment. Each holds a slot of 64 bytes in the lock file. Executors (at most
/// 1024) and a few threads of the store for each slice stay far below.
pub(crate) const READERS_MAX: u32 = 2048;

/// Threads whose reads are timed, with a cache line each. More threads share lines, and the reported age may then be
/// too small.
pub(crate) const TIMED_THREADS: usize = 512;

/// Attempts to begin a read. One fails only if two transactions are committed while it lasts, which takes less than a
/// microsecond unless the thread is interrupted.
pub(crate) const READ_ATTEMPTS_MAX: usize = 1000;

/// The smallest map, in bytes, that is tried when the address space is limited.
pub(crate) const MAP_BYTES_MIN: usize = 1 << 30;

/// Least gain of a compaction, in bytes (8 MiB). A copy that would save less is not made.
pub(crate) const COMPACTION_GAIN_MIN: u64 = 8 << 20;

/// Most tables of an environment that can be compacted.
pub(crate) const TABLES_MAX: u32 = 64;

/// Bytes of memory for the keys that change between two steps of a compaction of an open environment (32 MiB). A step
/// takes fractions of a second, so this suffices for hundreds of thousands of changes a second.
pub(crate) const CHANGED_BYTES_MAX: usize = 32 << 20;

/// Bytes of records that one step of such a compaction copies. The device gets them when it has written those of the step
/// before, so other flushes wait for about this much.
pub(crate) const COPY_STEP_BYTES: usize = 2 << 20;

/// Bytes of changed records that are copied again in one transaction. They lie anywhere, and each takes pages of its own.
pub(crate) const CHANGED_STEP_BYTES: usize = 1 << 20;

/// Most records of one step, which bounds the age of its snapshot.
pub(crate) const COPY_STEP_RECORDS: usize = 8192;

/// Most keys that are brought up to date while writers wait: a few milliseconds.
pub(crate) const LAST_ROUND_KEYS_MAX: usize = 512;

/// Rounds after which a compaction gives up, because the environment changes faster than it can follow.
pub(crate) const ROUNDS_MAX: usize = 200;

/// Bytes by which a replaced data file is shortened at a time (64 MiB). To free a large file at once would delay other
/// flushes of the file system.
pub(crate) const SHRINK_STEP_BYTES: u64 = 64 << 20;

/// Pause between two such steps.
pub(crate) const SHRINK_PAUSE: Duration = Duration::from_millis(5);

/// Bytes that are read into the page cache at a time (1 MiB): few requests of the device, and short ones.
pub(crate) const PAGE_CACHE_PIECE_BYTES: usize = 1 << 20;

/// The time for which a compaction waits for the transactions that read the replaced file. Nothing in the engine reads for so
/// long.
pub(crate) const CLOSE_WAIT: Duration = Duration::from_secs(60);

/// The time for which the closing of an environment waits for reading threads that are ending. They take microseconds. In
/// tests, it must not give up because the machine is busy.
pub(crate) const THREAD_END_WAIT: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 1 });

/// Time between two looks at them.
pub(crate) const THREAD_END_POLL: Duration = Duration::from_micros(50);

/// Bytes of a block of the commit log: the unit of direct I/O on every device.
pub(crate) const LOG_BLOCK_BYTES: usize = 4096;

/// Length of a new log in bytes (256 KiB), so that a store of many slices that is little used stays small.
pub(crate) const LOG_BYTES_FIRST: u64 = 256 << 10;

/// Free bytes of the file system below which the log does not grow (1 GiB). They are left to what has no other place.
pub(crate) const LOG_GROWTH_FREE_BYTES: u64 = 1 << 30;

/// Bytes that one write appends to the log (1 MiB). Records wait for no more.
pub(crate) const LOG_EXTEND_PIECE_BYTES: u64 = 1 << 20;

/// Bytes that are read at a time to look for later records (1 MiB).
pub(crate) const LOG_SCAN_PIECE_BYTES: usize = 1 << 20;

/// Bytes of records that one transaction applies when the log is replayed (4 MiB). LMDB keeps the changed pages in memory.
pub(crate) const REPLAY_BYTES_MAX: usize = 4 << 20;

/// Bytes of the buffers that one record leaves to the next (1 MiB). Larger ones are freed.
pub(crate) const LOG_BUFFER_KEPT_BYTES: usize = 1 << 20;

/// The interval at which dirty pages are handed to the device while there are changes. Small portions keep its queue short, so
/// that the log's flushes do not wait.
pub(crate) const WRITE_BACK_INTERVAL: Duration = Duration::from_millis(1);

/// The greatest age of the oldest change in the log (5 s), unless a checkpoint takes longer. It bounds what a start replays.
pub(crate) const CHECKPOINT_AGE_MAX: Duration = Duration::from_secs(5);
