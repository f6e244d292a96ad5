//! Compares a slice's replica with its free map, counters and totals.
//!
//! All values are as of one snapshot.

use super::FindingKind;
use super::replica::{CHUNK_WORDS, Words};
use super::report::Report;
use super::scan::{Scan, Scanned, UnknownBucketRecord, sequence};
use super::surroundings::VolumeBounds;
use crate::error::EngineError;
use crate::format::extent::Extent;
use crate::format::free_map::{self, Bits, CHUNK_UNITS};
use crate::format::usage_record;
use crate::limits::{FINDINGS_MAX, REPAIRED_RUNS_MAX};
use crate::slice::due_states::read_due_states;
use crate::slice::tables::IDENTITY_KEY;
use crate::types::bucket::Usage;
use cairn_lmdb::{Entry, ReadTxn, Table, Totals};

/// Compares free map, counters and totals of the snapshot with what its records add up to.
pub(super) fn compare(
    scan: &mut Scan<'_>,
    txn: &ReadTxn<'_>,
    report: &mut Report<'_>,
) -> Result<Scanned, EngineError> {
    let mut totals = scan.replica.totals;
    let mut scanned = Scanned { snapshot: txn.id(), ..Scanned::default() };
    compare_slice_records(scan, txn, &mut totals, report)?;
    compare_usage(scan, txn, &mut totals, report)?;
    compare_space(scan, txn, &mut totals, report, &mut scanned)?;
    compare_totals(scan, txn, totals, report, &mut scanned);
    Ok(scanned)
}

/// Iterates over the records of a table and adds each to the totals.
fn count<'t>(
    txn: &'t ReadTxn<'_>,
    table: Table,
    totals: &mut Totals,
) -> Result<impl Iterator<Item = Result<Entry<'t>, EngineError>>, EngineError> {
    Ok(txn.entries(table, None)?.map(|entry| {
        let entry = entry?;
        totals.records += 1;
        totals.hash = totals.hash.wrapping_add(entry.stored_checksum);
        Ok(entry)
    }))
}

fn compare_slice_records(
    scan: &mut Scan<'_>,
    txn: &ReadTxn<'_>,
    totals: &mut Totals,
    report: &mut Report<'_>,
) -> Result<(), EngineError> {
    let slice = scan.slice;
    for table in [slice.tables.slice, slice.tables.due_state] {
        for entry in count(txn, table, totals)? {
            scan.is_damaged |= entry?.record.is_err();
        }
    }
    if let Err(error) = read_due_states(txn, &slice.tables) {
        let what = format!("slice {}: {error}", slice.number);
        report.report(FindingKind::SliceRecordDamaged, what);
    }
    let mut identity = slice.superblock.store.0.to_vec();
    identity.extend_from_slice(&slice.number.to_le_bytes());
    let found = txn.get(slice.tables.slice, IDENTITY_KEY);
    if !matches!(found, Ok(Some(record)) if record.body == identity) {
        let what = format!("the identity of slice {} is missing or damaged", slice.number);
        report.report(FindingKind::SliceRecordDamaged, what);
    }
    if sequence(slice, txn).is_none() {
        let what = format!("the sequence of slice {} is missing or damaged", slice.number);
        report.report(FindingKind::SliceRecordDamaged, what);
    }
    Ok(())
}

