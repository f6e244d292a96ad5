//! The status of a hold.

use cairn_model::{Timestamp, time_id};
use cairn_sync::{Condvar, Mutex, MutexGuard};
use std::path::PathBuf;
use std::time::{Duration, Instant};

time_id! {
    /// The id of a hold.
    HoldId
}

/// A client's request to begin a hold.
#[derive(Clone, Debug)]
pub struct HoldRequest {
    /// The hold ends by itself after this time.
    pub timeout: Duration,
    /// The hold ends by itself when its client has not renewed it for this time. `None`: it needs no client.
    pub lease: Option<Duration>,
    /// The principal that requests the hold.
    pub principal: String,
}

/// The lease of a hold: how long it lasts without its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) duration: Duration,
    pub(super) renewed_at: Instant,
}

cairn_model::named_enum! {
    /// The state of a hold. Named as in the management API.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum HoldState {
        /// There was none since the store was opened.
        #[default]
        None => "none",
        /// The metadata are being copied.
        Copying => "copying",
        /// The copy is complete, and the volumes can be copied.
        Held => "held",
        /// It was ended by a client, and everything was kept until then.
        Released => "released",
        /// It ended by itself. What was copied meanwhile is no backup.
        Lost => "lost",
    }
}

impl HoldState {
    /// Returns whether the hold is in progress.
    #[must_use]
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Copying | Self::Held)
    }
}

/// The last hold since the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HoldStatus {
    /// The state of the hold.
    pub state: HoldState,
    /// Empty if there was none.
    pub id: String,
    /// The principal that began it.
    pub principal: String,
    /// The start of the hold.
    pub begun_at: Option<Timestamp>,
    /// The time when the copy of the metadata was complete. The copy shows a moment between `begun_at` and this.
    pub held_at: Option<Timestamp>,
    /// The time when it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// The time when it ended.
    pub ended_at: Option<Timestamp>,
    /// The reason why it ended by itself.
    pub reason: Option<String>,
    /// Bytes of metadata that are copied.
    pub copied_bytes: u64,
    /// Bytes of metadata to copy.
    pub expected_bytes: u64,
    /// Bytes of removed payloads that it keeps.
    pub held_bytes: u64,
    /// The data folder.
    pub data_dir: PathBuf,
    /// The folder with the copy of the metadata.
    pub backup_dir: PathBuf,
    pub(super) lease: Option<Lease>,
}

/// The hold of a store.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    status: Mutex<HoldStatus>,
    /// Wakes the thread of the hold.
    pub(super) changed: Condvar,
    /// Locked by the thread of a hold until it has cleared everything. The next one waits for that.
    pub(super) turn: Mutex<()>,
}

impl Holds {
    pub(super) fn lock(&self) -> MutexGuard<'_, HoldStatus> {
        self.status.lock()
    }

    /// Returns the status, if the hold `id` is in progress.
    pub(super) fn lock_active(&self, id: &str) -> Option<MutexGuard<'_, HoldStatus>> {
        Some(self.lock()).filter(|status| status.id == id && status.state.is_active())
    }

    /// Wakes the thread, so that it finds that the store is closing.
    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }
}
