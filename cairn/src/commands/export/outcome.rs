//! The outcome of exporting a version, at either kind of target.

use super::listing::Version;

/// The outcome of exporting a version.
pub(super) enum Outcome {
    /// It is at the target.
    Exported(Box<Version>, Sent),
    /// A delete marker, with its version at the target.
    Marker(Option<String>),
    Failed(String),
}

/// The result of sending a version to the target.
#[derive(Default)]
pub(super) struct Sent {
    pub(super) sha256: Option<String>,
    /// Bytes that were copied; `None` if it was there.
    pub(super) copied: Option<u64>,
    pub(super) target_version: Option<String>,
    /// The entity tag that the target gave it, if it is another one.
    pub(super) other_tag: Option<String>,
    /// The target does not keep its lock.
    pub(super) is_lock_lost: bool,
}
