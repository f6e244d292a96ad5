//! The scan of one slice: segment after segment, the shadow brought up to each snapshot, then the comparison.
//!
//! The file `inspect.rs` says why this sees one consistent state.

use super::FindingKind;
use super::compare;
use super::outside::{self, Reach};
use super::records::{self, Frame};
use super::relations::{self, PartOwner};
use super::report::Report;
use super::shadow::{Cursor, Shadow};
use crate::bucket::Usage;
use crate::changes::{FollowedTable, Following};
use crate::codec;
use crate::error::EngineError;
use crate::extent::Extent;
use crate::keys;
use crate::limits::{SLICES_MAX, UNIT_BYTES};
use crate::part_record::PartRecord;
use crate::record::{Content, ObjectRecord};
use crate::slice::{SEQUENCE_KEY, Slice};
use crate::upload_record;
use cairn_lmdb::{Entry, ReadTxn, Record, Table};

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
    /// `None`: a usage counter.
    pub(super) followed: Option<FollowedTable>,
    /// Id of the bucket.
    pub(super) bucket: u64,
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
    /// The last record that was read.
    cursor: Cursor,
    pub(super) suspects: Vec<Suspect>,
    /// Parts that were read beside the record of a version.
    parts_looked_up: u64,
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
    let mut scan = Scan::new(slice);
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
    for usage in scan.shadow.usage.values() {
        inspection.usage.add(usage);
    }
    inspection.parts += scan.shadow.parts;
    inspection.owned_bytes += scan.shadow.owned.units() * UNIT_BYTES;
    if let Some(why) = scan.undecided {
        report.leave_out();
        scanned.refusal.get_or_insert(why);
    }
    Ok(scanned)
}

impl<'s> Scan<'s> {
    pub(super) fn new(slice: &'s Slice) -> Self {
        Self {
            slice,
            shadow: Shadow::default(),
            reach: Reach::default(),
            undecided: None,
            is_damaged: false,
            cursor: Cursor::before(FollowedTable::Objects),
            suspects: Vec::new(),
            parts_looked_up: 0,
        }
    }

    /// One snapshot: catches up, reads a segment, and compares when it was the last. Whether there is more to do.
    pub(super) fn step(
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
        let Self { shadow, cursor, .. } = self;
        changes.into_iter().for_each(|change| shadow.apply(change, cursor));
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
        let mut read = 0;
        loop {
            let Cursor { table, key } = self.cursor.clone();
            let after = (!key.is_empty()).then_some(key.as_slice());
            for entry in txn.entries(self.slice.tables.followed(table).0, after)? {
                let entry = entry?;
                if read >= report.segment_records {
                    return Ok(Segment::More);
                }
                if !report.may_examine() {
                    return Ok(Segment::Cut);
                }
                self.read_record(txn, frame, &entry, report);
                read += 1 + std::mem::take(&mut self.parts_looked_up);
                self.cursor.key.clear();
                self.cursor.key.extend_from_slice(entry.key);
            }
            match table.next() {
                Some(next) => self.cursor = Cursor::before(next),
                None => return Ok(Segment::End),
            }
        }
    }

    fn read_record(&mut self, txn: &ReadTxn<'_>, frame: Frame, entry: &Entry<'_>, report: &mut Report<'_>) {
        let table = self.cursor.table;
        self.shadow.count(table, entry.stored_check);
        let stored = match &entry.record {
            Ok(stored) => *stored,
            Err(error) => {
                self.is_damaged = true;
                self.undecodable(FindingKind::RecordDamaged, entry.key, &error.to_string(), report);
                return;
            }
        };
        self.suspect_bucket(entry.key, report);
        let read = match table {
            FollowedTable::Objects => self.read_version(txn, frame, entry.key, stored, report),
            FollowedTable::Uploads => self.read_upload(frame, entry.key, stored, report),
            FollowedTable::Parts => self.read_part(txn, entry.key, stored, report),
            FollowedTable::Assembled => {
                relations::judge_assembled(txn, &self.slice.tables, entry.key, stored)
            }
            FollowedTable::NullVersions => {
                relations::judge_null_entry(txn, &self.slice.tables, entry.key, stored)
            }
        };
        match read {
            Ok(None) => {}
            Ok(Some((kind, what))) => report.find_record(kind, table, entry.key, what),
            Err(EngineError::Corrupt(what)) => {
                self.undecodable(FindingKind::RecordUndecodable, entry.key, &what, report);
            }
            Err(error) => self.leave_out(&error.to_string()),
        }
    }

    fn read_version(
        &mut self,
        txn: &ReadTxn<'_>,
        frame: Frame,
        key: &[u8],
        stored: Record<'_>,
        report: &mut Report<'_>,
    ) -> Result<Option<(FindingKind, &'static str)>, EngineError> {
        let record = ObjectRecord::decode(stored.version, stored.body)?;
        records::judge(frame, key, &record, stored.tail.len() as u64, |kind, what| {
            report.find_record(kind, FollowedTable::Objects, key, &what);
        });
        let shared = keys::shared_length(key);
        let before = &self.cursor.key;
        let is_newest = keys::shared_length(before) != shared || before.get(..shared) != key.get(..shared);
        let info = &record.info;
        let mut counts = match record.content {
            Content::DeleteMarker => Usage { delete_markers: 1, ..Usage::default() },
            _ => Usage { versions: 1, version_bytes: info.size, ..Usage::default() },
        };
        if is_newest && !record.is_delete_marker() {
            (counts.objects, counts.bytes) = (1, info.size);
        }
        self.add_usage(key, &counts);
        let tables = &self.slice.tables;
        match &record.content {
            Content::Payload(payload) => {
                payload.owned().for_each(|extent| self.own(key, extent, report));
            }
            Content::Parts { upload, .. } => {
                self.parts_looked_up = u64::from(info.etag.parts);
                if let Some(found) = relations::judge_parts(txn, tables, key, info, *upload)? {
                    return Ok(Some(found));
                }
            }
            Content::DeleteMarker => {}
        }
        if !is_newest && info.is_null {
            return relations::judge_older_null(txn, tables, key, info.version.0);
        }
        Ok(None)
    }

