//! Changes records, usage and the free map in a batch.
//!
//! Every record of the followed tables is inserted and removed here, so that usage and change log always agree with the
//! records.

use super::{Batch, Failure};
use crate::error::EngineError;
use crate::fault::Flaw;
use crate::format::extent::{Extent, total_units};
use crate::format::object_record::{Content, ObjectRecord};
use crate::format::part_record::PartRecord;
use crate::slice::change_log::{Change, ChangeKind, FollowedTable};
use crate::space::reservation::Reservation;
use crate::types::bucket::{Bucket, Usage};
use std::sync::Arc;

/// The usage that a record counts for, and the extents that it owns.
pub(super) struct Accounting {
    pub(super) counts: Usage,
    pub(super) extents: Vec<Extent>,
}

impl Accounting {
    /// A record that counts for nothing and owns nothing.
    pub(super) const NOTHING: Self =
        Self { counts: Usage::of_counters([0; Usage::COUNTERS]), extents: Vec::new() };

    /// Returns what the record of a version counts for, and the extents that it owns itself. Extents of its parts belong to
    /// the records of the parts.
    pub(super) fn of_version(record: &ObjectRecord) -> Self {
        let counts = if record.is_delete_marker() {
            Usage { delete_markers: 1, ..Usage::default() }
        } else {
            Usage { versions: 1, version_bytes: record.info.size, ..Usage::default() }
        };
        let extents = match &record.content {
            Content::DeleteMarker | Content::Parts { .. } => Vec::new(),
            Content::Payload(payload) => payload.owned().collect(),
        };
        Self { counts, extents }
    }

    /// Returns what the record of a part counts for while its upload is unfinished, and the extents that it owns.
    pub(super) fn of_unfinished_part(part: &PartRecord) -> Self {
        Self { counts: Usage::of_part(part.info.size), extents: part.payload.owned().collect() }
    }

    /// Returns the extents of a part of a completed upload. Its bytes count for the version that is made of it.
    pub(super) fn of_completed_part(part: &PartRecord) -> Self {
        Self { extents: part.payload.owned().collect(), ..Self::NOTHING }
    }
}

/// The bytes of a record: its fields, and the bytes of an inline payload.
#[derive(Clone, Copy)]
pub(super) struct RecordBytes<'b> {
    pub(super) body: &'b [u8],
    pub(super) tail: &'b [u8],
}

impl<'b> RecordBytes<'b> {
    /// Returns the bytes of a record without an inline payload.
    pub(super) const fn of_body(body: &'b [u8]) -> Self {
        Self { body, tail: &[] }
    }
}

/// Marks an error as one of the transaction itself.
pub(super) fn broken(error: cairn_lmdb::Error) -> Failure {
    Failure::Broken(error.into())
}

impl Batch<'_> {
    /// Marks `allocated` as owned and `freed` as free. On an error nothing has changed.
    ///
    /// After an error the extents of `reservation` are not reused until the store is opened again. The map says that someone
    /// owns units that the allocator handed out as free, and it is unknown which of the two is right.
    pub(super) fn transfer_extents(
        &mut self,
        allocated: &[Extent],
        freed: &[Extent],
        reservation: Option<Reservation>,
    ) -> Result<(), EngineError> {
        let reserved = total_units(reservation.iter().flat_map(Reservation::extents));
        assert_eq!(
            reserved,
            total_units(allocated),
            "a record owns exactly what was reserved for its payload"
        );
        let freed = if self.slice.faults.has(Flaw::KeepRemovedMarked) { &[] } else { freed };
        let table = self.slice.tables.free_map;
        let mut marked = self.free_map.mark_owned(&self.txn, table, allocated);
        if marked.is_ok() {
            marked = self.free_map.mark_free(&self.txn, table, freed);
            if marked.is_err() {
                self.free_map.mark_free(&self.txn, table, allocated)?;
            }
        }
        match marked {
            Ok(()) => self.effects.reservations.extend(reservation),
            Err(_) => reservation.into_iter().for_each(Reservation::commit),
        }
        marked
    }

    /// Writes the record of a key that has none.
    pub(super) fn insert_record(
        &mut self,
        bucket: &Arc<Bucket>,
        followed: FollowedTable,
        key: &[u8],
        bytes: RecordBytes<'_>,
        accounting: Accounting,
    ) -> Result<(), Failure> {
        let before = self.txn.totals().hash;
        let (table, version) = self.slice.tables.followed(followed);
        self.txn.insert(table, key, version, bytes.body, bytes.tail).map_err(broken)?;
        let hash = self.txn.totals().hash.wrapping_sub(before);
        self.count(bucket, &accounting.counts);
        self.record_change(ChangeKind::Added, followed, bucket.id, key, accounting, hash);
        Ok(())
    }

    /// Removes the record of a key. `accounting` says what it counts for.
    pub(super) fn remove_record(
        &mut self,
        bucket: &Arc<Bucket>,
        followed: FollowedTable,
        key: &[u8],
        accounting: Accounting,
    ) -> Result<(), Failure> {
        let before = self.txn.totals().hash;
        let (table, _) = self.slice.tables.followed(followed);
        self.txn.remove(table, key).map_err(broken)?;
        let hash = before.wrapping_sub(self.txn.totals().hash);
        self.count(bucket, &accounting.counts.negated());
        self.record_change(ChangeKind::Removed, followed, bucket.id, key, accounting, hash);
        Ok(())
    }

    /// Keeps a change for the change log, if someone follows it.
    pub(super) fn record_change(
        &mut self,
        kind: ChangeKind,
        table: FollowedTable,
        bucket: u64,
        key: &[u8],
        accounting: Accounting,
        hash: u64,
    ) {
        if let Some(changes) = &mut self.changes {
            let Accounting { counts, extents } = accounting;
            let key = key.to_vec();
            changes.push(Change::Record { kind, table, key, bucket, counts, extents, hash });
        }
    }

    /// Adds to a bucket's usage. The counters wrap.
    pub(super) fn count(&mut self, bucket: &Arc<Bucket>, more: &Usage) {
        let entry =
            self.effects.usage.entry(bucket.id).or_insert_with(|| (Arc::clone(bucket), Usage::default()));
        entry.1.add(more);
    }
}
