//! Finds one version of an object in the metadata of its slice.

use crate::error::EngineError;
use crate::format::codec;
use crate::format::keys;
use crate::format::object_record::{ObjectRecord, RecordHead};
use crate::slice::tables::Tables;
use crate::types::bucket::Bucket;
use cairn_lmdb::ReadTxn;
use cairn_model::{ObjectKey, VersionName};

/// A version, as a read transaction sees it.
pub(crate) struct FoundVersion<'t> {
    /// Common prefix of the encoded keys of all versions of the object.
    pub(crate) versions: Vec<u8>,
    pub(crate) record: ObjectRecord,
    /// Bytes of an inline payload. The record holds their check.
    pub(crate) tail: &'t [u8],
}

/// Finds a version of an object. `None` as the version means the current one.
///
/// # Errors
/// [`EngineError::NoSuchKey`], [`EngineError::NoSuchVersion`], [`EngineError::DeleteMarker`], and [`EngineError::Corrupt`]
/// if a record is damaged.
pub(crate) fn find_version<'t>(
    txn: &'t ReadTxn<'_>,
    tables: &Tables,
    bucket: &Bucket,
    key: &ObjectKey,
    version: Option<VersionName>,
) -> Result<FoundVersion<'t>, EngineError> {
    let missing = || if version.is_some() { EngineError::NoSuchVersion } else { EngineError::NoSuchKey };
    let versions = keys::versions_of(bucket.id, key.as_bytes()).ok_or_else(missing)?;
    let stored = match version {
        None => {
            let found = txn.first_at_or_after(tables.objects, &versions)?;
            found.filter(|(key, _)| key.starts_with(&versions)).map(|(_, stored)| stored)
        }
        Some(name) => match named_sequence(txn, tables, &versions, name)? {
            Some(sequence) => txn.get(tables.objects, &keys::with_sequence(&versions, sequence))?,
            None => None,
        },
    };
    let stored = stored.ok_or_else(missing)?;
    let record = ObjectRecord::decode(stored.version, stored.body)
        .map_err(|error| name_object(error.into(), bucket, key))?;
    let info = &record.info;
    match version {
        // Clients cannot name the null version by an id.
        Some(VersionName::Id(_)) if info.is_null => Err(missing()),
        _ if record.is_delete_marker() => {
            let (version, last_modified) = (info.version_name(), info.last_modified);
            Err(EngineError::DeleteMarker { version, last_modified })
        }
        _ => Ok(FoundVersion { versions, record, tail: stored.tail }),
    }
}

/// Adds the object's name to an error about its record or payload.
pub(crate) fn name_object(error: EngineError, bucket: &Bucket, key: &ObjectKey) -> EngineError {
    match error {
        EngineError::Corrupt(what) => EngineError::Corrupt(format!("{what} of {}/{key}", bucket.name)),
        other => other,
    }
}

/// Finds the sequence of the version that a client names. `None` if there is no such version. For an id of this store's form
/// it is not decided yet whether its version exists.
pub(crate) fn named_sequence(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    versions: &[u8],
    name: VersionName,
) -> Result<Option<u64>, EngineError> {
    let Some(id) = name.imported_id() else { return null_version(txn, tables, versions) };
    if let Some(entry) = txn.get(tables.imported_ids, &keys::with_imported_id(versions, &id))? {
        let sequence = codec::decode_u64(entry.body);
        return sequence
            .map(Some)
            .ok_or_else(|| EngineError::Corrupt("the place of an imported version".to_owned()));
    }
    // Clients cannot name an imported version by its number.
    Ok(id.as_version().filter(|version| !version.is_imported()).map(|version| version.0))
}

/// Finds the sequence of the null version of a key.
pub(crate) fn null_version(
    txn: &ReadTxn<'_>,
    tables: &Tables,
    versions: &[u8],
) -> Result<Option<u64>, EngineError> {
    let newest = txn.first_at_or_after(tables.objects, versions)?;
    if let Some((_, record)) = newest.filter(|(key, _)| key.starts_with(versions)) {
        let head = RecordHead::decode(record.version, record.body)?;
        if head.is_null {
            return Ok(Some(head.sequence));
        }
    }
    let Some(entry) = txn.get(tables.null_versions, versions)? else { return Ok(None) };
    let sequence = codec::decode_u64(entry.body);
    sequence.map(Some).ok_or_else(|| EngineError::Corrupt("the place of a null version".to_owned()))
}
