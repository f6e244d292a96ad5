//! Reads of a batch: versions and parts as its transaction sees them.

use super::Batch;
use crate::error::EngineError;
use crate::format::codec;
use crate::format::extent::Extent;
use crate::format::keys;
use crate::format::object_record::{Content, ObjectRecord};
use crate::format::part_record::PartRecord;
use crate::types::bucket::{Bucket, BucketState};
use crate::types::object::ObjectInfo;
use cairn_model::{ImportedId, ObjectKey, VersionId, VersionName};
use std::sync::Arc;

/// A key in a bucket that accepts changes.
pub(super) struct TargetKey {
    pub(super) bucket: Arc<Bucket>,
    /// Common prefix of the encoded keys of everything that belongs to the key.
    pub(super) versions: Vec<u8>,
}

/// The record of a version, as the transaction sees it.
pub(super) struct FoundVersion {
    /// Key in the table of objects.
    pub(super) key: Vec<u8>,
    pub(super) record: ObjectRecord,
}

/// The record of a part, as the transaction sees it.
pub(super) struct FoundPart {
    /// Key in the table of parts.
    pub(super) key: Vec<u8>,
    pub(super) record: PartRecord,
}

/// Returns all extents that the parts own.
pub(super) fn extents_of(parts: &[FoundPart]) -> Vec<Extent> {
    parts.iter().flat_map(|part| part.record.payload.owned()).collect()
}

/// Returns the current object, if the newest version is one and not a delete marker.
pub(super) fn current_object(newest: Option<&FoundVersion>) -> Option<&ObjectInfo> {
    newest.map(|found| &found.record).filter(|record| !record.is_delete_marker()).map(|record| &record.info)
}

impl Batch<'_> {
    /// Returns a key to change.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] and [`EngineError::NoSuchBucket`] if the bucket accepts no changes, and
    /// [`EngineError::KeyTooLong`].
    pub(super) fn target(&self, bucket: &Arc<Bucket>, key: &ObjectKey) -> Result<TargetKey, EngineError> {
        match bucket.state() {
            BucketState::Active => {}
            BucketState::Deleting => return Err(EngineError::Conflict),
            BucketState::Deleted => return Err(EngineError::NoSuchBucket),
        }
        let versions = keys::versions_of(bucket.id, key.as_bytes()).ok_or(EngineError::KeyTooLong)?;
        Ok(TargetKey { bucket: Arc::clone(bucket), versions })
    }

    /// Finds the newest version of a key.
    pub(super) fn newest(&self, target: &TargetKey) -> Result<Option<FoundVersion>, EngineError> {
        self.version_at_or_after(target, &target.versions)
    }

    /// Finds the version that follows `newest`: the next older one.
    pub(super) fn older_than(
        &self,
        target: &TargetKey,
        newest: &FoundVersion,
    ) -> Result<Option<FoundVersion>, EngineError> {
        self.version_at_or_after(target, &[&newest.key[..], &[0]].concat())
    }

    fn version_at_or_after(
        &self,
        target: &TargetKey,
        key: &[u8],
    ) -> Result<Option<FoundVersion>, EngineError> {
        let found = self.txn.first_at_or_after(self.slice.tables.objects, key)?;
        let Some((key, record)) = found.filter(|(key, _)| key.starts_with(&target.versions)) else {
            return Ok(None);
        };
        let record = ObjectRecord::decode(record.version, record.body)?;
        Ok(Some(FoundVersion { key: key.to_vec(), record }))
    }

    /// Finds the version with this id, even if it is the null version.
    pub(super) fn version_with_id(
        &self,
        target: &TargetKey,
        version: VersionId,
    ) -> Result<Option<FoundVersion>, EngineError> {
        let key = keys::with_sequence(&target.versions, version.0);
        let Some(record) = self.txn.get(self.slice.tables.objects, &key)? else { return Ok(None) };
        let record = ObjectRecord::decode(record.version, record.body)?;
        Ok(Some(FoundVersion { key, record }))
    }

    /// Finds the null version if it is not the newest version.
    pub(super) fn older_null_version(&self, target: &TargetKey) -> Result<Option<FoundVersion>, EngineError> {
        let Some(entry) = self.txn.get(self.slice.tables.null_versions, &target.versions)? else {
            return Ok(None);
        };
        let corrupt = || EngineError::Corrupt("the place of a null version".to_owned());
        let sequence = codec::decode_u64(entry.body).ok_or_else(corrupt)?;
        self.version_with_id(target, VersionId(sequence))?.ok_or_else(corrupt).map(Some)
    }

    /// Finds the version that a client names.
    pub(super) fn named_version(
        &self,
        target: &TargetKey,
        name: VersionName,
    ) -> Result<Option<FoundVersion>, EngineError> {
        let Some(id) = name.imported_id() else { return self.null_version(target) };
        if let Some(imported) = self.imported_version(target, &id)? {
            return Ok(Some(imported));
        }
        // Clients cannot name the null version, or an imported one, by its number.
        let Some(id) = id.as_version().filter(|id| !id.is_imported()) else { return Ok(None) };
        Ok(self.version_with_id(target, id)?.filter(|found| !found.record.info.is_null))
    }

    /// Finds the null version, wherever it is.
    pub(super) fn null_version(&self, target: &TargetKey) -> Result<Option<FoundVersion>, EngineError> {
        match self.newest(target)? {
            Some(newest) if newest.record.info.is_null => Ok(Some(newest)),
            Some(_) => self.older_null_version(target),
            None => Ok(None),
        }
    }

    /// Finds the version that was imported with this id.
    pub(super) fn imported_version(
        &self,
        target: &TargetKey,
        id: &ImportedId,
    ) -> Result<Option<FoundVersion>, EngineError> {
        let key = keys::with_imported_id(&target.versions, id);
        let Some(entry) = self.txn.get(self.slice.tables.imported_ids, &key)? else { return Ok(None) };
        let corrupt = || EngineError::Corrupt("the place of an imported version".to_owned());
        let number = codec::decode_u64(entry.body).ok_or_else(corrupt)?;
        self.version_with_id(target, VersionId(number))?.ok_or_else(corrupt).map(Some)
    }

    /// Reads the parts of a version; none if it is not made of parts.
    pub(super) fn parts_of_version(
        &self,
        target: &TargetKey,
        version: &FoundVersion,
    ) -> Result<Vec<FoundPart>, EngineError> {
        match &version.record.content {
            Content::Parts { upload, .. } => {
                self.parts_of_upload(&keys::with_upload(&target.versions, *upload))
            }
            Content::Payload(_) | Content::DeleteMarker => Ok(Vec::new()),
        }
    }

    /// Reads the parts of an upload, in order of their numbers.
    pub(super) fn parts_of_upload(&self, upload: &[u8]) -> Result<Vec<FoundPart>, EngineError> {
        let mut parts = Vec::new();
        for item in self.txn.scan(self.slice.tables.parts, upload)? {
            let (key, record) = item?;
            if !key.starts_with(upload) {
                break;
            }
            let (_, number) =
                keys::decode_part(key).ok_or_else(|| EngineError::Corrupt("the key of a part".to_owned()))?;
            let record = PartRecord::decode(record.version, record.body, number)?;
            parts.push(FoundPart { key: key.to_vec(), record });
        }
        Ok(parts)
    }
}
