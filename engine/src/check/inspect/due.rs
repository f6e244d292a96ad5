//! Compares the due index with versions and uploads.
//!
//! Entry and version are compared in the same snapshot, in both directions: each version that the index should have has its
//! entry, and each entry is about the role that its version has. The same is done with uploads.

use super::FindingKind;
use crate::error::EngineError;
use crate::format::due_record::{DueKey, DueState};
use crate::format::keys;
use crate::format::upload_record;
use crate::slice::due_states::DueStateMap;
use crate::slice::tables::Tables;
use crate::slice::version_chain::{ChainedVersion, VersionChain};
use crate::types::lifecycle::VersionRole;
use cairn_lmdb::{ReadTxn, Record};
use cairn_model::{Timestamp, UploadId};

/// The inconsistency, if there is one.
type CheckResult = Result<Option<(FindingKind, &'static str)>, EngineError>;

const fn mismatch(what: &'static str) -> CheckResult {
    Ok(Some((FindingKind::DueIndexMismatch, what)))
}

/// Checks that a version has its entry, if the index should have it.
pub(super) fn check_indexed(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    states: &DueStateMap,
    key: &[u8],
    stored: Record<'_>,
) -> CheckResult {
    let Some((bucket, object, _)) = keys::decode(key) else { return Ok(None) };
    if !states.get(&bucket).is_some_and(|state| state.has(key)) {
        return Ok(None);
    }
    let versions = &key[..keys::shared_length(key)];
    let chain = VersionChain { records: txn, objects: tables.objects, versions };
    let version = ChainedVersion::decode(key, stored)?;
    let Some(role) = chain.role_of(&version)? else { return Ok(None) };
    let entry = DueKey::of_version(bucket, role, version.version, &object);
    match txn.get(tables.due, &entry.encode())? {
        Some(found) if found.body == object => Ok(None),
        _ => mismatch("the due index has no entry for it"),
    }
}

/// Checks that an unfinished upload has its entry, if the index should have it.
pub(super) fn check_indexed_upload(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    states: &DueStateMap,
    key: &[u8],
    since: Timestamp,
) -> CheckResult {
    let Some((bucket, object, id)) = keys::decode_upload(key) else { return Ok(None) };
    if !states.get(&bucket).is_some_and(|state| state.has_upload(key)) {
        return Ok(None);
    }
    let entry = DueKey::of_upload(bucket, since, id);
    match txn.get(tables.due, &entry.encode())? {
        Some(found) if found.body == object => Ok(None),
        _ => mismatch("the due index has no entry for it"),
    }
}

/// Checks that an entry is about an upload that was begun then, if the index should have it.
fn check_upload_entry(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    state: Option<&DueState>,
    versions: &[u8],
    entry: &DueKey,
) -> CheckResult {
    let key = keys::with_upload(versions, UploadId(entry.version.0));
    if !state.is_some_and(|state| state.has_upload(&key)) {
        return mismatch("the due index has an entry of an upload that it should not have yet");
    }
    let Some(record) = txn.get(tables.uploads, &key)? else {
        return mismatch("an entry of the due index is about no upload");
    };
    if upload_record::decode_initiated(record.version, record.body)? != entry.since {
        return mismatch("an entry of the due index says another date than its upload has");
    }
    Ok(None)
}

/// Checks that an entry is about a version that has the role, if the index should have it.
pub(super) fn check_due_entry(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    states: &DueStateMap,
    key: &[u8],
    stored: Record<'_>,
) -> CheckResult {
    let Some(entry) = DueKey::decode(key) else {
        return Ok(Some((
            FindingKind::KeyUndecodable,
            "the key of an entry of the due index does not decode",
        )));
    };
    let state = states.get(&entry.bucket);
    if state == Some(&DueState::Removing) {
        return Ok(None);
    }
    let Some(versions) = keys::versions_of(entry.bucket, stored.body) else {
        return mismatch("an entry of the due index has an invalid object key");
    };
    if entry.role == VersionRole::UnfinishedUpload {
        return check_upload_entry(txn, tables, state, &versions, &entry);
    }
    let key = keys::with_sequence(&versions, entry.version.0);
    if !state.is_some_and(|state| state.has(&key)) {
        return mismatch("the due index has an entry that it should not have yet");
    }
    let Some(record) = txn.get(tables.objects, &key)? else {
        return mismatch("an entry of the due index is about no version");
    };
    let chain = VersionChain { records: txn, objects: tables.objects, versions: &versions };
    let role = (entry.role, entry.since);
    if chain.role_of(&ChainedVersion::decode(&key, record)?)? != Some(role) {
        return mismatch("an entry of the due index says another role or date than its version has");
    }
    if entry != DueKey::of_version(entry.bucket, role, entry.version, stored.body) {
        return mismatch("an entry of the due index is not the one of its object key");
    }
    Ok(None)
}
