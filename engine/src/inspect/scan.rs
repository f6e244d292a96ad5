//! The scan of one slice: segment after segment, the shadow brought up to each snapshot, then the comparison.
//!
//! The file `inspect.rs` says why this sees one consistent state.

use super::FindingKind;
use super::compare;
use super::outside::{self, Reach};
use super::records::{self, Frame};
use super::report::Report;
use super::shadow::Shadow;
use crate::changes::Following;
use crate::error::EngineError;
use crate::extent::Extent;
use crate::keys;
use crate::limits::{SLICES_MAX, UNIT_BYTES};
use crate::record::{ObjectRecord, PayloadForm};
use crate::slice::{SEQUENCE_KEY, Slice};
use cairn_lmdb::{Entry, ReadTxn, Table};

/// What a scan gives to a repair.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// Number of the last transaction of the snapshot that this is about.
    pub(crate) snapshot: u64,
    /// Maximal runs that are marked and that no record owns, up to a limit.
    pub(crate) orphans: Vec<Extent>,
    /// Why nothing of the slice may be repaired, if so.
    pub(crate) refusal: Option<String>,
}

/// A record that names a bucket which was not known when it was read.
pub(super) struct Suspect {
    pub(super) table: Table,
    pub(super) key: Vec<u8>,
    /// Id of the bucket.
    pub(super) bucket: u64,
    /// What it is when the bucket does not exist.
    pub(super) kind: FindingKind,
}

/// Where a segment ended.
enum Segment {
    /// There are more records.
    More,
    /// There are more records, but no more may be examined.
    Cut,
    /// That was all.
    End,
}

pub(super) struct Scan<'s> {
    pub(super) slice: &'s Slice,
    pub(super) shadow: Shadow,
    pub(super) reach: Reach,
    /// Why something could not be compared.
    pub(super) undecided: Option<String>,
    /// A stored value failed its check, so its part of the hash may be wrong too.
    pub(super) is_damaged: bool,
    /// The last key that was read.
    cursor: Option<Vec<u8>>,
    pub(super) suspects: Vec<Suspect>,
}

/// Reads a slice and compares it with itself.
///
/// # Errors
/// [`EngineError::ShuttingDown`] when it is to end early; all else is findings.
pub(crate) fn scan_slice(
    slice: &Slice,
    following: &Following<'_>,
    report: &mut Report<'_>,
) -> Result<Scanned, EngineError> {
    let mut scan = Scan {
        slice,
        shadow: Shadow::default(),
        reach: Reach::default(),
        undecided: None,
        is_damaged: false,
        cursor: None,
        suspects: Vec::new(),
    };
    let mut scanned = Scanned::default();
    loop {
        report.go_on()?;
        let ended = scan.step(following, report, &mut scanned);
        let go_on = ended.unwrap_or_else(|error| {
            let what = format!("the metadata of slice {} cannot be read: {error}", slice.number);
            report.find(FindingKind::MetadataUnreadable, what.clone());
            scan.leave_out(&what);
            false
        });
        scan.confirm(report);
        if !go_on {
            break;
        }
    }
    let inspection = report.inspection();
    for sums in scan.shadow.usage.values() {
        inspection.objects += sums.objects;
        inspection.versions += sums.objects;
        inspection.logical_bytes = inspection.logical_bytes.saturating_add(sums.bytes);
        inspection.physical_bytes = inspection.physical_bytes.saturating_add(sums.bytes);
    }
    inspection.owned_bytes += scan.shadow.owned.units() * UNIT_BYTES;
    if let Some(why) = scan.undecided {
        report.leave_out();
        scanned.refusal.get_or_insert(why);
    }
    Ok(scanned)
}

