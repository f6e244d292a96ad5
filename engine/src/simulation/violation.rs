//! Violations: promises of the engine that a campaign found broken.

use std::fmt;

/// The promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViolationKind {
    /// The store does not open after a power cut.
    StoreDoesNotOpen,
    /// A bucket is missing or has wrong settings.
    BucketMismatch,
    /// A version that is listed, or was acknowledged, cannot be opened.
    OpenFailed,
    /// The payload of a version cannot be read.
    ReadFailed,
    /// A read returned bytes other than those that were put.
    TornRead,
    /// A key is in a state that its acknowledged changes and the changes in flight cannot lead to: something was lost,
    /// restored, or never put.
    StateMismatch,
    /// Lists fail, or disagree with each other or with the records.
    ListMismatch,
    /// The storage events do not lead to what the store holds: one is missing, or was invented.
    EventMismatch,
    /// The usage of a bucket is not the sum of what it holds.
    UsageMismatch,
    /// The store's own inspection fails, is incomplete or finds an inconsistency.
    InspectionMismatch,
    /// Free units, owned units and headers are not all units of the volumes: space leaked or is owned twice.
    SpaceMismatch,
    /// A change failed although nothing was wrong with the request or the device.
    ChangeFailed,
    /// A change succeeded although an object lock forbids it.
    LockIgnored,
    /// A change reported another outcome than the rules of S3 demand.
    WrongOutcome,
}

/// A broken promise, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The promise.
    pub kind: ViolationKind,
    /// Names what was found; for people.
    pub detail: String,
}

impl Violation {
    pub(crate) fn new(kind: ViolationKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// Adds where the violation was found.
    pub(crate) fn found_at(self, place: &str) -> Self {
        Self { detail: format!("{place}: {}", self.detail), ..self }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.detail)
    }
}
