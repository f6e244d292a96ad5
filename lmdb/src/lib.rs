//! LMDB environments whose every record carries a check, for LMDB itself has none.
//!
//! This is the only crate that names heed. It offers an [`Environment`] with named [`Table`]s, read
//! transactions that never leave the thread (and must never be held across an `.await`), and write
//! transactions that keep a record count and an additive hash, so that a record that vanished is found.
//!
//! # Form of a stored value
//! ```text
//! offset  size  what
//! 0       8     CRC-64/NVME over the key, the bytes 8.. of the value up to the end of the body (little-endian)
//! 8       1     version of the record's form, chosen by the caller
//! 9       3     zero
//! 12      4     length of the body in bytes (little-endian)
//! 16      n     body
//! 16+n    ...   tail: not covered by this check; the caller keeps a check of it in the body
//! ```
//! The tail exists so that a walk over many records need not touch the large payloads stored with them.

mod compact;
mod environment;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod limits;
mod owned;
mod readers;
mod record;
mod txn;

pub use compact::{CompactOptions, Compaction, compact};
pub use environment::{Environment, EnvironmentOptions, Table};
pub use error::Error;
pub use owned::{OwnedError, Owner, UNMADE_MARKER};
pub use record::{RECORD_HEAD_BYTES, Record};
pub use txn::{Entries, Entry, Keys, ReadTxn, Scan, ScanBack, Totals, WriteTxn};