fn compare_usage(
    scan: &mut Scan<'_>,
    txn: &ReadTxn<'_>,
    totals: &mut Totals,
    report: &mut Report<'_>,
) -> Result<(), EngineError> {
    let slice = scan.slice;
    let mut summed = scan.replica.usage.clone();
    let mut different = Vec::new();
    for entry in count(txn, slice.tables.usage, totals)? {
        let entry = entry?;
        let id = entry.key.try_into().ok().map(u64::from_be_bytes);
        let stored = entry.record.as_ref().ok().and_then(|record| usage_record::decode(*record));
        let sums = id.and_then(|id| summed.remove(&id)).unwrap_or_default();
        let (Some(id), Some(stored)) = (id, stored) else {
            scan.is_damaged |= entry.record.is_err();
            let what = format!("a usage counter of slice {} is damaged", slice.number);
            report.report_bucket(FindingKind::UsageDamaged, id.unwrap_or_default(), what);
            continue;
        };
        if stored != sums {
            different.push((id, stored, sums));
        }
        if !report.buckets.contains_key(&id) {
            let (table, key) = (slice.tables.usage, entry.key.to_vec());
            scan.unconfirmed.push(UnknownBucketRecord { table, followed: None, key, bucket: id });
        }
    }
    different.extend(summed.into_iter().map(|(id, sums)| (id, Usage::default(), sums)));
    // If a record could not be read, the sums are known to be wrong.
    if scan.undecided.is_none() {
        for (id, counted, sums) in different {
            let what =
                format!("slice {}: the counter is {counted:?}, the records add up to {sums:?}", slice.number);
            report.report_bucket(FindingKind::UsageMismatch, id, what);
        }
    }
    Ok(())
}

fn compare_totals(
    scan: &Scan<'_>,
    txn: &ReadTxn<'_>,
    counted: Totals,
    report: &mut Report<'_>,
    scanned: &mut Scanned,
) {
    let number = scan.slice.number;
    let (kind, what) = match txn.totals() {
        Err(error) => (FindingKind::SliceRecordDamaged, format!("the totals of slice {number}: {error}")),
        // The damaged part of a value may be its stored check, which is part of the hash.
        Ok(totals)
            if totals.records != counted.records || (totals.hash != counted.hash && !scan.is_damaged) =>
        {
            (
                FindingKind::TotalsMismatch,
                format!("slice {number}: the totals are {totals:?}, the records give {counted:?}"),
            )
        }
        Ok(_) => return,
    };
    report.report(kind, what);
    // The space of a lost record looks like an orphan.
    scanned.refusal =
        Some("the number or the hash of its records has changed: records may be lost".to_owned());
}

fn compare_space(
    scan: &mut Scan<'_>,
    txn: &ReadTxn<'_>,
    totals: &mut Totals,
    report: &mut Report<'_>,
    scanned: &mut Scanned,
) -> Result<(), EngineError> {
    let (slice, mut is_readable) = (scan.slice, true);
    let (mut orphans, mut unmarked) = (Runs::default(), Runs::default());
    let mut differences = Differences {
        volumes: &scan.volumes,
        number: slice.number,
        owners_are_known: scan.undecided.is_none(),
        unmarked: Vec::new(),
        report,
        scanned,
    };
    let mut owned = scan.replica.owned.chunks.iter().peekable();
    for entry in count(txn, slice.tables.free_map, totals)? {
        let entry = entry?;
        let stored = entry.record.as_ref().ok();
        let decoded =
            stored.and_then(|record| free_map::decode_chunk(entry.key, record.version, record.body));
        let Some((place, bits)) = decoded else {
            is_readable = false;
            scan.is_damaged |= stored.is_none();
            let what = format!("slice {}: the record of {}", slice.number, chunk_name(entry.key));
            differences.report.report(FindingKind::FreeMapDamaged, what);
            continue;
        };
        while let Some((place, words)) = owned.next_if(|(other, _)| **other < place) {
            unmarked.add_words(*place, words, &mut |run| differences.unmarked(run));
        }
        let words =
            owned.next_if(|(other, _)| **other == place).map_or(&[0; CHUNK_WORDS], |(_, words)| &**words);
        let marked = words_of(bits);
        orphans.add_words(place, &without(&marked, words), &mut |run| differences.orphan(run));
        unmarked.add_words(place, &without(words, &marked), &mut |run| differences.unmarked(run));
    }
    for (place, words) in owned {
        unmarked.add_words(*place, words, &mut |run| differences.unmarked(run));
    }
    orphans.end(&mut |run| differences.orphan(run));
    unmarked.end(&mut |run| differences.unmarked(run));
    if is_readable {
        differences.report_unmarked();
    } else {
        scan.leave_out("a record of the free map cannot be read");
    }
    Ok(())
}

