//! Repair: frees space that is marked in the free map but owned by no record.
//!
//! This is the only repair that cannot lose data. It is based on an inspection of the slice. Only if every record could be
//! read, and none was lost, is it known which units no record owns. Otherwise the slice is left unchanged, and the result
//! says why. The slice's committer removes the marks and decides again within its transaction: a run stays if a record has
//! come to own it since the inspection's snapshot, or if it is not completely marked any more. The space is reused after
//! the change is durable and all readers of that time have ended.

use crate::check::inspect::{Inspecting, Inspection, Report, begin, scan_readable_slice};
use crate::error::EngineError;
use crate::format::extent::{Extent, push_extent};
use crate::limits::{REPAIR_RUNS_PER_CHANGE, REPAIR_UNITS_PER_CHANGE};
use crate::slice::Slice;
use crate::slice::command::{Command, FreeOrphans};
use crate::store::Store;
use crate::store::background::Cancel;
use futures_channel::oneshot;
use std::sync::Arc;

/// The mode of a repair: with or without changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairMode {
    /// Reports what would be removed.
    DryRun,
    /// Removes orphans.
    Apply,
}

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Whether every slice was read completely and none was refused.
    pub complete: bool,
    /// Number of records read.
    pub entries_examined: u64,
    /// Maximal runs of units that were marked but owned by no record.
    pub orphaned_payloads: u64,
    /// Bytes of those units.
    pub orphaned_bytes: u64,
    /// Runs that were freed.
    pub removed_payloads: u64,
    /// Bytes of those runs.
    pub removed_bytes: u64,
    /// Slices that were left unchanged, with the reason.
    pub refused: Vec<(u16, String)>,
}

impl Store {
    /// Starts an inspection on its own thread; see [`Store::inspect`].
    ///
    /// # Errors
    /// [`EngineError::AlreadyRunning`] while an inspection or repair is running, [`EngineError::ShuttingDown`].
    pub fn begin_inspection(
        self: &Arc<Self>,
        entries_max: u64,
    ) -> Result<Inspecting<Inspection>, EngineError> {
        begin(self, move |store, cancel| store.inspect_until(entries_max, cancel))
    }

    /// Starts a repair on its own thread; see [`Store::repair`].
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

    /// Finds orphaned space, reading at most `entries_max` records, and frees it with [`RepairMode::Apply`]. Blocks, so only
    /// plain threads call it.
    ///
    /// # Errors
    /// [`EngineError::AlreadyRunning`] while an inspection or repair is running, and failures of
    /// a slice's committer. Space that was freed before stays free.
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
            let following = slice.change_log.follow(&slice.environment)?;
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

/// Lets the slice's committer free the runs; returns those that it freed.
fn free_orphans(slice: &Slice, snapshot: u64, runs: Vec<Extent>) -> Result<Vec<Extent>, EngineError> {
    let (reply, answer) = oneshot::channel();
    slice.commits.queue.push(Command::FreeOrphans(Box::new(FreeOrphans { snapshot, runs }), reply))?;
    futures_lite::future::block_on(answer).map_err(|_| EngineError::ShuttingDown)?
}

/// Divides runs into small changes. Long runs are divided too.
fn portions(runs: &[Extent]) -> Vec<Vec<Extent>> {
    let units_max = u32::try_from(REPAIR_UNITS_PER_CHANGE).expect("a small constant");
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
    use crate::format::extent::Extent;
    use crate::limits::{REPAIR_RUNS_PER_CHANGE, REPAIR_UNITS_PER_CHANGE};

    #[test]
    fn portions_are_small_and_cover_each_unit_once() {
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
