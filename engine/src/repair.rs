//! Repair: takes marks off space that no record owns.
//!
//! That is the one repair that cannot lose anything. It rests on an inspection of the slice: only when every record of it
//! was read and understood, and none has vanished, is it known what no record owns; else the slice is left alone, and the
//! result says why. The marks are taken off by the slice's committer, which decides again within its transaction: a run
//! that a record has come to own since the inspection's snapshot, or that is not marked as a whole any more, stays as it
//! is. The space is handed out again when that is durable and all readers of the time have ended.

use crate::error::EngineError;
use crate::extent::{Extent, push_extent};
use crate::inspect::{Cancel, Inspecting, Inspection, Report, begin, scan_readable_slice};
use crate::limits::{REPAIR_RUNS_PER_CHANGE, REPAIR_UNITS_PER_CHANGE};
use crate::queue::{FreeOrphansJob, Job};
use crate::slice::Slice;
use crate::store::Store;
use futures_channel::oneshot;
use std::sync::Arc;

/// Whether a repair changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairMode {
    /// It says what it would remove.
    DryRun,
    /// It removes orphans.
    Apply,
}

/// What a repair found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Every slice was examined to its end and none was refused.
    pub complete: bool,
    /// Records that were read.
    pub entries_examined: u64,
    /// Maximal runs of units that were marked and that no record owned.
    pub orphaned_payloads: u64,
    /// Bytes of those units.
    pub orphaned_bytes: u64,
    /// Runs whose marks were taken off.
    pub removed_payloads: u64,
    /// Bytes of those.
    pub removed_bytes: u64,
    /// Slices that were left alone, and why.
    pub refused: Vec<(u16, String)>,
}

impl Store {
    /// Begins an inspection on a thread of its own; see [`Store::inspect`].
    ///
    /// # Errors
    /// [`EngineError::Overloaded`] when an inspection or repair is under way, [`EngineError::ShuttingDown`].
    pub fn begin_inspection(
        self: &Arc<Self>,
        entries_max: u64,
    ) -> Result<Inspecting<Inspection>, EngineError> {
        begin(self, move |store, cancel| store.inspect_until(entries_max, cancel))
    }

    /// Begins a repair on a thread of its own; see [`Store::repair`].
    ///
    /// # Errors
    /// As [`Store::begin_inspection`].
    pub fn begin_repair(
        self: &Arc<Self>,
        entries_max: u64,
        mode: RepairMode,
    ) -> Result<Inspecting<Repair>, EngineError> {
        begin(self, move |store, cancel| store.repair_until(entries_max, mode, cancel))
    }

    /// Looks for orphaned space in slices with `entries_max` object records at most in all, and removes it if told so.
    /// Blocks: for plain threads.
    ///
    /// # Errors
    /// [`EngineError::Overloaded`] when an inspection or repair is under way, and what keeps a slice's committer from
    /// making changes; what was removed before stays removed.
    pub fn repair(&self, entries_max: u64, mode: RepairMode) -> Result<Repair, EngineError> {
        self.repair_until(entries_max, mode, &Cancel::default())
    }

    fn repair_until(
        &self,
        entries_max: u64,
        mode: RepairMode,
        cancel: &Cancel,
    ) -> Result<Repair, EngineError> {
        let mut report = Report::new(self, entries_max, cancel);
        let mut repair = Repair::default();
        for slice in &self.slices {
            let following = slice.changes.follow(&slice.environment)?;
            let scanned = scan_readable_slice(slice, &following, &mut report)?;
            if let Some(why) = scanned.refusal {
                repair.refused.push((slice.number, why));
            } else if mode == RepairMode::Apply {
                let mut removed = Vec::new();
                for runs in portions(&scanned.orphans) {
                    cancel.check()?;
                    for piece in free_orphans(slice, scanned.snapshot, runs)? {
                        push_extent(&mut removed, piece);
                    }
                }
                repair.removed_payloads += removed.len() as u64;
                repair.removed_bytes += removed.iter().map(Extent::bytes).sum::<u64>();
            }
        }
        let inspection = report.finish();
        repair.complete = inspection.complete && repair.refused.is_empty();
        repair.entries_examined = inspection.entries_examined;
        repair.orphaned_payloads = inspection.orphaned_payloads;
        repair.orphaned_bytes = inspection.orphaned_bytes;
        if repair.removed_payloads > 0 {
            tracing::info!(target: "service::engine", payloads = repair.removed_payloads, bytes = repair.removed_bytes, "orphaned space was freed");
        }
        Ok(repair)
    }
}

/// Has the slice's committer take the marks off; returns the runs for which it did.
fn free_orphans(slice: &Slice, snapshot: u64, runs: Vec<Extent>) -> Result<Vec<Extent>, EngineError> {
    let (reply, answer) = oneshot::channel();
    slice.queue.push(Job::FreeOrphans(Box::new(FreeOrphansJob { snapshot, runs }), reply))?;
    futures_lite::future::block_on(answer).map_err(|_| EngineError::ShuttingDown)?
}

/// Runs in portions of which each is a small change; a long run is cut.
fn portions(runs: &[Extent]) -> Vec<Vec<Extent>> {
    let units_max = u32::try_from(REPAIR_UNITS_PER_CHANGE).unwrap_or(u32::MAX);
    let mut portions: Vec<Vec<Extent>> = Vec::new();
    let mut units = 0;
    for run in runs {
        let (mut start, end) = (run.start, run.start + run.units);
        while start < end {
            let piece = Extent { start, units: units_max.min(end - start), ..*run };
            start += piece.units;
            units += u64::from(piece.units);
            match portions.last_mut() {
                Some(last) if last.len() < REPAIR_RUNS_PER_CHANGE && units <= REPAIR_UNITS_PER_CHANGE => {
                    last.push(piece);
                }
                _ => {
                    units = u64::from(piece.units);
                    portions.push(vec![piece]);
                }
            }
        }
    }
    portions
}

#[cfg(test)]
mod tests {
    use super::portions;
    use crate::extent::Extent;
    use crate::limits::{REPAIR_RUNS_PER_CHANGE, REPAIR_UNITS_PER_CHANGE};

    #[test]
    fn portions_hold_every_unit_once_and_are_small() {
        let mut runs = vec![Extent { volume: 0, start: 5, units: 200_000 }];
        runs.extend((0..1000).map(|n| Extent { volume: 1, start: n * 10, units: 3 }));
        let portions = portions(&runs);
        let mut units = 0;
        for portion in &portions {
            let of_portion = portion.iter().map(|run| u64::from(run.units)).sum::<u64>();
            assert!(portion.len() <= REPAIR_RUNS_PER_CHANGE && of_portion <= REPAIR_UNITS_PER_CHANGE);
            units += of_portion;
        }
        assert_eq!(units, 203_000);
        let mut pieces: Vec<_> = portions.concat();
        pieces.sort_unstable_by_key(Extent::address);
        assert!(pieces.windows(2).all(|two| !two[0].overlaps(&two[1])));
    }
}