/// Differences between free map and replica.
struct Differences<'d, 's> {
    volumes: &'d VolumeBounds,
    number: u16,
    /// Whether every record was read. Only then do units without a record have no owner.
    owners_are_known: bool,
    unmarked: Vec<Extent>,
    report: &'d mut Report<'s>,
    scanned: &'d mut Scanned,
}

impl Differences<'_, '_> {
    /// Reports a maximal run that is marked but owned by no record.
    fn orphan(&mut self, run: Extent) {
        let within = self.volumes.within(run);
        if within != Some(run) {
            let what =
                format!("slice {}: {run:?} is marked, but lies partly outside of the volumes", self.number);
            self.report.report(FindingKind::MarkOutsideVolume, what);
        }
        let Some(run) = within.filter(|_| self.owners_are_known) else { return };
        let what = format!("slice {}: {run:?} is marked, but no record owns it", self.number);
        self.report.report(FindingKind::OrphanedSpace, what);
        let inspection = self.report.inspection();
        inspection.orphaned_payloads += 1;
        inspection.orphaned_bytes += run.bytes();
        if self.scanned.orphans.len() < REPAIRED_RUNS_MAX {
            self.scanned.orphans.push(run);
        }
    }

    /// Remembers a maximal run that records own but that is not marked.
    fn unmarked(&mut self, run: Extent) {
        // One more than can be reported, so that the number of omitted findings is not zero.
        if self.unmarked.len() <= FINDINGS_MAX {
            self.unmarked.push(run);
        }
    }

    fn report_unmarked(self) {
        for run in self.unmarked {
            let what = format!("slice {}: {run:?} is owned, but not marked", self.number);
            self.report.report(FindingKind::SpaceNotMarked, what);
        }
    }
}

fn chunk_name(key: &[u8]) -> String {
    let ([volume, chunk], []) = key.as_chunks::<4>() else { return "an invalid key".to_owned() };
    format!("chunk {} of volume {}", u32::from_be_bytes(*chunk), u32::from_be_bytes(*volume))
}

/// Converts the bits of a chunk to the representation of the replica.
fn words_of(bits: &Bits) -> Words {
    let mut words = [0; CHUNK_WORDS];
    for (word, bytes) in words.iter_mut().zip(bits.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// The set difference: bits of `of` that are not in `other`.
fn without(of: &Words, other: &Words) -> Words {
    let mut rest = *of;
    rest.iter_mut().zip(other).for_each(|(word, other)| *word &= !other);
    rest
}

/// Merges adjacent bits, added in ascending order, into maximal runs.
#[derive(Default)]
struct Runs(Option<Extent>);

impl Runs {
    fn add_words(&mut self, (volume, chunk): (u32, u32), words: &Words, found: &mut dyn FnMut(Extent)) {
        for (word, first) in words.iter().zip((chunk * CHUNK_UNITS..).step_by(64)) {
            let (mut rest, mut passed) = (*word, 0);
            while rest != 0 {
                let zeros = rest.trailing_zeros();
                let units = (rest >> zeros).trailing_ones();
                self.add(Extent { volume, start: first + passed + zeros, units }, found);
                passed += zeros + units;
                rest = rest.checked_shr(zeros + units).unwrap_or(0);
            }
        }
    }

    fn add(&mut self, run: Extent, found: &mut dyn FnMut(Extent)) {
        if let Some(open) = &mut self.0
            && open.volume == run.volume
            && open.start + open.units == run.start
        {
            open.units += run.units;
        } else if let Some(ended) = self.0.replace(run) {
            found(ended);
        }
    }

    fn end(&mut self, found: &mut dyn FnMut(Extent)) {
        self.0.take().into_iter().for_each(found);
    }
}
