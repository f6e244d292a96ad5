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
use crate::list::merge::common_prefix;
use crate::list::{corrupt_key, listed, merge, slice_of_key, snapshots, start_of, text};
use crate::slice::Slice;
use crate::slice::tables::Tables;
use crate::types::object::{
    ChangedObject, ChangedPage, DeletedObject, DeletedPage, ListObjects, ListPage, ListPosition,
};
use cairn_lmdb::{ReadTxn, Record};
use cairn_model::{Timestamp, VersionId, VersionName};
use std::sync::Arc;

/// Versions that are read one after the other before the place is found by bisection.
const SEQUENTIAL_MAX: usize = 8;
/// Delete markers over each other that are passed to find the version that they hide.
const MARKERS_MAX: usize = 1000;

/// A version of a key, with its record.
type Found<'t> = Option<(&'t [u8], Record<'t>)>;

/// The versions of one key in the snapshot of its slice.
struct VersionsOfKey<'t> {
    txn: &'t ReadTxn<'t>,
    tables: &'t Tables,
    /// Common prefix of their encoded keys.
    versions: &'t [u8],
}

impl<'t> VersionsOfKey<'t> {
    /// Returns the first version at or after an encoded key: the newest one that is not newer.
    fn at_or_after(&self, key: &[u8]) -> Result<Found<'t>, EngineError> {
        let found = self.txn.first_at_or_after(self.tables.objects, key)?;
        Ok(found.filter(|(key, _)| key.starts_with(self.versions)))
    }

    fn not_after(&self, sequence: u64) -> Result<Found<'t>, EngineError> {
        self.at_or_after(&keys::with_sequence(self.versions, sequence))
    }

    /// Returns the newest version that is not later than `at`.
    fn at(&self, at: Timestamp) -> Result<Found<'t>, EngineError> {
        let mut next = self.at_or_after(self.versions)?;
        let mut latest = 0;
        for _ in 0..SEQUENTIAL_MAX {
            let Some((key, record)) = next else { return Ok(None) };
            let head = RecordHead::decode(record.version, record.body)?;
            if head.last_modified <= at {
                return Ok(next);
            }
            latest = head.sequence;
            next = self.at_or_after(&[key, &[0]].concat())?;
        }
        if !VersionId(latest).is_imported()
            && let Some(found) = self.bisect(latest, at)?
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
            let found = self.not_after(middle)?;
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

/// Returns the name of the version that a key had at a moment, and whether that is a delete marker.
pub(crate) fn version_at(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    versions: &[u8],
    at: Timestamp,
) -> Result<Option<(VersionName, bool)>, EngineError> {
    let Some((_, record)) = (VersionsOfKey { txn, tables, versions }).at(at)? else { return Ok(None) };
    let head = RecordHead::decode(record.version, record.body)?;
    Ok(Some((head.version_name(), head.is_delete_marker)))
}

/// Returns one page of the objects that a bucket held at a moment.
pub(crate) fn list_objects_at(
    slices: &[Arc<Slice>],
    bucket: u64,
    list: &ListObjects<'_>,
    at: Timestamp,
) -> Result<ListPage, EngineError> {
    let mut page = ListPage::default();
    let Some(start) = start_of(bucket, list) else { return Ok(page) };
    let (prefix, txns) = (keys::prefix_of(bucket, list.prefix), snapshots(slices)?);
    let mut merge = merge(slices, &txns, |tables| tables.objects, &start, &prefix)?;
    let (mut position, mut lookups) = (list.after.clone(), 0);
    while let Some((encoded, _)) = merge.head() {
        let (_, key, _) = keys::decode(encoded).ok_or_else(corrupt_key)?;
        let is_full = page.objects.len() + page.common_prefixes.len() >= list.max;
        if is_full || merge.steps() + lookups >= LIST_STEPS_MAX {
            page.next = position;
            return Ok(page);
        }
        let (txn, tables) = slice_of_key(slices, &txns, bucket, &key).ok_or_else(corrupt_key)?;
        let versions = encoded.get(..keys::shared_length(encoded)).unwrap_or_default();
        lookups += 1;
        let found = (VersionsOfKey { txn, tables, versions }).at(at)?;
        let head = found.map(|(_, record)| RecordHead::decode(record.version, record.body)).transpose()?;
        let object = head.filter(|head| !head.is_delete_marker);
        if let Some(common) =
            object.and_then(|_| common_prefix(&key, list.prefix, list.delimiter)).map(<[u8]>::to_vec)
        {
            position = Some(ListPosition::AfterPrefix(common.clone()));
            let next = keys::after_prefix(bucket, &common);
            page.common_prefixes.push(common);
            let Some(next) = next else { break };
            merge.skip_to(&next)?;
            continue;
        }
        if let Some(head) = object {
            page.objects.push(listed(&key, &head)?);
        }
        position = Some(ListPosition::AfterKey(key));
        merge.skip_key()?;
    }
    Ok(page)
}

