//! Checks references between records: multipart objects, parts, completed uploads, imported and null versions.
//!
//! Each reference is compared with the other record in the same snapshot.

use super::FindingKind;
use crate::error::EngineError;
use crate::format::codec::decode_u64;
use crate::format::keys;
use crate::format::object_record::{Content, ObjectRecord, RecordHead};
use crate::format::part_record::PartHead;
use crate::slice::tables::Tables;
use crate::types::object::ObjectInfo;
use cairn_lmdb::{ReadTxn, Record};
use cairn_model::{ImportedId, UploadId};

/// The inconsistency, if there is one.
type CheckResult = Result<Option<(FindingKind, &'static str)>, EngineError>;

/// Checks that a version has exactly the parts it was made of, and that its upload's record refers to it.
pub(super) fn check_parts(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    key: &[u8],
    info: &ObjectInfo,
    upload: UploadId,
) -> CheckResult {
    let versions = key.get(..keys::shared_length(key)).unwrap_or_default();
    let upload = keys::with_upload(versions, upload);
    let mismatch = |what| Ok(Some((FindingKind::PartsMismatch, what)));
    let entry = txn.get(tables.assembled, &upload)?;
    if entry.and_then(|record| decode_u64(record.body)) != Some(info.version.0) {
        return mismatch("no record refers from its upload to it");
    }
    let numbers = info.parts.iter().flat_map(|run| (0..run.count).map(|n| (run.first + n, run.size)));
    let mut stored = txn.scan(tables.parts, &upload)?;
    for (number, size) in numbers {
        let next = stored.next().transpose()?.filter(|(key, _)| key.starts_with(&upload));
        let Some((key, record)) = next else { return mismatch("a part of it is missing") };
        let part = PartHead::decode(record.version, record.body, number)?;
        if keys::decode_part(key) != Some((&upload, number)) || part.info.size != size {
            return mismatch("its parts are not the ones that it was made of");
        }
    }
    match stored.next().transpose()? {
        Some((key, _)) if key.starts_with(&upload) => {
            mismatch("its upload has a part that does not belong to it")
        }
        _ => Ok(None),
    }
}

/// The owner of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PartOwner {
    /// An unfinished upload.
    Upload,
    /// A version.
    Version,
    Nothing,
}

/// Finds the owner of the parts of an upload, given the upload's encoded key.
pub(super) fn owner_of_parts(txn: &ReadTxn<'_>, tables: &Tables, upload: &[u8]) -> PartOwner {
    // A damaged record exists, too.
    let is_there = |table| !matches!(txn.get(table, upload), Ok(None));
    match (is_there(tables.uploads), is_there(tables.assembled)) {
        (true, _) => PartOwner::Upload,
        (false, true) => PartOwner::Version,
        (false, false) => PartOwner::Nothing,
    }
}

/// Checks that the record of a completed upload refers to a version that was made of its parts.
pub(super) fn check_assembled(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    key: &[u8],
    record: Record<'_>,
) -> CheckResult {
    let wrong = Ok(Some((FindingKind::PartsMismatch, "a completed upload refers to no version")));
    let (Some((_, _, upload)), Some(version)) = (keys::decode_upload(key), decode_u64(record.body)) else {
        return wrong;
    };
    let versions = key.get(..keys::shared_length(key)).unwrap_or_default();
    let Some(stored) = txn.get(tables.objects, &keys::with_sequence(versions, version))? else {
        return wrong;
    };
    let object = ObjectRecord::decode(stored.version, stored.body)?;
    let leads = matches!(object.content, Content::Parts { upload: named, .. } if named == upload);
    if leads { Ok(None) } else { wrong }
}

/// Checks that the id of an imported version leads to it.
pub(super) fn check_imported_id(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    key: &[u8],
    id: &ImportedId,
    version: u64,
) -> CheckResult {
    let versions = key.get(..keys::shared_length(key)).unwrap_or_default();
    let entry = txn.get(tables.imported_ids, &keys::with_imported_id(versions, id))?;
    let is_known = entry.and_then(|record| decode_u64(record.body)) == Some(version);
    let what = "the id of an imported version does not lead to it";
    Ok((!is_known).then_some((FindingKind::ImportedIdMismatch, what)))
}

/// Checks that an entry of the table of imported ids refers to a version with this id.
pub(super) fn check_imported_entry(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    key: &[u8],
    record: Record<'_>,
) -> CheckResult {
    let wrong =
        Ok(Some((FindingKind::ImportedIdMismatch, "an imported id refers to no version with this id")));
    let (Some((bucket, object, id)), Some(number)) = (keys::decode_imported_id(key), decode_u64(record.body))
    else {
        return wrong;
    };
    let Some(versions) = keys::versions_of(bucket, &object) else { return wrong };
    let Some(stored) = txn.get(tables.objects, &keys::with_sequence(&versions, number))? else {
        return wrong;
    };
    let is_of_id = RecordHead::decode(stored.version, stored.body)?.imported == Some(id);
    if is_of_id { Ok(None) } else { wrong }
}

/// Checks that the table of null versions refers to a null version that is not the newest.
///
/// Newer versions may have been removed since they were read. If the null version is the newest in this snapshot, the table
/// must have no entry for it, and nothing is wrong.
pub(super) fn check_older_null(txn: &ReadTxn<'_>, tables: &Tables, key: &[u8], sequence: u64) -> CheckResult {
    let versions = key.get(..keys::shared_length(key)).unwrap_or_default();
    let newest = txn.first_at_or_after(tables.objects, versions)?.map(|(newest, _)| newest);
    if newest == Some(key) {
        return Ok(None);
    }
    let entry = txn.get(tables.null_versions, versions)?;
    let is_known = entry.and_then(|record| decode_u64(record.body)) == Some(sequence);
    let what = "a null version is neither the newest nor the one in the table";
    Ok((!is_known).then_some((FindingKind::NullVersionMismatch, what)))
}

/// Checks that an entry of the table of null versions refers to an older null version.
pub(super) fn check_null_entry(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    versions: &[u8],
    record: Record<'_>,
) -> CheckResult {
    let wrong = Ok(Some((
        FindingKind::NullVersionMismatch,
        "an entry of the table of null versions refers to no null version",
    )));
    let Some(sequence) = decode_u64(record.body) else { return wrong };
    let key = keys::with_sequence(versions, sequence);
    let Some(stored) = txn.get(tables.objects, &key)? else { return wrong };
    let newest = txn.first_at_or_after(tables.objects, versions)?;
    let is_older = newest.is_some_and(|(newest, _)| newest != key);
    if RecordHead::decode(stored.version, stored.body)?.is_null && is_older { Ok(None) } else { wrong }
}
