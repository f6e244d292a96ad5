//! What the store finds wrong by itself, told to whoever watches it.
//!
//! Every finding is logged here and, when it is damage, counted; an observer above the engine may record it as well. It is
//! called on whichever thread made the finding, executors among them, and so must not wait for anything.

use cairn_model::VersionName;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the store was doing when it found damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoundWhile {
    /// Reading for a client. What is damaged is not served.
    Serving,
    /// Verifying or scrubbing.
    Verifying,
    /// Changing metadata.
    Committing,
}

impl FoundWhile {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Verifying => "verifying",
            Self::Committing => "committing",
        }
    }
}

/// Something that a person should know of.
#[derive(Clone, Copy, Debug)]
pub enum StoreEvent<'a> {
    /// A record or a block failed its check, or is not there.
    Damage {
        /// `bucket/key`, a bucket, or a slice: as much as is known.
        object: &'a str,
        /// The version, where it is known.
        version: Option<VersionName>,
        /// What of it: `block 3`, the metadata.
        what: &'a str,
        /// When it was found.
        found_while: FoundWhile,
    },
    /// The device failed to read a payload.
    ReadFailed {
        /// `bucket/key`.
        object: &'a str,
        /// The version.
        version: VersionName,
        /// Volume, place and the system's answer.
        what: &'a str,
    },
    /// A flush failed: the volume takes no more writes until the store is opened again.
    VolumeReadOnly {
        /// The volume's file.
        path: &'a str,
    },
    /// Metadata could not be made durable: what is named takes no more changes until the store is opened again.
    ChangesStopped {
        /// What, and why.
        reason: &'a str,
    },
}

/// Is told of every event. Called on executors and on the store's own threads: it must not block.
pub trait StoreObserver: Send + Sync {
    /// An event has happened.
    fn happened(&self, event: &StoreEvent<'_>);
}

/// Where the parts of a store report.
#[derive(Default)]
pub(crate) struct Events {
    observer: OnceLock<Box<dyn StoreObserver>>,
    damage: AtomicU64,
}

impl Events {
    /// Sets who is told; the first one stays.
    pub(crate) fn set_observer(&self, observer: Box<dyn StoreObserver>) {
        let _ = self.observer.set(observer);
    }

    /// Findings of damage since the start.
    pub(crate) fn damage_count(&self) -> u64 {
        self.damage.load(Ordering::Relaxed)
    }

    /// Logs an event, counts it, and tells the observer.
    pub(crate) fn report(&self, event: &StoreEvent<'_>) {
        match *event {
            StoreEvent::Damage { object, version, what, found_while } => {
                self.damage.fetch_add(1, Ordering::Relaxed);
                let (version, found_while) = (version.map(tracing::field::display), found_while.name());
                tracing::error!(target: "service::engine", object, version, what, found_while, "stored data failed its check");
            }
            StoreEvent::ReadFailed { object, version, what } => {
                tracing::error!(target: "service::engine", object, %version, what, "payload read failed");
            }
            StoreEvent::VolumeReadOnly { path } => {
                tracing::error!(target: "service::engine", path, "the volume is read-only until the service is started again");
            }
            StoreEvent::ChangesStopped { reason } => {
                tracing::error!(target: "service::engine", reason, "no more changes are taken until the service is started again");
            }
        }
        if let Some(observer) = self.observer.get() {
            observer.happened(event);
        }
    }
}