/// Returns one page of the keys of a bucket whose newest version is a delete marker over an object.
pub(crate) fn list_deleted(
    slices: &[Arc<Slice>],
    bucket: u64,
    list: &ListObjects<'_>,
) -> Result<DeletedPage, EngineError> {
    let mut page = DeletedPage::default();
    let Some(start) = start_of(bucket, list) else { return Ok(page) };
    let (prefix, txns) = (keys::prefix_of(bucket, list.prefix), snapshots(slices)?);
    let mut merge = merge(slices, &txns, |tables| tables.objects, &start, &prefix)?;
    let (mut position, mut lookups) = (list.after.clone(), 0);
    while let Some((encoded, record)) = merge.head() {
        let (_, key, _) = keys::decode(encoded).ok_or_else(corrupt_key)?;
        let is_full = page.objects.len() + page.common_prefixes.len() >= list.max;
        if is_full || merge.steps() + lookups >= LIST_STEPS_MAX {
            page.next = position;
            return Ok(page);
        }
        let marker = RecordHead::decode(record.version, record.body)?;
        let hidden = if marker.is_delete_marker {
            let (txn, tables) = slice_of_key(slices, &txns, bucket, &key).ok_or_else(corrupt_key)?;
            let versions = encoded.get(..keys::shared_length(encoded)).unwrap_or_default();
            hidden_object(&VersionsOfKey { txn, tables, versions }, encoded, &mut lookups)?
        } else {
            None
        };
        if let Some(common) =
            hidden.and_then(|_| common_prefix(&key, list.prefix, list.delimiter)).map(<[u8]>::to_vec)
        {
            position = Some(ListPosition::AfterPrefix(common.clone()));
            let next = keys::after_prefix(bucket, &common);
            page.common_prefixes.push(common);
            let Some(next) = next else { break };
            merge.skip_to(&next)?;
            continue;
        }
        if let Some((object, lowest)) = hidden {
            let deletion = lowest.unwrap_or(marker);
            page.objects.push(DeletedObject {
                key: text(&key)?,
                size: object.size,
                version: object.version_name(),
                marker: marker.version_name(),
                first_marker: deletion.version_name(),
                deleted_at: deletion.last_modified,
            });
        }
        position = Some(ListPosition::AfterKey(key));
        merge.skip_key()?;
    }
    Ok(page)
}

/// Returns one page of the keys of a bucket whose current object is another version than the one at a moment.
pub(crate) fn list_changed(
    slices: &[Arc<Slice>],
    bucket: u64,
    list: &ListObjects<'_>,
    at: Timestamp,
) -> Result<ChangedPage, EngineError> {
    let mut page = ChangedPage::default();
    let Some(start) = start_of(bucket, list) else { return Ok(page) };
    let (prefix, txns) = (keys::prefix_of(bucket, list.prefix), snapshots(slices)?);
    let mut merge = merge(slices, &txns, |tables| tables.objects, &start, &prefix)?;
    let (mut position, mut lookups) = (list.after.clone(), 0);
    while let Some((encoded, record)) = merge.head() {
        let (_, key, _) = keys::decode(encoded).ok_or_else(corrupt_key)?;
        if page.changed.len() >= list.max || merge.steps() + lookups >= LIST_STEPS_MAX {
            page.next = position;
            return Ok(page);
        }
        let current = RecordHead::decode(record.version, record.body)?;
        let is_object = |head: &RecordHead| !head.is_delete_marker;
        let then = if current.last_modified <= at {
            Some(current)
        } else {
            let (txn, tables) = slice_of_key(slices, &txns, bucket, &key).ok_or_else(corrupt_key)?;
            let versions = encoded.get(..keys::shared_length(encoded)).unwrap_or_default();
            lookups += 1;
            let found = (VersionsOfKey { txn, tables, versions }).at(at)?;
            found.map(|(_, record)| RecordHead::decode(record.version, record.body)).transpose()?
        };
        let (now, then) = (Some(current).filter(is_object), then.filter(is_object));
        let sequence = |head: RecordHead| head.sequence;
        if now.map(sequence) != then.map(sequence) {
            page.changed.push(ChangedObject {
                key: text(&key)?,
                now: now.map(|head| head.version_name()),
                then: then.map(|head| (head.version_name(), head.size)),
            });
        } else if now.is_some() {
            page.unchanged += 1;
        }
        position = Some(ListPosition::AfterKey(key));
        merge.skip_key()?;
    }
    Ok(page)
}

/// Returns the newest object below the delete marker with this encoded key, and the marker directly above it, if that is
/// another one.
fn hidden_object(
    versions: &VersionsOfKey<'_>,
    marker: &[u8],
    lookups: &mut usize,
) -> Result<Option<(RecordHead, Option<RecordHead>)>, EngineError> {
    let (mut above, mut lowest) = (marker.to_vec(), None);
    for _ in 0..MARKERS_MAX {
        *lookups += 1;
        let Some((key, record)) = versions.at_or_after(&[&above[..], &[0]].concat())? else {
            return Ok(None);
        };
        let head = RecordHead::decode(record.version, record.body)?;
        if !head.is_delete_marker {
            return Ok(Some((head, lowest)));
        }
        (above, lowest) = (key.to_vec(), Some(head));
    }
    Ok(None)
}
