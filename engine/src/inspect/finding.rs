//! What an inspection can find: the kinds with their stable names.

use cairn_model::VersionId;

/// Kinds of findings. The names are part of the management API (`docs/api.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// `superblock.json` is missing or says something else than when the store was opened.
    SuperblockDamaged,
    /// A record of the buckets' environment fails its check or has an unknown form.
    BucketDamaged,
    /// Two buckets have one id, or a bucket has an id that was not given out yet.
    BucketIdInvalid,
    /// A volume's file is gone or was replaced.
    VolumeMissing,
    /// A volume's file is shorter than it was.
    VolumeTruncated,
    /// A volume's header is not what was written.
    VolumeHeaderDamaged,
    /// A metadata file is gone, was replaced or cut, or its pages cannot be followed.
    MetadataUnreadable,
    /// A record of a version, an upload or a part fails its check.
    RecordDamaged,
    /// Such a record that passes its check does not decode.
    RecordUndecodable,
    /// A key of such a record does not decode.
    KeyUndecodable,
    /// Key and record of an object name different versions.
    VersionMismatch,
    /// A version or an upload lies in a slice that its key does not belong to.
    WrongSlice,
    /// A version or an upload has a sequence that the slice has not given out yet.
    SequenceBehind,
    /// A key has a null version that is not known, or the place that is known of it leads to none.
    NullVersionMismatch,
    /// The parts of a version, or the record that leads from their upload to it, are not what it was made of.
    PartsMismatch,
    /// A part belongs to no upload and no version.
    PartWithoutUpload,
    /// A record belongs to a bucket that does not exist.
    UnknownBucket,
    /// The payload's form does not fit its size.
    GeometryMismatch,
    /// A record owns units that no volume has, or a volume's header.
    ExtentOutsideVolume,
    /// Units are owned twice.
    ExtentOwnedTwice,
    /// Units that a record owns are not marked in the free map.
    SpaceNotMarked,
    /// Marked units that no record owns.
    OrphanedSpace,
    /// The free map marks units that no volume has, or a volume's header.
    MarkOutsideVolume,
    /// A record of the free map fails its check or has an unknown form.
    FreeMapDamaged,
    /// A usage counter is not what the records sum up to.
    UsageMismatch,
    /// A usage counter fails its check or has an unknown form.
    UsageDamaged,
    /// A usage counter belongs to a bucket that does not exist.
    UsageOfUnknownBucket,
    /// Identity, sequence or totals of a slice are missing or damaged.
    SliceRecordDamaged,
    /// The number of records, or the sum of their checks, is not what the totals say: records vanished or came.
    TotalsMismatch,
}

impl FindingKind {
    /// All kinds.
    pub const ALL: [Self; 29] = [
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
        Self::NullVersionMismatch,
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

    /// The name, in snake case; never changes.
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
            Self::NullVersionMismatch => "null_version_mismatch",
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
    /// What kind of inconsistency it is.
    pub kind: FindingKind,
    /// Name of the bucket, where it is about one that is known.
    pub bucket: Option<String>,
    /// Key of the object, where it is about one.
    pub key: Option<String>,
    /// Version of the object, where it is about one.
    pub version: Option<VersionId>,
    /// Place and particulars, for people.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::FindingKind;
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_has_a_name_of_its_own_that_the_documentation_explains() {
        let names: BTreeSet<_> = FindingKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), FindingKind::ALL.len());
        let page = include_str!("../../../docs/api.md");
        for name in names {
            assert!(page.contains(&format!("| `{name}` |")), "docs/api.md does not explain {name}");
        }
    }
}
