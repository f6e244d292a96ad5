//! Kinds of findings of an inspection, with their stable names.

use cairn_model::VersionId;

cairn_model::named_enum! {
    /// Kinds of findings. The names are part of the management API (`docs/management-api.md`).
    ///
    /// Named in snake case. The names never change.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum FindingKind {
        /// `superblock.json` is missing or differs from when the store was opened.
        SuperblockDamaged => "superblock_damaged",
        /// A record of the buckets' environment fails its check or has an unknown form.
        BucketDamaged => "bucket_damaged",
        /// Two buckets have the same id, or a bucket has an id that has not been issued yet.
        BucketIdInvalid => "bucket_id_invalid",
        /// A volume's file is missing or was replaced.
        VolumeMissing => "volume_missing",
        /// A volume's file was truncated.
        VolumeTruncated => "volume_truncated",
        /// A volume's header is damaged.
        VolumeHeaderDamaged => "volume_header_damaged",
        /// A metadata file is missing, was replaced or truncated, or its page tree is damaged.
        MetadataUnreadable => "metadata_unreadable",
        /// A record of a version, an upload or a part fails its check.
        RecordDamaged => "record_damaged",
        /// Such a record passes its check but cannot be decoded.
        RecordUndecodable => "record_undecodable",
        /// The key of such a record cannot be decoded.
        KeyUndecodable => "key_undecodable",
        /// Key and record of an object name different versions.
        VersionMismatch => "version_mismatch",
        /// A version or an upload is stored in the wrong slice.
        WrongSlice => "wrong_slice",
        /// A version or an upload has a sequence that the slice has not issued yet.
        SequenceBehind => "sequence_behind",
        /// The id of an imported version does not lead to it, or leads to a version without this id.
        ImportedIdMismatch => "imported_id_mismatch",
        /// A null version is missing in the table of null versions, or an entry of the table refers to none.
        NullVersionMismatch => "null_version_mismatch",
        /// The due index lacks an entry of a version, or has one that does not match.
        DueIndexMismatch => "due_index_mismatch",
        /// The parts of a version, or the reference from its upload, do not match the version.
        PartsMismatch => "parts_mismatch",
        /// A part belongs to no upload and no version.
        PartWithoutUpload => "part_without_upload",
        /// A record belongs to a bucket that does not exist.
        UnknownBucket => "unknown_bucket",
        /// The payload's form does not match its size.
        GeometryMismatch => "geometry_mismatch",
        /// A record owns units outside of all volumes, or a volume's header.
        ExtentOutsideVolume => "extent_outside_volume",
        /// Two records own the same units.
        ExtentOwnedTwice => "extent_owned_twice",
        /// Units that a record owns are not marked in the free map.
        SpaceNotMarked => "space_not_marked",
        /// Marked units that no record owns.
        OrphanedSpace => "orphaned_space",
        /// The free map marks units outside of all volumes, or a volume's header.
        MarkOutsideVolume => "mark_outside_volume",
        /// A record of the free map fails its check or has an unknown form.
        FreeMapDamaged => "free_map_damaged",
        /// A usage counter differs from the sum of the records.
        UsageMismatch => "usage_mismatch",
        /// A usage counter fails its check or has an unknown form.
        UsageDamaged => "usage_damaged",
        /// A usage counter belongs to a bucket that does not exist.
        UsageOfUnknownBucket => "usage_of_unknown_bucket",
        /// Identity, sequence or totals of a slice are missing or damaged.
        SliceRecordDamaged => "slice_record_damaged",
        /// The totals do not match the number of records or the hash of their checks: records were lost or added.
        TotalsMismatch => "totals_mismatch",
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
