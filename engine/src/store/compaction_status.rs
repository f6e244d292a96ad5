//! The status of the compaction of a store.

use cairn_model::Timestamp;
use cairn_sync::{Mutex, MutexGuard};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Progress and result of the last compaction since the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionStatus {
    /// The start of the compaction. `None` if there was none.
    pub started_at: Option<Timestamp>,
    /// The end of the compaction. `None` while it runs.
    pub finished_at: Option<Timestamp>,
    /// Environments to compact.
    pub environments: u32,
    /// Environments that are done, compacted or with little to gain.
    pub environments_done: u32,
    /// Bytes of records copied in the current environment, and the approximate number to copy.
    pub copied_bytes: u64,
    /// See `copied_bytes`.
    pub expected_bytes: u64,
    /// Bytes of the data files of the environments that are done, before.
    pub bytes_before: u64,
    /// Bytes of the same files now.
    pub bytes_after: u64,
    /// Records of those environments.
    pub records: u64,
    /// Bytes by which empty volumes were truncated.
    pub volume_bytes_freed: u64,
    /// The longest time for which the writers of an environment had to wait for the replacement of its file.
    pub pause_max: Duration,
    /// The reason why it ended early. Environments that were done before stay compact.
    pub error: Option<String>,
}

/// The compaction of a store.
#[derive(Debug, Default)]
pub(crate) struct Compactions {
    status: Mutex<CompactionStatus>,
    pub(super) is_running: AtomicBool,
}

impl Compactions {
    pub(super) fn lock(&self) -> MutexGuard<'_, CompactionStatus> {
        self.status.lock()
    }
}
