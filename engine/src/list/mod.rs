//! Lists current objects, versions and uploads: merges the sorted records of all slices.
//!
//! The cost of a page is proportional to what it returns. A common prefix takes one seek in each slice, however many keys
//! it covers, and so do the older versions of a key. Deleted keys that still have versions are skipped with one seek each.
//! A page ends early after [`LIST_STEPS_MAX`] reads and seeks; it may then be empty except for the position of the next
//! page. No snapshot outlives its page.

mod event_merge;
mod events;
mod latest_events;
pub(crate) mod merge;
pub(crate) mod past;
pub(crate) mod walk;

use crate::error::EngineError;
use crate::format::keys;
use crate::format::object_record::{RecordHead, decode_lock_of};
use crate::format::upload_record;
use crate::limits::LIST_STEPS_MAX;
use crate::list::merge::{Merge, common_prefix};
use crate::slice::Slice;
use crate::slice::lookup::named_sequence;
use crate::slice::tables::Tables;
use crate::types::object::{
    ChecksumAlgorithm, ListObjects, ListPage, ListPosition, ListVersions, ListedObject, ListedVersion,
    VersionPosition, VersionsPage,
};
use crate::types::upload::{ListUploads, ListedUpload, UploadPosition, UploadsPage};
use cairn_lmdb::{ReadTxn, Table};
use cairn_model::{VersionId, VersionName};
use std::sync::Arc;

fn corrupt_key() -> EngineError {
    EngineError::Corrupt("an object key".to_owned())
}

fn text(key: &[u8]) -> Result<String, EngineError> {
    std::str::from_utf8(key).map(str::to_owned).map_err(|_| corrupt_key())
}

/// Begins a snapshot of each slice.
fn snapshots(slices: &[Arc<Slice>]) -> Result<Vec<ReadTxn<'_>>, EngineError> {
    Ok(slices.iter().map(|slice| slice.environment.read()).collect::<Result<_, _>>()?)
}

fn merge<'t>(
    slices: &'t [Arc<Slice>],
    txns: &'t [ReadTxn<'t>],
    table: fn(&Tables) -> Table,
    start: &[u8],
    prefix: &'t [u8],
) -> Result<Merge<'t>, EngineError> {
    let tables = slices.iter().map(|slice| table(&slice.tables));
    Merge::new(txns.iter().zip(tables), start, prefix)
}

/// Returns the position where a page begins, if anything can follow.
fn start_of(bucket: u64, list: &ListObjects<'_>) -> Option<Vec<u8>> {
    let start = start_at(bucket, &keys::prefix_of(bucket, list.prefix), list.after.as_ref());
    start.filter(|_| list.max > 0)
}

/// Returns the position where a list of the keys that begin with an encoded prefix continues, if anything can follow.
fn start_at(bucket: u64, prefix: &[u8], after: Option<&ListPosition>) -> Option<Vec<u8>> {
    let start = match after {
        None => Some(prefix.to_vec()),
        Some(ListPosition::AfterKey(key)) => Some(keys::after_key(bucket, key)),
        Some(ListPosition::AfterPrefix(before)) => keys::after_prefix(bucket, before),
    };
    start.map(|start| start.max(prefix.to_vec()))
}

/// Returns one page of the current objects of a bucket.
pub(crate) fn list_objects(
    slices: &[Arc<Slice>],
    bucket: u64,
    list: &ListObjects<'_>,
) -> Result<ListPage, EngineError> {
    let mut page = ListPage::default();
    let Some(start) = start_of(bucket, list) else { return Ok(page) };
    let (prefix, txns) = (keys::prefix_of(bucket, list.prefix), snapshots(slices)?);
    let mut merge = merge(slices, &txns, |tables| tables.objects, &start, &prefix)?;
    let mut position = list.after.clone();
    while let Some((encoded, record)) = merge.head() {
        let is_full = page.objects.len() + page.common_prefixes.len() >= list.max;
        let (_, key, _) = keys::decode(encoded).ok_or_else(corrupt_key)?;
        let head = RecordHead::decode(record.version, record.body)?;
        if merge.steps() >= LIST_STEPS_MAX || (is_full && !head.is_delete_marker) {
            page.next = position;
            return Ok(page);
        }
        if head.is_delete_marker {
            merge.skip_key()?;
            if !is_full {
                position = Some(ListPosition::AfterKey(key));
            }
        } else if let Some(common) = common_prefix(&key, list.prefix, list.delimiter) {
            page.common_prefixes.push(common.to_vec());
            position = Some(ListPosition::AfterPrefix(common.to_vec()));
            let Some(next) = keys::after_prefix(bucket, common) else { break };
            merge.skip_to(&next)?;
        } else {
            page.objects.push(listed(&key, &head)?);
            merge.skip_key()?;
            position = Some(ListPosition::AfterKey(key));
        }
    }
    Ok(page)
}

