//! Inspection: whether a store agrees with itself, while it is being written to.
//!
//! Compares the records of versions, uploads and parts, free map, usage counters, totals and sequence of every slice, the buckets, and the files
//! themselves. Reads all metadata and no payload (that is verification). Changes nothing; `repair.rs` does.
//!
//! # How it sees one consistent state
//! A slice is read in segments of a few thousand records, each from a short snapshot of its own, for a long one would keep
//! every page that is freed meanwhile. What was read so far (who owns which unit, sums for each bucket, count and hash) is
//! the *shadow* of the slice. Before a further segment is read, the shadow is brought up to the new snapshot with the log
//! of changes (`changes.rs`): a change in front of the place that the scan has reached is applied, one behind it will be
//! read. So after every segment the shadow is exactly what the snapshot holds up to that place, and after the last one it is
//! exactly the slice as of that snapshot, which also holds the free map, the counters and the totals that it is compared
//! with. Nothing that writers do can make a finding of this comparison.
//!
//! The volumes are looked at after the snapshot was taken: they only grow, so what its records own must lie in them. The
//! bucket of a record is decided in three steps: the record is read, *then* the buckets are looked at, *then* the record
//! is looked for in a fresh snapshot. A record that is there before and after was there at the time of the look, when its
//! bucket had to be there too.
//!
//! Where that cannot be decided (the limit on entries cut the scan, a record is damaged so that what it owns is unknown,
//! more changes came than the log holds) nothing is guessed: the comparison is left out and the result is not `complete`.

mod compare;
mod finding;
mod outside;
mod records;
mod relations;
mod report;
mod scan;
mod shadow;
mod task;
#[cfg(test)]
mod tests;

pub use finding::{Finding, FindingKind};
pub(crate) use report::Report;
pub(crate) use scan::Scanned;
pub use task::Inspecting;
pub(crate) use task::{Cancel, Inspections, begin};

use crate::bucket::Usage;
use crate::changes::Following;
use crate::error::EngineError;
use crate::slice::Slice;
use crate::store::Store;

/// What an inspection found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Everything was compared; else the limit cut it, or damage left something undecided.
    pub complete: bool,
    /// Records of versions, uploads and parts that were read, and of what leads to them.
    pub entries_examined: u64,
    /// What the buckets hold in all, as the records sum up.
    pub usage: Usage,
    /// Records of parts, of unfinished uploads and of versions.
    pub parts: u64,
    /// Bytes of the volumes' units that records own.
    pub owned_bytes: u64,
    /// Maximal runs of units that are marked and that no record owns.
    pub orphaned_payloads: u64,
    /// Bytes of those units.
    pub orphaned_bytes: u64,
    /// The first findings.
    pub findings: Vec<Finding>,
    /// Findings beyond the limit of [`crate::limits::FINDINGS_MAX`].
    pub findings_omitted: u64,
}

impl Inspection {
    /// Whether nothing was found.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.findings_omitted == 0
    }
}

impl Store {
    /// Compares the store with itself; examines at most `entries_max` object records. Blocks for as long as reading them
    /// takes: for plain threads. Writers are not held up.
    ///
    /// # Errors
    /// [`EngineError::Overloaded`] when another inspection or repair is under way, [`EngineError::ShuttingDown`]. Damage of
    /// any kind is a finding, not an error.
    pub fn inspect(&self, entries_max: u64) -> Result<Inspection, EngineError> {
        self.inspect_until(entries_max, &Cancel::default())
    }

    pub(crate) fn inspect_until(&self, entries_max: u64, cancel: &Cancel) -> Result<Inspection, EngineError> {
        self.inspect_into(Report::new(self, entries_max, cancel))
    }

    fn inspect_into(&self, mut report: Report<'_>) -> Result<Inspection, EngineError> {
        outside::inspect_superblock(self, &mut report);
        outside::inspect_buckets(self, &mut report);
        for slice in &self.slices {
            outside::inspect_volumes(slice, &mut report);
            let following = slice.changes.follow(&slice.environment)?;
            scan_readable_slice(slice, &following, &mut report)?;
        }
        Ok(report.finish())
    }
}

/// Scans a slice whose metadata file is as it should be.
pub(crate) fn scan_readable_slice(
    slice: &Slice,
    following: &Following<'_>,
    report: &mut Report<'_>,
) -> Result<Scanned, EngineError> {
    if outside::metadata_is_readable(slice, report) {
        return scan::scan_slice(slice, following, report);
    }
    Ok(Scanned { refusal: Some("its metadata cannot be read".to_owned()), ..Scanned::default() })
}
