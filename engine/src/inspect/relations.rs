//! Records that name other records: objects of parts, parts, completed uploads, null versions. Each is held against what
//! the same snapshot holds of the others.

use super::FindingKind;
use crate::codec::u64_of;
use crate::error::EngineError;
use crate::keys;
use crate::object::ObjectInfo;
use crate::part_record::PartHead;
use crate::record::{Content, ObjectRecord, RecordHead};
use crate::slice::Tables;
use cairn_lmdb::{ReadTxn, Record};
use cairn_model::UploadId;

/// What is wrong, if anything.
type Judgement = Result<Option<(FindingKind, &'static str)>, EngineError>;

/// Whether a version has the parts that it was made of, no others, and the upload's record leads to it.
pub(super) fn judge_parts(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    key: &[u8],
    info: &ObjectInfo,
    upload: UploadId,
) -> Judgement {
    let versions = key.get(..keys::shared_length(key)).unwrap_or_default();
    let upload = keys::with_upload(versions, upload);
    let mismatch = |what| Ok(Some((FindingKind::PartsMismatch, what)));
    let entry = txn.get(tables.assembled, &upload)?;
    if entry.and_then(|record| u64_of(record.body)) != Some(info.version.0) {
        return mismatch("no record leads from its upload to it");
    }
    let numbers = info.parts.iter().flat_map(|run| (0..run.count).map(|n| (run.first + n, run.size)));
    let mut stored = txn.scan(tables.parts, &upload)?;
    for (number, size) in numbers {
        let next = stored.next().transpose()?.filter(|(key, _)| key.starts_with(&upload));
        let Some((key, record)) = next else { return mismatch("a part of it is missing") };
        let part = PartHead::decode(record.version, record.body, number)?;
        if keys::decode_part(key) != Some((&upload, number)) || part.info.size != size {
            return mismatch("its parts are not those that it was made of");
        }
    }
    match stored.next().transpose()? {
        Some((key, _)) if key.starts_with(&upload) => mismatch("its upload has a part that is none of it"),
        _ => Ok(None),
    }
}

/// What a part belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PartOwner {
    /// An upload that is neither completed nor aborted.
    Upload,
    /// A version.
    Version,
    Nothing,
}

/// What the parts of an upload belong to, given the upload's key.
pub(super) fn owner_of_parts(txn: &ReadTxn<'_>, tables: &Tables, upload: &[u8]) -> PartOwner {
    // Also a record that is damaged is there.
    let is_there = |table| !matches!(txn.get(table, upload), Ok(None));
    match (is_there(tables.uploads), is_there(tables.assembled)) {
        (true, _) => PartOwner::Upload,
        (false, true) => PartOwner::Version,
        (false, false) => PartOwner::Nothing,
    }
}

/// Whether the record of a completed upload leads to a version that was made of its parts.
pub(super) fn judge_assembled(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    key: &[u8],
    record: Record<'_>,
) -> Judgement {
    let wrong = Ok(Some((FindingKind::PartsMismatch, "a completed upload leads to no version")));
    let (Some((_, _, upload)), Some(version)) = (keys::decode_upload(key), u64_of(record.body)) else {
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

/// Whether a null version that newer ones were read in front of is where the table says. Those may have been removed since
/// they were read: what the snapshot holds now is the newest, and has no place in the table.
pub(super) fn judge_older_null(txn: &ReadTxn<'_>, tables: &Tables, key: &[u8], sequence: u64) -> Judgement {
    let versions = key.get(..keys::shared_length(key)).unwrap_or_default();
    let newest = txn.first_at_or_after(tables.objects, versions)?.map(|(newest, _)| newest);
    if newest == Some(key) {
        return Ok(None);
    }
    let entry = txn.get(tables.null_versions, versions)?;
    let is_known = entry.and_then(|record| u64_of(record.body)) == Some(sequence);
    let what = "a null version that is not the newest, and not the one that is known";
    Ok((!is_known).then_some((FindingKind::NullVersionMismatch, what)))
}

/// Whether the entry of an older null version leads to one.
pub(super) fn judge_null_entry(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    versions: &[u8],
    record: Record<'_>,
) -> Judgement {
    let wrong = Ok(Some((FindingKind::NullVersionMismatch, "the place of a null version leads to none")));
    let Some(sequence) = u64_of(record.body) else { return wrong };
    let key = keys::with_sequence(versions, sequence);
    let Some(stored) = txn.get(tables.objects, &key)? else { return wrong };
    let newest = txn.first_at_or_after(tables.objects, versions)?;
    let is_older = newest.is_some_and(|(newest, _)| newest != key);
    if RecordHead::decode(stored.version, stored.body)?.is_null && is_older { Ok(None) } else { wrong }
}
