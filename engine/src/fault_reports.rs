//! Reports of faults that the store detects by itself.
//!
//! Every fault is logged here. Damage is also counted. An observer above the engine may record faults as well. It is called on
//! the thread that detected the fault, which may be an executor, so it must not block.

use cairn_model::VersionName;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The activity of the store when it found damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoundWhile {
    /// Reading for a client. Damaged data is not served.
    Serving,
    /// Verifying or scrubbing.
    Verifying,
    /// Changing metadata.
    Committing,
}

impl FoundWhile {
    /// Returns the name of the activity.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Verifying => "verifying",
            Self::Committing => "committing",
        }
    }
}

/// A fault that an operator should know about.
#[derive(Clone, Copy, Debug)]
pub enum StoreFault<'a> {
    /// A record or a block failed its check, or is missing.
    Damage {
        /// `bucket/key`, a bucket, or a slice: as much as is known.
        object: &'a str,
        /// The version, if it is known.
        version: Option<VersionName>,
        /// The damaged part, for example `block 3`.
        what: &'a str,
        /// The activity of the store.
        found_while: FoundWhile,
    },
    /// The device failed to read a payload.
    ReadFailed {
        /// `bucket/key`.
        object: &'a str,
        /// The version.
        version: VersionName,
        /// Volume, offset and the system's error.
        what: &'a str,
    },
    /// A flush failed: the volume takes no more writes until the device works again.
    VolumeReadOnly {
        /// The volume's file.
        path: &'a str,
    },
    /// Metadata could not be made durable. No more changes are accepted until it was recovered.
    ChangesStopped {
        /// The part that accepts no changes, and the reason.
        reason: &'a str,
    },
    /// The device works again after a failure, and changes are accepted again.
    ChangesResumed {
        /// The volume's file, or the slice.
        what: &'a str,
    },
}

/// Receives every fault. Called on executors and on the store's own threads, so it must not block.
pub trait FaultObserver: Send + Sync {
    /// Receives a fault that was detected.
    fn observe(&self, event: &StoreFault<'_>);
}

/// Collects the fault reports of a store.
#[derive(Default)]
pub(crate) struct FaultReports {
    observer: OnceLock<Box<dyn FaultObserver>>,
    damage: AtomicU64,
}

impl FaultReports {
    /// Sets the observer. A second observer is ignored.
    pub(crate) fn set_fault_observer(&self, observer: Box<dyn FaultObserver>) {
        let _ = self.observer.set(observer);
    }

    /// Returns the number of damage reports since the start.
    pub(crate) fn damage_count(&self) -> u64 {
        self.damage.load(Ordering::Relaxed)
    }

    /// Logs a fault, counts it if it is damage, and passes it to the observer.
    pub(crate) fn report(&self, event: &StoreFault<'_>) {
        match *event {
            StoreFault::Damage { object, version, what, found_while } => {
                self.damage.fetch_add(1, Ordering::Relaxed);
                let (version, found_while) = (version.map(tracing::field::display), found_while.name());
                tracing::error!(target: "service::engine", object, version, what, found_while, "stored data failed its check");
            }
            StoreFault::ReadFailed { object, version, what } => {
                tracing::error!(target: "service::engine", object, %version, what, "payload read failed");
            }
            StoreFault::VolumeReadOnly { path } => {
                tracing::error!(target: "service::engine", path, "the volume is read-only until the device works again, or the service is started again");
            }
            StoreFault::ChangesStopped { reason } => {
                tracing::error!(target: "service::engine", reason, "no more changes are taken");
            }
            StoreFault::ChangesResumed { what } => {
                tracing::warn!(target: "service::engine", what, "the device works again: changes are taken again");
            }
        }
        if let Some(observer) = self.observer.get() {
            observer.observe(event);
        }
    }
}
