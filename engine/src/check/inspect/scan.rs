//! Scan of a slice's records: checks each record and adds it to the replica.
//!
//! [`super`] explains why the scan sees one consistent state.

use super::FindingKind;
use super::due;
use super::records::{self, SliceFacts};
use super::relations::{self, PartOwner};
use super::replica::{Cursor, Replica};
use super::report::Report;
use super::surroundings::{self, VolumeBounds};
use crate::error::EngineError;
use crate::format::codec;
use crate::format::due_record::DueState;
use crate::format::event_record;
use crate::format::extent::Extent;
use crate::format::keys;
use crate::format::object_record::{Content, ObjectRecord};
use crate::format::part_record::PartRecord;
use crate::format::upload_record;
use crate::limits::SLICES_MAX;
use crate::slice::Slice;
use crate::slice::change_log::FollowedTable;
use crate::slice::due_states::{DueStateMap, read_due_states};
use crate::slice::tables::SEQUENCE_KEY;
use crate::types::bucket::Usage;
use cairn_lmdb::{Entry, ReadTxn, Record, Table};

/// The parts of an inspection that a repair needs.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// Number of the last transaction in the snapshot.
    pub(crate) snapshot: u64,
    /// Maximal runs that are marked but owned by no record, up to a limit.
    pub(crate) orphans: Vec<Extent>,
    /// The reason why the slice must not be repaired, if there is one.
    pub(crate) refusal: Option<String>,
}

/// A record whose bucket was unknown when it was read. It becomes a finding only if a second look confirms it.
pub(super) struct UnknownBucketRecord {
    pub(super) table: Table,
    pub(super) key: Vec<u8>,
    /// The kind of record; `None` for a usage counter.
    pub(super) followed: Option<FollowedTable>,
    /// Id of the bucket.
    pub(super) bucket: u64,
}

/// The result of reading a segment: whether records follow.
pub(super) enum Segment {
    /// There are more records.
    More,
    /// There are more records, but the limit on entries is reached.
    Cut,
    /// There are no more records.
    End,
}

/// The state of a scan between two segments.
pub(super) struct Scan<'s> {
    pub(super) slice: &'s Slice,
    pub(super) replica: Replica,
    pub(super) volumes: VolumeBounds,
    /// The reason why something could not be compared, if there is one.
    pub(super) undecided: Option<String>,
    /// Whether a stored value failed its check. Then the hash of the totals may be wrong too.
    pub(super) is_damaged: bool,
    /// The last record that was read.
    pub(super) cursor: Cursor,
    pub(super) unconfirmed: Vec<UnknownBucketRecord>,
    /// The buckets that have a due index in the snapshot.
    pub(super) due_states: DueStateMap,
    /// Parts that were looked up for the record of a version.
    parts_looked_up: u64,
}

impl<'s> Scan<'s> {
    pub(super) fn new(slice: &'s Slice) -> Self {
        Self {
            slice,
            replica: Replica::default(),
            volumes: VolumeBounds::default(),
            undecided: None,
            is_damaged: false,
            cursor: Cursor::before(FollowedTable::Objects),
            unconfirmed: Vec::new(),
            due_states: DueStateMap::default(),
            parts_looked_up: 0,
        }
    }

    /// Records that something cannot be decided. The first reason is kept.
    pub(super) fn leave_out(&mut self, why: &str) {
        self.undecided.get_or_insert_with(|| why.to_owned());
    }