    fn read_upload(
        &mut self,
        frame: Frame,
        key: &[u8],
        stored: Record<'_>,
        report: &mut Report<'_>,
    ) -> Result<Option<(FindingKind, &'static str)>, EngineError> {
        let Some((bucket, object, id)) = keys::decode_upload(key) else {
            return Ok(Some((FindingKind::KeyUndecodable, "the key of an upload does not decode")));
        };
        upload_record::decode(stored.version, stored.body, id)?;
        if keys::slice_of(bucket, &object, frame.slices) != frame.slice {
            let what = "an upload lies in a slice that its key does not belong to";
            report.find_record(FindingKind::WrongSlice, FollowedTable::Uploads, key, what);
        }
        self.add_usage(key, &Usage { uploads: 1, ..Usage::default() });
        let is_behind = id.0 > frame.sequence;
        Ok(is_behind.then_some((FindingKind::SequenceBehind, "an upload that the slice did not give out")))
    }

    fn read_part(
        &mut self,
        txn: &ReadTxn<'_>,
        key: &[u8],
        stored: Record<'_>,
        report: &mut Report<'_>,
    ) -> Result<Option<(FindingKind, &'static str)>, EngineError> {
        let Some((upload, number)) = keys::decode_part(key) else {
            return Ok(Some((FindingKind::KeyUndecodable, "the key of a part does not decode")));
        };
        let record = PartRecord::decode(stored.version, stored.body, number)?;
        let size = record.info.size;
        record.payload.owned().for_each(|extent| self.own(key, extent, report));
        if let Some(what) = records::geometry(size, &record.payload, stored.tail.len() as u64) {
            report.find_record(FindingKind::GeometryMismatch, FollowedTable::Parts, key, &what);
        }
        match relations::owner_of_parts(txn, &self.slice.tables, upload) {
            PartOwner::Upload => {
                self.add_usage(key, &Usage { part_bytes: size, ..Usage::default() });
                Ok(None)
            }
            PartOwner::Version => Ok(None),
            PartOwner::Nothing => {
                Ok(Some((FindingKind::PartWithoutUpload, "a part belongs to no upload and no version")))
            }
        }
    }

    fn add_usage(&mut self, key: &[u8], counts: &Usage) {
        if let Some((bucket, _)) = key.split_first_chunk::<8>() {
            self.shadow.add_usage(u64::from_be_bytes(*bucket), counts);
        }
    }

    /// Notes a record whose bucket is not known.
    fn suspect_bucket(&mut self, key: &[u8], report: &Report<'_>) {
        let Some((bucket, _)) = key.split_first_chunk::<8>() else { return };
        let bucket = u64::from_be_bytes(*bucket);
        if !report.buckets.contains_key(&bucket) {
            let (table, _) = self.slice.tables.followed(self.cursor.table);
            let followed = Some(self.cursor.table);
            self.suspects.push(Suspect { table, followed, key: key.to_vec(), bucket });
        }
    }

    /// A record that cannot be read owns nobody knows what.
    fn undecodable(&mut self, kind: FindingKind, key: &[u8], what: &str, report: &mut Report<'_>) {
        let what = format!("slice {}: {what}", self.slice.number);
        report.find_record(kind, self.cursor.table, key, &what);
        self.leave_out("a record cannot be read, so what it owns is not known");
    }

    /// Adds an extent to the shadow, as far as it lies in a volume.
    fn own(&mut self, key: &[u8], extent: Extent, report: &mut Report<'_>) {
        let within = self.reach.within(extent);
        if within != Some(extent) {
            let what = format!("{extent:?} of slice {} lies outside of the volumes", self.slice.number);
            report.find_record(FindingKind::ExtentOutsideVolume, self.cursor.table, key, &what);
        }
        let Some(within) = within else { return };
        let twice = self.shadow.owned.insert(within);
        if twice > 0 {
            let what = format!("{twice} units of {within:?} in slice {} are owned twice", self.slice.number);
            report.find_record(FindingKind::ExtentOwnedTwice, self.cursor.table, key, &what);
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
        for Suspect { table, followed, key, bucket } in suspects {
            // Also a record that is damaged is there.
            let is_there = !matches!(txn.get(table, &key), Ok(None));
            if is_there && !report.buckets.contains_key(&bucket) {
                let what = format!("slice {}: the bucket with id {bucket} does not exist", self.slice.number);
                match followed {
                    Some(table) => report.find_record(FindingKind::UnknownBucket, table, &key, &what),
                    None => report.find(FindingKind::UsageOfUnknownBucket, what),
                }
            }
        }
    }
}

/// The last sequence that the slice has given out, as of a snapshot.
pub(super) fn sequence(slice: &Slice, txn: &ReadTxn<'_>) -> Option<u64> {
    let record = txn.get(slice.tables.slice, SEQUENCE_KEY).ok()??;
    codec::u64_of(record.body)
}
