//! LMDB environments in which every record has a checksum.
//!
//! This is the only crate that uses heed. It offers an [`Environment`] with named [`Table`]s. Read transactions never
//! leave their thread and must never be held across an `.await`. Write transactions maintain a record count and an
//! additive hash, by which a lost record is detected.
//!
//! # Format of a stored value
//! ```text
//! offset  size  content
//! 0       8     CRC-64/NVME of the key and of bytes 8 to the end of the body (little-endian)
//! 8       1     version of the record's format, chosen by the caller
//! 9       3     zero
//! 12      4     length of the body in bytes (little-endian)
//! 16      n     body
//! 16+n    ...   tail: not covered by this checksum; the caller stores a checksum of it in the body
//! ```
//! The tail exists so that a walk over many records need not read the large payloads stored with them.

// The layers, from bottom to top: a module imports only from those above it in this list.
mod error;
mod flush_failures;
mod folder;
mod limits;
mod log_position;
mod meta_page;
mod reader_table;
mod readers;
mod reading_threads;
mod record;
mod table;
mod totals;

mod changed_keys;
mod data_file;
mod generation;
mod iterators;
mod steady_io;

mod current;
mod free_pages;
mod lookups;
mod page_cache;

mod log;

mod environment;

mod txn;

mod compact;
mod discard_log;
mod snapshot;
mod store_identity;

mod absent_tables;
mod compact_open;

mod rebuild;

mod salvage;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;

pub use compact::{CompactOptions, Compaction, compact};
pub use compact_open::{CopyProgress, OpenCompactOptions, OpenCompaction};
pub use discard_log::{DamagedLog, discard_log, examine_log};
pub use environment::{Environment, EnvironmentOptions};
pub use error::Error;
pub use flush_failures::FlushFailures;
pub use iterators::{Entries, Entry, Keys, ReverseScan, Scan};
pub use log::commit_log::{LogOptions, LogStatus};
pub use record::{RECORD_HEAD_BYTES, Record};
pub use salvage::{LostRange, LostRanges, Salvaged, SalvagedEnvironment, SalvagedTable};
pub use snapshot::{Snapshot, SnapshotCopy, remove_log_of_replaced_file};
pub use steady_io::{cannot_preallocate, free_gradually, write_back};
pub use store_identity::{EnvironmentOpenError, StoreIdentity, UNMADE_MARKER};
pub use table::Table;
pub use totals::Totals;
pub use txn::{ReadTxn, WriteTxn};
