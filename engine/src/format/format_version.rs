//! The format versions of stores: what each added, and which this program runs.
//!
//! A store keeps its version until `cairn storage upgrade` raises it. Until then nothing is written that a program of that
//! version could not read. What a later version added is a [`Feature`], which is refused meanwhile.

use crate::error::EngineError;

/// Format version of new stores, and the latest that this program reads.
pub const FORMAT_VERSION: u32 = 11;
/// Earliest format version that this program runs. It only upgrades stores of earlier ones.
pub const FORMAT_VERSION_MIN: u32 = 10;

/// The additions of each version. Version 1 is the first.
const ADDED: [(u32, &str); 10] = [
    (2, "versions, multipart uploads and settings of buckets"),
    (3, "service accounts, policies and management tokens"),
    (4, "storage events, webhooks and lifecycle rules"),
    (5, "shares and embeds"),
    (6, "tags"),
    (7, "lifecycle rules with tags"),
    (8, "the commit log"),
    (9, "locations of buckets"),
    (
        10,
        "more checksum algorithms, encryption and public access of buckets, policies with only_if_absent and source_ip, \
         and lifecycle rules about uploads",
    ),
    (11, "imports of versions with the ids, dates and entity tags of another store"),
];

/// A feature that a store can only have from a format version on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Versions with the ids of another store.
    ImportedVersions,
}

impl Feature {
    /// The first version whose programs can read it.
    const fn since(self) -> u32 {
        match self {
            Self::ImportedVersions => 11,
        }
    }

    /// Returns the name in messages, in the plural.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ImportedVersions => "imports",
        }
    }

    /// Refuses it in a store of a version that does not have it.
    pub(crate) fn require(self, format_version: u32) -> Result<(), EngineError> {
        if format_version >= self.since() {
            return Ok(());
        }
        Err(EngineError::NeedsUpgrade { feature: self.name(), found: format_version, needed: self.since() })
    }
}

/// Returns what an upgrade from a format version adds, each with the version that added it. Empty for the latest version.
pub fn format_changes(format_version: u32) -> impl Iterator<Item = (u32, &'static str)> {
    ADDED.into_iter().filter(move |(version, _)| *version > format_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_says_what_it_added() {
        assert!(ADDED.iter().map(|(version, _)| *version).eq(2..=FORMAT_VERSION));
        assert!(format_changes(FORMAT_VERSION).next().is_none());
        assert_eq!(format_changes(10).map(|(version, _)| version).collect::<Vec<_>>(), [11]);
    }

    #[test]
    fn feature_of_a_later_version_is_refused_by_name() {
        assert_eq!(Feature::ImportedVersions.require(FORMAT_VERSION), Ok(()));
        let refused =
            Feature::ImportedVersions.require(10).expect_err("version 10 has no imports").to_string();
        assert!(refused.contains("cairn storage upgrade") && refused.contains("version 11"), "{refused}");
    }
}