impl Scan<'_> {
    /// One snapshot: catches up, reads a segment, and compares when it was the last. Whether there is more to do.
    fn step(
        &mut self,
        following: &Following<'_>,
        report: &mut Report<'_>,
        scanned: &mut Scanned,
    ) -> Result<bool, EngineError> {
        let slice = self.slice;
        let txn = slice.environment.read()?;
        // After the snapshot was taken, for volumes only grow: whatever its records own must lie in the volumes of now.
        self.reach.look(slice);
        let Some(changes) = following.take_up_to(txn.id()) else {
            self.leave_out("more changes were made during the scan than are written down for it");
            return Ok(false);
        };
        // What lies behind the cursor will be read.
        let cursor = self.cursor.as_deref();
        changes
            .into_iter()
            .filter(|change| cursor.is_some_and(|cursor| change.key.as_slice() <= cursor))
            .for_each(|change| self.shadow.apply(change));
        match self.read_segment(&txn, report)? {
            Segment::More => Ok(true),
            Segment::Cut => {
                self.leave_out("not all records were examined");
                Ok(false)
            }
            Segment::End => {
                *scanned = compare::compare(self, &txn, report)?;
                Ok(false)
            }
        }
    }

    /// Notes that something cannot be decided; the first reason stays.
    pub(super) fn leave_out(&mut self, why: &str) {
        self.undecided.get_or_insert_with(|| why.to_owned());
    }

    fn read_segment(&mut self, txn: &ReadTxn<'_>, report: &mut Report<'_>) -> Result<Segment, EngineError> {
        let frame = Frame {
            slice: self.slice.number,
            slices: u16::try_from(report.store.slices.len()).unwrap_or(SLICES_MAX),
            // A damaged sequence is a finding of its own.
            sequence: sequence(self.slice, txn).unwrap_or(u64::MAX),
        };
        let entries = txn.entries(self.slice.tables.objects, self.cursor.clone().as_deref())?;
        for (read, entry) in (0..).zip(entries) {
            let entry = entry?;
            if read == report.segment_records {
                return Ok(Segment::More);
            }
            if !report.may_examine() {
                return Ok(Segment::Cut);
            }
            self.read_record(frame, &entry, report);
            let cursor = self.cursor.get_or_insert_default();
            cursor.clear();
            cursor.extend_from_slice(entry.key);
        }
        Ok(Segment::End)
    }

    fn read_record(&mut self, frame: Frame, entry: &Entry<'_>, report: &mut Report<'_>) {
        self.shadow.count(entry.stored_check);
        let stored = match &entry.record {
            Ok(stored) => stored,
            Err(error) => {
                self.is_damaged = true;
                self.undecodable(FindingKind::RecordDamaged, entry.key, &error.to_string(), report);
                return;
            }
        };
        let record = match ObjectRecord::decode(stored.version, stored.body) {
            Ok(record) => record,
            Err(invalid) => {
                self.undecodable(FindingKind::RecordUndecodable, entry.key, invalid.0, report);
                return;
            }
        };
        records::judge(frame, entry.key, &record, stored.tail.len() as u64, |kind, what| {
            report.find_record(kind, entry.key, &what);
        });
        let shared = keys::shared_length(entry.key);
        if let Some(before) = &self.cursor
            && keys::shared_length(before) == shared
            && before.get(..shared) == entry.key.get(..shared)
        {
            report.find_record(FindingKind::StaleVersion, entry.key, "the key has a newer record");
        }
        if let Some((bucket, _)) = entry.key.split_first_chunk::<8>() {
            let bucket = u64::from_be_bytes(*bucket);
            self.shadow.add_record(bucket, record.info.size);
            if !report.buckets.contains_key(&bucket) {
                let (table, key) = (self.slice.tables.objects, entry.key.to_vec());
                self.suspects.push(Suspect { table, key, bucket, kind: FindingKind::UnknownBucket });
            }
        }
        if let PayloadForm::Volume(payload) = &record.payload {
            payload.owned().for_each(|extent| self.own(entry.key, extent, report));
        }
    }

    /// A record that cannot be read owns nobody knows what.
    fn undecodable(&mut self, kind: FindingKind, key: &[u8], what: &str, report: &mut Report<'_>) {
        report.find_record(kind, key, &format!("slice {}: {what}", self.slice.number));
        self.leave_out("an object record cannot be read, so what it owns is not known");
    }

    /// Adds an extent to the shadow, as far as it lies in a volume.
    fn own(&mut self, key: &[u8], extent: Extent, report: &mut Report<'_>) {
        let within = self.reach.within(extent);
        if within != Some(extent) {
            let what = format!("{extent:?} of slice {} lies outside of the volumes", self.slice.number);
            report.find_record(FindingKind::ExtentOutsideVolume, key, &what);
        }
        let Some(within) = within else { return };
        let twice = self.shadow.owned.insert(within);
        if twice > 0 {
            let what = format!("{twice} units of {within:?} in slice {} are owned twice", self.slice.number);
            report.find_record(FindingKind::ExtentOwnedTwice, key, &what);
        }
    }

    /// Decides about the suspects of a segment: looks at what they name, then whether they are still there.
    fn confirm(&mut self, report: &mut Report<'_>) {
        if self.suspects.is_empty() {
            return;
        }
        let suspects = std::mem::take(&mut self.suspects);
        outside::look_at_buckets(report);
        let Ok(txn) = self.slice.environment.read() else {
            return self.leave_out("the metadata cannot be read again");
        };
        for Suspect { table, key, bucket, kind } in suspects {
            // Also a record that is damaged is there.
            let is_there = !matches!(txn.get(table, &key), Ok(None));
            if is_there && !report.buckets.contains_key(&bucket) {
                let what = format!("slice {}: the bucket with id {bucket} does not exist", self.slice.number);
                if kind == FindingKind::UnknownBucket {
                    report.find_record(kind, &key, &what);
                } else {
                    report.find(kind, what);
                }
            }
        }
    }
}

/// The last sequence that the slice has given out, as of a snapshot.
pub(super) fn sequence(slice: &Slice, txn: &ReadTxn<'_>) -> Option<u64> {
    let record = txn.get(slice.tables.slice, SEQUENCE_KEY).ok()??;
    record.body.try_into().ok().map(u64::from_le_bytes)
}
