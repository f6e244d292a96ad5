//! Inspection (fsck) of a running store: compares its metadata with itself.
//!
//! Compares, for each slice, the records of versions, uploads and parts with free map, usage counters, totals and sequence;
//! also the buckets and the files themselves. Reads all metadata and no payloads (verification reads those). Changes
//! nothing; `repair.rs` does.
//!
//! # How it sees one consistent state
//! A slice is read in segments of a few thousand records. Each segment has its own short snapshot, because a long one would
//! keep every page that is freed in the meantime. What the records read so far add up to (owned units, sums per bucket,
//! count and hash) is the *replica* of the slice. Before each segment, the replica is brought up to the new snapshot with
//! the change log (`slice/change_log.rs`): changes before the scan's position are applied, changes after it will be read.
//! So after each segment the replica matches the snapshot up to the scan's position. After the last segment it matches the
//! whole slice as of that snapshot, which also holds the free map, counters and totals for the comparison. Concurrent
//! writers cannot cause a finding.
//!
//! The volumes are measured after the snapshot was taken. They only grow, so the extents of its records must lie in them.
//! A record of an unknown bucket is judged in three steps: the record is read, then the buckets, then the record again in
//! a new snapshot. A record that exists before and after existed while the buckets were read, when its bucket had to exist.
//!
//! If something cannot be decided, nothing is guessed: the comparison is omitted and the result is not `complete`. Reasons
//! are the limit on entries, a damaged record whose extents are unknown, and more changes than the log holds.

mod compare;
mod due;
mod finding;
mod inspection;
mod records;
mod relations;
mod replica;
mod report;
mod scan;
mod slice;
mod surroundings;
mod task;
#[cfg(test)]
mod tests;

pub use finding::{Finding, FindingKind};
pub use inspection::Inspection;
pub(crate) use report::Report;
pub(crate) use scan::Scanned;
pub use task::Inspecting;
pub(crate) use task::begin;

use crate::error::EngineError;
use crate::slice::Slice;
use crate::slice::change_log::Following;
use crate::store::Store;
use crate::store::background::Cancel;

impl Store {
    /// Inspects the store; reads at most `entries_max` records. Blocks, so only plain threads call it. Does not delay
    /// writers.
    ///
    /// # Errors
    /// [`EngineError::AlreadyRunning`] when another inspection or repair is under way, [`EngineError::ShuttingDown`]. Damage
    /// is a finding, not an error.
    pub fn inspect(&self, entries_max: u64) -> Result<Inspection, EngineError> {
        self.inspect_until(entries_max, &Cancel::default())
    }

    pub(crate) fn inspect_until(&self, entries_max: u64, cancel: &Cancel) -> Result<Inspection, EngineError> {
        self.inspect_into(Report::new(self, entries_max, cancel))
    }

    fn inspect_into(&self, mut report: Report<'_>) -> Result<Inspection, EngineError> {
        surroundings::inspect_superblock(self, &mut report);
        surroundings::inspect_buckets(self, &mut report);
        for slice in &self.slices {
            surroundings::inspect_volumes(slice, &mut report);
            let following = slice.change_log.follow(&slice.environment)?;
            scan_readable_slice(slice, &following, &mut report)?;
        }
        Ok(report.finish())
    }
}

/// Inspects a slice, unless its metadata file is damaged.
pub(crate) fn scan_readable_slice(
    slice: &Slice,
    following: &Following<'_>,
    report: &mut Report<'_>,
) -> Result<Scanned, EngineError> {
    if surroundings::metadata_is_readable(slice, report) {
        return slice::inspect_slice(slice, following, report);
    }
    Ok(Scanned { refusal: Some("its metadata cannot be read".to_owned()), ..Scanned::default() })
}
