//! The result of an inspection: totals of the records, and the findings.

use super::finding::Finding;
use crate::types::bucket::Usage;

/// The result of an inspection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Whether everything was compared. False if the limit was reached or damage left something undecided.
    pub complete: bool,
    /// Records that were read: versions, uploads, parts, and references to them.
    pub entries_examined: u64,
    /// Usage of all buckets, summed over the records.
    pub usage: Usage,
    /// Records of parts, of unfinished uploads and of versions together.
    pub parts: u64,
    /// Bytes of the units that records own.
    pub owned_bytes: u64,
    /// Maximal runs of units that are marked but owned by no record.
    pub orphaned_payloads: u64,
    /// Bytes of those units.
    pub orphaned_bytes: u64,
    /// The first findings.
    pub findings: Vec<Finding>,
    /// Findings beyond the limit of [`crate::limits::FINDINGS_MAX`].
    pub findings_omitted: u64,
}

impl Inspection {
    /// Returns whether there are no findings.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.findings_omitted == 0
    }
}
