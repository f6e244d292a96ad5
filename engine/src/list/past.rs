//! Lists of a past moment, and of deleted objects.
//!
//! The versions of a key are adjacent, newest first. A version counts from its own date, so the state of a key at a moment
//! is its newest version that is not later. A few versions are read one after the other; beyond these, the place is found by
//! bisection of their sequences, and that of imported versions by their numbers, which begin with the date. So a key costs a
//! bounded number of lookups, however many versions it has.

use crate::error::EngineError;
use crate::format::keys;
use crate::format::object_record::RecordHead;
use crate::limits::LIST_STEPS_MAX;
use crate::list::merge::{Merge, common_prefix};
use crate::list::{corrupt_key, listed, merge, snapshots, start_of, text};
use crate::slice::Slice;
use crate::slice::tables::Tables;
use crate::types::object::{
    ChangedObject, ChangedPage, DeletedObject, DeletedPage, ListObjects, ListPage, ListPosition,
};
use cairn_lmdb::{ReadTxn, Record, Table};
use cairn_model::{Timestamp, VersionId, VersionName};
use std::iter;
use std::sync::Arc;

/// Versions that are read one after the other before the place is found by bisection: about what a bisection costs.
const SEQUENTIAL_MAX: usize = 64;
/// Seeks that a bisection counts as.
const BISECTION_SEEKS: usize = 16;
/// Delete markers over each other that are passed to find the version that they hide.
const MARKERS_MAX: usize = 1000;

/// A version of a key, with its record.
type Found<'t> = Option<(&'t [u8], Record<'t>)>;

/// The versions of one key in the snapshot of its slice.
struct VersionsOfKey<'t> {
    txn: &'t ReadTxn<'t>,
    objects: Table,
    /// Common prefix of their encoded keys.
    versions: &'t [u8],
}

impl<'t> VersionsOfKey<'t> {
    /// Returns the first version at or after an encoded key: the newest one that is not newer.
    fn at_or_after(&self, key: &[u8]) -> Result<Found<'t>, EngineError> {
        let found = self.txn.first_at_or_after(self.objects, key)?;
        Ok(found.filter(|(key, _)| key.starts_with(self.versions)))
    }

    /// Returns the newest version that is not later than `at`. The one with the sequence `later` is.
    fn at(&self, at: Timestamp, later: u64) -> Result<Found<'t>, EngineError> {
        if !VersionId(later).is_imported()
            && let Some(found) = self.bisect(later, at)?
        {
            return Ok(Some(found));
        }
        // Nothing can be later than the greatest date.
        let Some(first_later) = VersionId::imported_at(at.0.saturating_add(1)) else { return Ok(None) };
        // Beyond the least number of the next millisecond are the imported versions of this one and earlier ones.
        let from = keys::with_sequence(self.versions, first_later.0);
        self.at_or_after(&[&from[..], &[0]].concat())
    }

    /// Returns the newest version that was written here and is not later than `at`. The one with the sequence `later` is.
    fn bisect(&self, later: u64, at: Timestamp) -> Result<Found<'t>, EngineError> {
        let (mut early, mut late, mut best) = (0, later, None);
        while late - early > 1 {
            let middle = early + (late - early) / 2;
            let found = self.at_or_after(&keys::with_sequence(self.versions, middle))?;
            let head =
                found.map(|(_, record)| RecordHead::decode(record.version, record.body)).transpose()?;
            match head.filter(|head| !VersionId(head.sequence).is_imported()) {
                Some(head) if head.last_modified > at => late = head.sequence.min(middle),
                Some(_) => (early, best) = (middle, found),
                None => early = middle,
            }
        }
        Ok(best)
    }
}

/// Returns the newest version of the head's key that is not later than `at`. Advances past the versions that it reads.
pub(crate) fn version_of_head<'t>(
    merge: &mut Merge<'t>,
    at: Timestamp,
) -> Result<Option<(RecordHead, Record<'t>)>, EngineError> {
    let Some((encoded, _)) = merge.head() else { return Ok(None) };
    let versions = encoded.get(..keys::shared_length(encoded)).unwrap_or_default();
    let mut later = 0;
    for _ in 0..SEQUENTIAL_MAX {
        let Some((_, record)) = merge.head().filter(|(key, _)| key.starts_with(versions)) else {
            return Ok(None);
        };
        let head = RecordHead::decode(record.version, record.body)?;
        if head.last_modified <= at {
            return Ok(Some((head, record)));
        }
        later = head.sequence;
        merge.advance_to_older()?;
    }
    let Some((txn, objects)) = merge.source().filter(|_| is_of_key(merge, versions)) else { return Ok(None) };
    merge.note_seeks(BISECTION_SEEKS);
    let found = VersionsOfKey { txn, objects, versions }.at(at, later)?;
    found.map(|(_, record)| Ok((RecordHead::decode(record.version, record.body)?, record))).transpose()
}

fn is_of_key(merge: &Merge<'_>, versions: &[u8]) -> bool {
    merge.head().is_some_and(|(key, _)| key.starts_with(versions))
}

/// Returns the name of the version that a key had at a moment, and whether that is a delete marker.
pub(crate) fn version_at(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    versions: &[u8],
    at: Timestamp,
) -> Result<Option<(VersionName, bool)>, EngineError> {
    let mut merge = Merge::new(iter::once((txn, tables.objects)), versions, versions)?;
    let found = version_of_head(&mut merge, at)?;
    Ok(found.map(|(head, _)| (head.version_name(), head.is_delete_marker)))
}