fn listed(key: &[u8], head: &RecordHead) -> Result<ListedObject, EngineError> {
    let has = |algorithm: &ChecksumAlgorithm| head.checksum_bits & algorithm.bit() != 0;
    Ok(ListedObject {
        key: text(key)?,
        size: head.size,
        etag: head.etag,
        last_modified: head.last_modified,
        version: VersionId(head.sequence),
        checksum_algorithms: ChecksumAlgorithm::ALL.into_iter().filter(has).collect(),
        checksum_kind: head.checksum_kind,
    })
}

/// Returns one page of all versions of a bucket.
pub(crate) fn list_versions(
    slices: &[Arc<Slice>],
    bucket: u64,
    list: &ListVersions<'_>,
) -> Result<VersionsPage, EngineError> {
    let mut page = VersionsPage::default();
    let prefix = keys::prefix_of(bucket, list.prefix);
    let txns = snapshots(slices)?;
    let start = match &list.after {
        None => Some(prefix.clone()),
        Some(VersionPosition::AfterKey(key)) => Some(keys::after_key(bucket, key)),
        Some(VersionPosition::AfterPrefix(before)) => keys::after_prefix(bucket, before),
        Some(VersionPosition::AfterVersion(key, name)) => {
            start_after_version(slices, &txns, bucket, key, *name)?
        }
    };
    let Some(start) = start.filter(|_| list.max > 0) else { return Ok(page) };
    let mut merge = merge(slices, &txns, |tables| tables.objects, &start.max(prefix.clone()), &prefix)?;
    let mut before = match &list.after {
        Some(VersionPosition::AfterVersion(key, _)) => key_before(slices, &txns, bucket, key, merge.head())?,
        _ => Vec::new(),
    };
    let mut position = list.after.clone();
    while let Some((encoded, record)) = merge.head() {
        let is_full = page.versions.len() + page.common_prefixes.len() >= list.max;
        if is_full || merge.steps() >= LIST_STEPS_MAX {
            page.next = position;
            return Ok(page);
        }
        let (_, key, _) = keys::decode(encoded).ok_or_else(corrupt_key)?;
        if let Some(common) = common_prefix(&key, list.prefix, list.delimiter) {
            page.common_prefixes.push(common.to_vec());
            position = Some(VersionPosition::AfterPrefix(common.to_vec()));
            let Some(next) = keys::after_prefix(bucket, common) else { break };
            merge.skip_to(&next)?;
            continue;
        }
        let head = RecordHead::decode(record.version, record.body)?;
        let shared = encoded.get(..keys::shared_length(encoded)).unwrap_or_default();
        let name = head.version_name();
        page.versions.push(ListedVersion {
            object: listed(&key, &head)?,
            name,
            is_latest: before != shared,
            is_delete_marker: head.is_delete_marker,
            lock: decode_lock_of(record.version, record.body)?,
        });
        before.clear();
        before.extend_from_slice(shared);
        position = Some(VersionPosition::AfterVersion(key, name));
        merge.advance()?;
    }
    Ok(page)
}

/// The snapshot and the tables of the slice that stores a key.
fn slice_of_key<'t>(
    slices: &'t [Arc<Slice>],
    txns: &'t [ReadTxn<'t>],
    bucket: u64,
    key: &[u8],
) -> Option<(&'t ReadTxn<'t>, &'t Tables)> {
    let count = u16::try_from(slices.len()).ok()?;
    let number = usize::from(keys::slice_of(bucket, key, count));
    Some((txns.get(number)?, &slices.get(number)?.tables))
}

