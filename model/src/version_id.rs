//! Version ids: the sequence number that a slice gave to a version, which names it and orders it.

/// The identity of one version of an object. Sequences rise within a slice and never go back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct VersionId(pub u64);