/// One page of what the keys of a list have.
struct Page<T> {
    entries: Vec<T>,
    common_prefixes: Vec<Vec<u8>>,
    next: Option<ListPosition>,
}

/// Returns one page of what `entry` returns for each key of a list. It gets the key, and the versions with the newest as their
/// head, and may advance past versions of this key.
fn page_of_keys<T>(
    slices: &[Arc<Slice>],
    bucket: u64,
    list: &ListObjects<'_>,
    mut entry: impl FnMut(&[u8], &mut Merge<'_>) -> Result<Option<T>, EngineError>,
) -> Result<Page<T>, EngineError> {
    let mut page = Page { entries: Vec::new(), common_prefixes: Vec::new(), next: None };
    let Some(start) = start_of(bucket, list) else { return Ok(page) };
    let (prefix, txns) = (keys::prefix_of(bucket, list.prefix), snapshots(slices)?);
    let mut merge = merge(slices, &txns, |tables| tables.objects, &start, &prefix)?;
    let mut position = list.after.clone();
    while let Some((encoded, _)) = merge.head() {
        let is_full = page.entries.len() + page.common_prefixes.len() >= list.max;
        if is_full || merge.steps() >= LIST_STEPS_MAX {
            page.next = position;
            break;
        }
        let (_, key, _) = keys::decode(encoded).ok_or_else(corrupt_key)?;
        if let Some(entry) = entry(&key, &mut merge)? {
            if let Some(common) = common_prefix(&key, list.prefix, list.delimiter) {
                page.common_prefixes.push(common.to_vec());
                position = Some(ListPosition::AfterPrefix(common.to_vec()));
                let Some(next) = keys::after_prefix(bucket, common) else { break };
                merge.skip_to(&next)?;
                continue;
            }
            page.entries.push(entry);
        }
        position = Some(ListPosition::AfterKey(key));
        merge.skip_versions(encoded.get(..keys::shared_length(encoded)).unwrap_or_default())?;
    }
    Ok(page)
}

/// Returns one page of the objects that a bucket held at a moment.
pub(crate) fn list_objects_at(
    slices: &[Arc<Slice>],
    bucket: u64,
    list: &ListObjects<'_>,
    at: Timestamp,
) -> Result<ListPage, EngineError> {
    let Page { entries, common_prefixes, next } = page_of_keys(slices, bucket, list, |key, merge| {
        let found = version_of_head(merge, at)?.filter(|(head, _)| !head.is_delete_marker);
        found.map(|(head, _)| listed(key, &head)).transpose()
    })?;
    Ok(ListPage { objects: entries, common_prefixes, next })
}

/// Returns one page of the keys of a bucket whose newest version is a delete marker over an object.
pub(crate) fn list_deleted(
    slices: &[Arc<Slice>],
    bucket: u64,
    list: &ListObjects<'_>,
) -> Result<DeletedPage, EngineError> {
    let Page { entries, common_prefixes, next } = page_of_keys(slices, bucket, list, deleted_object)?;
    Ok(DeletedPage { objects: entries, common_prefixes, next })
}

/// Returns the deleted object of the head's key, if its newest version is a delete marker over an object.
fn deleted_object(key: &[u8], merge: &mut Merge<'_>) -> Result<Option<DeletedObject>, EngineError> {
    let Some((encoded, record)) = merge.head() else { return Ok(None) };
    let versions = encoded.get(..keys::shared_length(encoded)).unwrap_or_default();
    let marker = RecordHead::decode(record.version, record.body)?;
    // The marker directly above the object.
    let mut deletion = marker;
    for _ in 0..MARKERS_MAX {
        if !deletion.is_delete_marker {
            return Ok(None);
        }
        merge.advance_to_older()?;
        let Some((_, record)) = merge.head().filter(|_| is_of_key(merge, versions)) else { return Ok(None) };
        let head = RecordHead::decode(record.version, record.body)?;
        if !head.is_delete_marker {
            return Ok(Some(DeletedObject {
                key: text(key)?,
                size: head.size,
                version: head.version_name(),
                marker: marker.version_name(),
                first_marker: deletion.version_name(),
                deleted_at: deletion.last_modified,
            }));
        }
        deletion = head;
    }
    Ok(None)
}

/// Returns one page of the keys of a bucket whose current object is another version than the one at a moment.
pub(crate) fn list_changed(
    slices: &[Arc<Slice>],
    bucket: u64,
    list: &ListObjects<'_>,
    at: Timestamp,
) -> Result<ChangedPage, EngineError> {
    let mut unchanged = 0;
    let list = ListObjects { delimiter: None, ..list.clone() };
    let Page { entries, next, .. } = page_of_keys(slices, bucket, &list, |key, merge| {
        let Some((_, newest)) = merge.head() else { return Ok(None) };
        let newest = RecordHead::decode(newest.version, newest.body)?;
        let is_object = |head: &RecordHead| !head.is_delete_marker;
        let (now, then) = (Some(newest), version_of_head(merge, at)?.map(|(head, _)| head));
        let (now, then) = (now.filter(is_object), then.filter(is_object));
        if now.map(|head| head.sequence) != then.map(|head| head.sequence) {
            return Ok(Some(ChangedObject {
                key: text(key)?,
                now: now.map(|head| head.version_name()),
                then: then.map(|head| (head.version_name(), head.size)),
            }));
        }
        unchanged += u64::from(now.is_some());
        Ok(None)
    })?;
    Ok(ChangedPage { changed: entries, unchanged, next })
}