/// The start of a page that continues after a version.
///
/// If the version was a null version or an imported one and has been removed, the page begins with the first version of the
/// key: returning some versions twice is better than leaving some out.
fn start_after_version(
    slices: &[Arc<Slice>],
    txns: &[ReadTxn<'_>],
    bucket: u64,
    key: &[u8],
    name: VersionName,
) -> Result<Option<Vec<u8>>, EngineError> {
    let Some(versions) = keys::versions_of(bucket, key) else { return Ok(None) };
    let sequence = match slice_of_key(slices, txns, bucket, key) {
        Some((txn, tables)) => named_sequence(txn, tables, &versions, name)?,
        None => None,
    };
    Ok(Some(match sequence {
        // A key with a zero byte appended is its direct successor.
        Some(sequence) => [keys::with_sequence(&versions, sequence), vec![0]].concat(),
        None => versions,
    }))
}

/// The common prefix of the versions of `key`, if newer versions than `head` exist; else empty.
///
/// Tells whether the first version of a page is the latest of its key.
fn key_before(
    slices: &[Arc<Slice>],
    txns: &[ReadTxn<'_>],
    bucket: u64,
    key: &[u8],
    head: Option<(&[u8], cairn_lmdb::Record<'_>)>,
) -> Result<Vec<u8>, EngineError> {
    let Some((versions, (txn, tables))) =
        keys::versions_of(bucket, key).zip(slice_of_key(slices, txns, bucket, key))
    else {
        return Ok(Vec::new());
    };
    let newest = txn.first_at_or_after(tables.objects, &versions)?.map(|(key, _)| key);
    let is_newest = head.is_some_and(|(key, _)| newest == Some(key));
    Ok(if is_newest { Vec::new() } else { versions })
}

/// Returns one page of the unfinished uploads of a bucket.
pub(crate) fn list_uploads(
    slices: &[Arc<Slice>],
    bucket: u64,
    list: &ListUploads<'_>,
) -> Result<UploadsPage, EngineError> {
    let mut page = UploadsPage::default();
    let prefix = keys::prefix_of(bucket, list.prefix);
    let start = match &list.after {
        None => Some(prefix.clone()),
        Some(UploadPosition::AfterKey(key)) => Some(keys::after_key(bucket, key)),
        Some(UploadPosition::AfterPrefix(before)) => keys::after_prefix(bucket, before),
        Some(UploadPosition::AfterUpload(key, id)) => keys::versions_of(bucket, key)
            .map(|versions| [keys::with_upload(&versions, *id), vec![0]].concat()),
    };
    let Some(start) = start.filter(|_| list.max > 0) else { return Ok(page) };
    let txns = snapshots(slices)?;
    let mut merge = merge(slices, &txns, |tables| tables.uploads, &start.max(prefix.clone()), &prefix)?;
    let mut position = list.after.clone();
    while let Some((encoded, record)) = merge.head() {
        let is_full = page.uploads.len() + page.common_prefixes.len() >= list.max;
        if is_full || merge.steps() >= LIST_STEPS_MAX {
            page.next = position;
            return Ok(page);
        }
        let (_, key, id) = keys::decode_upload(encoded).ok_or_else(corrupt_key)?;
        if let Some(common) = common_prefix(&key, list.prefix, list.delimiter) {
            page.common_prefixes.push(common.to_vec());
            position = Some(UploadPosition::AfterPrefix(common.to_vec()));
            let Some(next) = keys::after_prefix(bucket, common) else { break };
            merge.skip_to(&next)?;
            continue;
        }
        let upload = upload_record::decode(record.version, record.body, id)?;
        let (initiated, checksum) = (upload.initiated, upload.upload.checksum);
        page.uploads.push(ListedUpload { key: text(&key)?, id, initiated, checksum });
        position = Some(UploadPosition::AfterUpload(key, id));
        merge.advance()?;
    }
    Ok(page)
}
