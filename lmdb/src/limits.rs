//! The counts and sizes that an environment limits itself to, with the reason.

/// Threads that may ever read an environment at once: each keeps a slot in its lock file, 64 bytes. Executors (at most
/// 1024) and a few threads of the store for each slice stay far below.
pub(crate) const READERS_MAX: u32 = 2048;

/// Threads whose reads are timed, a cache line each; more threads share places, and the age shown may then be too small.
pub(crate) const TIMED_THREADS: usize = 512;

/// The smallest map that is tried when the address space is limited.
pub(crate) const MAP_BYTES_MIN: usize = 1 << 30;

/// A compact copy that would save less than this (8 MiB) is not made.
pub(crate) const COMPACTION_GAIN_MIN: u64 = 8 << 20;

/// Tables that a compaction can meet in an environment.
pub(crate) const TABLES_MAX: u32 = 64;
