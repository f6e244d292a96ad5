//! Planted flaws, which the simulation's campaign must detect.

/// A mistake that the engine makes on purpose.
///
/// Mistakes of the device are planned on the simulated disk instead (`Effect::Lie`).
#[cfg_attr(not(feature = "simulation"), expect(unreachable_pub, reason = "only campaigns plant flaws"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Changes are acknowledged before their transaction is committed.
    AnswerBeforeCommit,
    /// Extents of removed payloads become free before the removal is committed.
    ReleaseBeforeCommit,
    /// Extents of removed payloads become free while readers still have them pinned.
    ReleaseDespiteReaders,
    /// Extents of removed payloads stay marked as used in the free map.
    KeepRemovedMarked,
    /// A failed flush of a volume counts as successful.
    IgnoreFailedFlush,
    /// The completion of an upload removes the upload's first part instead of the parts that the request does not name.
    DropNamedPart,
    /// The completion of an upload leaves its parts in the usage of unfinished uploads.
    CountAssembledParts,
    /// Extents of removed multipart objects become free while readers still have them pinned.
    ReleasePartsDespiteReaders,
    /// The sequence of a null version that is not the newest version is not recorded.
    ForgetNullVersions,
    /// Versions that become non-current keep their entry in the due index.
    KeepDueEntries,
    /// The committer does not look at the tags of a version that a lifecycle rule may remove.
    IgnoreRuleTags,
    /// Object locks do not prevent the removal of a version.
    RemoveLocked,
    /// Deletions of versions write no event.
    ForgetEvents,
}
