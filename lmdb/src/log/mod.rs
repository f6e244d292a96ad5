//! The commit log: makes the commits of an environment durable with one write and one flush.
//!
//! Without a log, LMDB flushes its data file and then its meta page for each commit. With one:
//!
//! * **Commit.** The changes of a transaction are written to the log as one record, durably. Only then LMDB commits, without a
//!   flush. So a reader never sees a change that a power cut could take away.
//! * **Checkpoint.** From time to time the data file is flushed, and the roots of the flushed snapshot are stored with the
//!   place in the log from which changes are missing. The records before it are not needed any more.
//! * **Pin.** A read transaction holds that snapshot until the next checkpoint is durable. LMDB never writes to a page that a
//!   reader may need, except for the two meta pages. So all pages of the snapshot stay on the device as they were flushed.
//! * **Recovery.** The roots of the checkpoint are written back to both meta pages, and the changes of the records after it are
//!   applied again.
//!
//! | file | content |
//! |---|---|
//! | `log_record.rs` | the form of a record |
//! | `ring.rs`, `log_file.rs` | where records are in the file; writing and finding them |
//! | `checkpoint_slot.rs` | the form of a checkpoint in the data file |
//! | `pin.rs` | the read transaction that keeps the pages of a checkpoint |
//! | `commit.rs` | the order of log and LMDB in a commit |
//! | `commit_log.rs` | the log of an open environment: appends records, makes checkpoints |
//! | `checkpointer.rs` | the thread that makes checkpoints |
//! | `recovery.rs` | what an opening does with checkpoint and log |

pub(crate) mod checkpoint_slot;
pub(crate) mod checkpointer;
pub(crate) mod commit;
pub(crate) mod commit_log;
pub(crate) mod faults;
pub(crate) mod log_file;
pub(crate) mod log_record;
pub(crate) mod pin;
pub(crate) mod recovery;
mod ring;

#[cfg(test)]
mod tests;
