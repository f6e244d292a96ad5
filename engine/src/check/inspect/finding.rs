//! Kinds of findings of an inspection, with their stable names.

use cairn_model::VersionId;

/// Kinds of findings. The names are part of the management API (`docs/management-api.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// `superblock.json` is missing or differs from when the store was opened.
    SuperblockDamaged,
    /// A record of the buckets' environment fails its check or has an unknown form.
    BucketDamaged,
    /// Two buckets have the same id, or a bucket has an id that has not been issued yet.
    BucketIdInvalid,
    /// A volume's file is missing or was replaced.
    VolumeMissing,
    /// A volume's file was truncated.
    VolumeTruncated,
    /// A volume's header is damaged.
    VolumeHeaderDamaged,
    /// A metadata file is missing, was replaced or truncated, or its page tree is damaged.
    MetadataUnreadable,
    /// A record of a version, an upload or a part fails its check.
    RecordDamaged,
    /// Such a record passes its check but cannot be decoded.
    RecordUndecodable,
    /// The key of such a record cannot be decoded.
    KeyUndecodable,
    /// Key and record of an object name different versions.
    VersionMismatch,
    /// A version or an upload is stored in the wrong slice.
    WrongSlice,
    /// A version or an upload has a sequence that the slice has not issued yet.
    SequenceBehind,
    /// The id of an imported version does not lead to it, or leads to a version without this id.
    ImportedIdMismatch,
    /// A null version is missing in the table of null versions, or an entry of the table refers to none.
    NullVersionMismatch,
    /// The due index lacks an entry of a version, or has one that does not match.
    DueIndexMismatch,
    /// The parts of a version, or the reference from its upload, do not match the version.
    PartsMismatch,
    /// A part belongs to no upload and no version.
    PartWithoutUpload,
    /// A record belongs to a bucket that does not exist.
    UnknownBucket,
    /// The payload's form does not match its size.
    GeometryMismatch,
    /// A record owns units outside of all volumes, or a volume's header.
    ExtentOutsideVolume,
    /// Two records own the same units.
    ExtentOwnedTwice,
    /// Units that a record owns are not marked in the free map.
    SpaceNotMarked,
    /// Marked units that no record owns.
    OrphanedSpace,
    /// The free map marks units outside of all volumes, or a volume's header.
    MarkOutsideVolume,
    /// A record of the free map fails its check or has an unknown form.
    FreeMapDamaged,
    /// A usage counter differs from the sum of the records.
    UsageMismatch,
    /// A usage counter fails its check or has an unknown form.
    UsageDamaged,
    /// A usage counter belongs to a bucket that does not exist.
    UsageOfUnknownBucket,
    /// Identity, sequence or totals of a slice are missing or damaged.
    SliceRecordDamaged,
    /// The totals do not match the number of records or the hash of their checks: records were lost or added.
    TotalsMismatch,
}

impl FindingKind {
    /// All kinds.
    pub const ALL: [Self; 31] = [
        Self::SuperblockDamaged,
        Self::BucketDamaged,
        Self::BucketIdInvalid,
        Self::VolumeMissing,
        Self::VolumeTruncated,
        Self::VolumeHeaderDamaged,
        Self::MetadataUnreadable,
        Self::RecordDamaged,
        Self::RecordUndecodable,
        Self::KeyUndecodable,
        Self::VersionMismatch,
        Self::WrongSlice,
        Self::SequenceBehind,
        Self::ImportedIdMismatch,
        Self::NullVersionMismatch,
        Self::DueIndexMismatch,
        Self::PartsMismatch,
        Self::PartWithoutUpload,
        Self::UnknownBucket,
        Self::GeometryMismatch,
        Self::ExtentOutsideVolume,
        Self::ExtentOwnedTwice,
        Self::SpaceNotMarked,
        Self::OrphanedSpace,
        Self::MarkOutsideVolume,
        Self::FreeMapDamaged,
        Self::UsageMismatch,
        Self::UsageDamaged,
        Self::UsageOfUnknownBucket,
        Self::SliceRecordDamaged,
        Self::TotalsMismatch,
    ];

    /// The name in snake case. It never changes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SuperblockDamaged => "superblock_damaged",
            Self::BucketDamaged => "bucket_damaged",
            Self::BucketIdInvalid => "bucket_id_invalid",
            Self::VolumeMissing => "volume_missing",
            Self::VolumeTruncated => "volume_truncated",
            Self::VolumeHeaderDamaged => "volume_header_damaged",
            Self::MetadataUnreadable => "metadata_unreadable",
            Self::RecordDamaged => "record_damaged",
            Self::RecordUndecodable => "record_undecodable",
            Self::KeyUndecodable => "key_undecodable",
            Self::VersionMismatch => "version_mismatch",
            Self::WrongSlice => "wrong_slice",
            Self::SequenceBehind => "sequence_behind",
            Self::ImportedIdMismatch => "imported_id_mismatch",
            Self::NullVersionMismatch => "null_version_mismatch",
            Self::DueIndexMismatch => "due_index_mismatch",
            Self::PartsMismatch => "parts_mismatch",
            Self::PartWithoutUpload => "part_without_upload",
            Self::UnknownBucket => "unknown_bucket",
            Self::GeometryMismatch => "geometry_mismatch",
            Self::ExtentOutsideVolume => "extent_outside_volume",
            Self::ExtentOwnedTwice => "extent_owned_twice",
            Self::SpaceNotMarked => "space_not_marked",
            Self::OrphanedSpace => "orphaned_space",
            Self::MarkOutsideVolume => "mark_outside_volume",
            Self::FreeMapDamaged => "free_map_damaged",
            Self::UsageMismatch => "usage_mismatch",
            Self::UsageDamaged => "usage_damaged",
            Self::UsageOfUnknownBucket => "usage_of_unknown_bucket",
            Self::SliceRecordDamaged => "slice_record_damaged",
            Self::TotalsMismatch => "totals_mismatch",
        }
    }
}

/// One inconsistency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Kind of inconsistency.
    pub kind: FindingKind,
    /// Name of the bucket, if it is about a known bucket.
    pub bucket: Option<String>,
    /// Key of the object, if it is about an object.
    pub key: Option<String>,
    /// Version of the object, if it is about a version.
    pub version: Option<VersionId>,
    /// Description with place and values.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::FindingKind;
    use std::collections::BTreeSet;

    #[test]
    fn kinds_have_unique_documented_names() {
        let names: BTreeSet<_> = FindingKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), FindingKind::ALL.len());
        let page = include_str!("../../../../docs/management-api.md");
        for name in names {
            assert!(
                page.contains(&format!("| `{name}` |")),
                "docs/management-api.md does not explain {name}"
            );
        }
    }
}