    pub(super) fn read_segment(
        &mut self,
        txn: &ReadTxn<'_>,
        report: &mut Report<'_>,
    ) -> Result<Segment, EngineError> {
        let facts = SliceFacts {
            slice: self.slice.number,
            slices: u16::try_from(report.store.slices.len()).unwrap_or(SLICES_MAX),
            // A damaged sequence is reported separately.
            sequence: sequence(self.slice, txn).unwrap_or(u64::MAX),
        };
        // A damaged state is reported with the comparison.
        self.due_states = read_due_states(txn, &self.slice.tables).unwrap_or_default();
        let mut read = 0;
        loop {
            let Cursor { table, key } = self.cursor.clone();
            let after = (!key.is_empty()).then_some(key.as_slice());
            for entry in txn.entries(self.slice.tables.followed(table).0, after)? {
                let entry = entry?;
                if read >= report.segment_records {
                    return Ok(Segment::More);
                }
                // Events are in the slice's totals, but they are not what an inspection is asked to examine.
                if table != FollowedTable::Events && !report.may_examine() {
                    return Ok(Segment::Cut);
                }
                self.read_record(txn, facts, &entry, report);
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

    fn read_record(
        &mut self,
        txn: &ReadTxn<'_>,
        facts: SliceFacts,
        entry: &Entry<'_>,
        report: &mut Report<'_>,
    ) {
        let table = self.cursor.table;
        self.replica.count(table, entry.stored_checksum);
        let stored = match &entry.record {
            Ok(stored) => *stored,
            Err(error) => {
                self.is_damaged = true;
                self.undecodable(FindingKind::RecordDamaged, entry.key, &error.to_string(), report);
                return;
            }
        };
        if table != FollowedTable::Events {
            self.check_bucket(entry.key, report);
        }
        let read = match table {
            FollowedTable::Objects => self.read_version(txn, facts, entry.key, stored, report),
            FollowedTable::Uploads => self.read_upload(txn, facts, entry.key, stored, report),
            FollowedTable::Parts => self.read_part(txn, entry.key, stored, report),
            FollowedTable::Assembled => {
                relations::check_assembled(txn, &self.slice.tables, entry.key, stored)
            }
            FollowedTable::ImportedIds => {
                relations::check_imported_entry(txn, &self.slice.tables, entry.key, stored)
            }
            FollowedTable::NullVersions => {
                relations::check_null_entry(txn, &self.slice.tables, entry.key, stored)
            }
            FollowedTable::Events => check_event(entry.key, stored),
            FollowedTable::Due => {
                due::check_due_entry(txn, &self.slice.tables, &self.due_states, entry.key, stored)
            }
        };
        match read {
            Ok(None) => {}
            Ok(Some((kind, what))) => report.report_record(kind, table, entry.key, what),
            Err(EngineError::Corrupt(what)) => {
                self.undecodable(FindingKind::RecordUndecodable, entry.key, &what, report);
            }
            Err(error) => self.leave_out(&error.to_string()),
        }
    }

    fn read_version(
        &mut self,
        txn: &ReadTxn<'_>,
        facts: SliceFacts,
        key: &[u8],
        stored: Record<'_>,
        report: &mut Report<'_>,
    ) -> Result<Option<(FindingKind, &'static str)>, EngineError> {
        let record = ObjectRecord::decode(stored.version, stored.body)?;
        records::check_record(facts, key, &record, stored.tail.len() as u64, |kind, what| {
            report.report_record(kind, FollowedTable::Objects, key, &what);
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
                if let Some(found) = relations::check_parts(txn, tables, key, info, *upload)? {
                    return Ok(Some(found));
                }
            }
            Content::DeleteMarker => {}
        }
        if let Some(id) = &info.imported
            && let Some(found) = relations::check_imported_id(txn, tables, key, id, info.version.0)?
        {
            return Ok(Some(found));
        }
        if !is_newest
            && info.is_null
            && let Some(found) = relations::check_older_null(txn, tables, key, info.version.0)?
        {
            return Ok(Some(found));
        }
        due::check_indexed(txn, tables, &self.due_states, key, stored)
    }

    fn read_upload(
        &mut self,
        txn: &ReadTxn<'_>,
        facts: SliceFacts,
        key: &[u8],
        stored: Record<'_>,
        report: &mut Report<'_>,
    ) -> Result<Option<(FindingKind, &'static str)>, EngineError> {
        let Some((bucket, object, id)) = keys::decode_upload(key) else {
            return Ok(Some((FindingKind::KeyUndecodable, "the key of an upload does not decode")));
        };
        let upload = upload_record::decode(stored.version, stored.body, id)?;
        if keys::slice_of(bucket, &object, facts.slices) != facts.slice {
            let what = "an upload lies in a slice that its key does not belong to";
            report.report_record(FindingKind::WrongSlice, FollowedTable::Uploads, key, what);
        }
        self.add_usage(key, &Usage { uploads: 1, ..Usage::default() });
        if id.0 > facts.sequence {
            return Ok(Some((FindingKind::SequenceBehind, "the slice has not issued this upload yet")));
        }
        due::check_indexed_upload(txn, &self.slice.tables, &self.due_states, key, upload.initiated)
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
            report.report_record(FindingKind::GeometryMismatch, FollowedTable::Parts, key, &what);
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
            self.replica.add_usage(u64::from_be_bytes(*bucket), counts);
        }
    }

    /// Remembers a record whose bucket is unknown.
    fn check_bucket(&mut self, key: &[u8], report: &Report<'_>) {
        let Some((bucket, _)) = key.split_first_chunk::<8>() else { return };
        let bucket = u64::from_be_bytes(*bucket);
        let is_removed = self.due_states.get(&bucket) == Some(&DueState::Removing);
        if self.cursor.table == FollowedTable::Due && is_removed {
            return;
        }
        if !report.buckets.contains_key(&bucket) {
            let (table, _) = self.slice.tables.followed(self.cursor.table);
            let followed = Some(self.cursor.table);
            self.unconfirmed.push(UnknownBucketRecord { table, followed, key: key.to_vec(), bucket });
        }
    }

    /// Reports a record that cannot be decoded. What it owns is unknown.
    fn undecodable(&mut self, kind: FindingKind, key: &[u8], what: &str, report: &mut Report<'_>) {
        let what = format!("slice {}: {what}", self.slice.number);
        report.report_record(kind, self.cursor.table, key, &what);
        // An event owns nothing.
        if self.cursor.table != FollowedTable::Events {
            self.leave_out("a record cannot be read, so what it owns is not known");
        }
    }

    /// Adds an extent to the replica, as far as it lies within a volume.
    fn own(&mut self, key: &[u8], extent: Extent, report: &mut Report<'_>) {
        let within = self.volumes.within(extent);
        if within != Some(extent) {
            let what = format!("{extent:?} of slice {} lies outside of the volumes", self.slice.number);
            report.report_record(FindingKind::ExtentOutsideVolume, self.cursor.table, key, &what);
        }
        let Some(within) = within else { return };
        let twice = self.replica.owned.insert(within);
        if twice > 0 {
            let what = format!("{twice} units of {within:?} in slice {} are owned twice", self.slice.number);
            report.report_record(FindingKind::ExtentOwnedTwice, self.cursor.table, key, &what);
        }
    }

    /// Reports the records of unknown buckets that still exist after the buckets were read again.
    pub(super) fn confirm(&mut self, report: &mut Report<'_>) {
        if self.unconfirmed.is_empty() {
            return;
        }
        let unconfirmed = std::mem::take(&mut self.unconfirmed);
        surroundings::refresh_buckets(report);
        let Ok(txn) = self.slice.environment.read() else {
            return self.leave_out("the metadata cannot be read again");
        };
        for UnknownBucketRecord { table, followed, key, bucket } in unconfirmed {
            // A damaged record exists, too.
            let is_there = !matches!(txn.get(table, &key), Ok(None));
            if is_there && !report.buckets.contains_key(&bucket) {
                let what = format!("slice {}: the bucket with id {bucket} does not exist", self.slice.number);
                match followed {
                    Some(table) => report.report_record(FindingKind::UnknownBucket, table, &key, &what),
                    None => report.report(FindingKind::UsageOfUnknownBucket, what),
                }
            }
        }
    }
}

/// Checks that an event can be decoded.
fn check_event(key: &[u8], stored: Record<'_>) -> Result<Option<(FindingKind, &'static str)>, EngineError> {
    event_record::tick_of(key)?;
    event_record::decode_head(stored.version, stored.body)?;
    Ok(None)
}

/// Returns the last sequence that the slice has issued, as of a snapshot.
pub(super) fn sequence(slice: &Slice, txn: &ReadTxn<'_>) -> Option<u64> {
    let record = txn.get(slice.tables.slice, SEQUENCE_KEY).ok()??;
    codec::decode_u64(record.body)
}
