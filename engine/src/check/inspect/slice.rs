//! The inspection of one slice: reads it segment by segment, then compares it with its replica.

use super::FindingKind;
use super::compare::compare;
use super::report::Report;
use super::scan::{Scan, Scanned, Segment};
use crate::error::EngineError;
use crate::limits::UNIT_BYTES;
use crate::slice::Slice;
use crate::slice::change_log::Following;

/// Inspects a slice.
///
/// # Errors
/// [`EngineError::ShuttingDown`] when it was cancelled. Everything else is a finding.
pub(crate) fn inspect_slice(
    slice: &Slice,
    following: &Following<'_>,
    report: &mut Report<'_>,
) -> Result<Scanned, EngineError> {
    let mut scan = Scan::new(slice);
    let mut scanned = Scanned::default();
    loop {
        report.check_cancelled()?;
        let ended = scan.step(following, report, &mut scanned);
        let has_more = ended.unwrap_or_else(|error| {
            let what = format!("the metadata of slice {} cannot be read: {error}", slice.number);
            report.report(FindingKind::MetadataUnreadable, what.clone());
            scan.leave_out(&what);
            false
        });
        scan.confirm(report);
        if !has_more {
            break;
        }
    }
    let inspection = report.inspection();
    for usage in scan.replica.usage.values() {
        inspection.usage.add(usage);
    }
    inspection.parts += scan.replica.parts;
    inspection.owned_bytes += scan.replica.owned.units() * UNIT_BYTES;
    if let Some(why) = scan.undecided {
        report.leave_out();
        scanned.refusal.get_or_insert(why);
    }
    Ok(scanned)
}

impl Scan<'_> {
    /// Processes one snapshot: applies logged changes and reads a segment. After the last segment, compares. Returns whether
    /// more segments follow.
    pub(super) fn step(
        &mut self,
        following: &Following<'_>,
        report: &mut Report<'_>,
        scanned: &mut Scanned,
    ) -> Result<bool, EngineError> {
        let slice = self.slice;
        let txn = slice.environment.read()?;
        // Measured after the snapshot was taken: volumes only grow, so the extents of its records must lie in them.
        self.volumes.measure(slice);
        let Some(changes) = following.take_up_to(txn.id()) else {
            self.leave_out("more changes were made during the scan than the change log holds");
            return Ok(false);
        };
        // Changes after the cursor are skipped: their records will be read.
        let Self { replica, cursor, .. } = self;
        changes.into_iter().for_each(|change| replica.apply(change, cursor));
        match self.read_segment(&txn, report)? {
            Segment::More => Ok(true),
            Segment::Cut => {
                self.leave_out("not all records were examined");
                Ok(false)
            }
            Segment::End => {
                *scanned = compare(self, &txn, report)?;
                Ok(false)
            }
        }
    }
}
