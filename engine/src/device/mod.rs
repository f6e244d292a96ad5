//! Files and devices: volumes, direct I/O on executors, the block cache.
//!
//! Callers see files and blocks. This layer knows nothing of objects or transactions.

pub(crate) mod block_cache;
pub(crate) mod bus_error;
pub(crate) mod disk_space;
pub(crate) mod executor_files;
pub(crate) mod file_map;
pub(crate) mod files;
pub(crate) mod lock_file;
pub(crate) mod volume;
