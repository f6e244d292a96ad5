//! The status of the lifecycle worker: finished and planned work.

use crate::types::lifecycle::{RuleId, VersionRole};
use cairn_model::{Timestamp, VersionName};

/// The counts of a rule since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// Versions and uploads that were due, and examined.
    pub examined: u64,
    /// Current objects that expired: removed, or hidden by a delete marker.
    pub expired_objects: u64,
    /// Delete markers that were written for them.
    pub delete_markers_written: u64,
    /// Non-current versions that were removed.
    pub noncurrent_versions_removed: u64,
    /// Delete markers without versions that were removed.
    pub delete_markers_removed: u64,
    /// Versions that were skipped because they are locked; once for each run.
    pub skipped_locked: u64,
    /// Versions and uploads that could not be removed.
    pub failed: u64,
    /// Bytes of the versions that were removed, and of the parts of the uploads that were aborted.
    pub bytes_freed: u64,
    /// Unfinished uploads that were aborted.
    pub multipart_uploads_aborted: u64,
}

impl RuleCounts {
    /// Number of counters.
    pub(crate) const COUNTERS: usize = 9;

    /// Returns the counters in the order of the record.
    pub(crate) const fn counters(&self) -> [u64; Self::COUNTERS] {
        [
            self.examined,
            self.expired_objects,
            self.delete_markers_written,
            self.noncurrent_versions_removed,
            self.delete_markers_removed,
            self.skipped_locked,
            self.failed,
            self.bytes_freed,
            self.multipart_uploads_aborted,
        ]
    }

    /// Returns the counts with these counters, in the order of the record.
    pub(crate) const fn of_counters(counters: [u64; Self::COUNTERS]) -> Self {
        let [
            examined,
            expired_objects,
            delete_markers_written,
            noncurrent_versions_removed,
            delete_markers_removed,
            skipped_locked,
            failed,
            bytes_freed,
            multipart_uploads_aborted,
        ] = counters;
        Self {
            examined,
            expired_objects,
            delete_markers_written,
            noncurrent_versions_removed,
            delete_markers_removed,
            skipped_locked,
            failed,
            bytes_freed,
            multipart_uploads_aborted,
        }
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        let mut counters = self.counters();
        for (counter, more) in counters.iter_mut().zip(other.counters()) {
            *counter = counter.saturating_add(more);
        }
        *self = Self::of_counters(counters);
    }
}

/// The state of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleStatus {
    /// The start of the last run that considered the rule.
    pub last_run_started_at: Option<Timestamp>,
    /// The end of that run.
    pub last_run_finished_at: Option<Timestamp>,
    /// The time when something is due next. `None` if nothing is, or if that is not known.
    pub next_due_at: Option<Timestamp>,
    /// The counts of the rule.
    pub counts: RuleCounts,
    /// The reason why the last run did not do everything.
    pub last_error: Option<String>,
}

/// The state of the lifecycle worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LifecycleStatus {
    /// Whether a worker runs.
    pub is_enabled: bool,
    /// The reason why nothing is removed at the moment.
    pub paused: Option<String>,
    /// The start of the last run.
    pub last_run_started_at: Option<Timestamp>,
    /// The end of the last run. `None` while it runs.
    pub last_run_finished_at: Option<Timestamp>,
    /// The start of the next run.
    pub next_run_at: Option<Timestamp>,
    /// Due time of the oldest version that is due and still there.
    pub oldest_due_at: Option<Timestamp>,
    /// The reason why the last run did not do everything.
    pub last_error: Option<String>,
    /// Parts of due indexes that are being built or removed: one for each bucket and slice.
    pub indexes_in_progress: u64,
    /// The counts of removals since the store was opened.
    pub counts: RuleCounts,
}

impl LifecycleStatus {
    /// Returns for how many seconds the oldest version that is due has been due.
    #[must_use]
    pub fn oldest_overdue_seconds(&self, now: Timestamp) -> u64 {
        self.oldest_due_at.map_or(0, |due| now.0.saturating_sub(due.0) / 1000)
    }
}

/// The planned action of a rule on a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedAction {
    /// Hide the current object with a delete marker.
    WriteDeleteMarker,
    /// Remove the current object.
    RemoveObject,
    /// Remove a non-current version.
    RemoveVersion,
    /// Remove a delete marker that is the key's only version.
    RemoveDeleteMarker,
}

/// A version that a rule would remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRemoval {
    /// The key.
    pub key: String,
    /// The version.
    pub version: VersionName,
    /// Bytes of its payload.
    pub size: u64,
    /// Since when it is due.
    pub due_at: Timestamp,
    /// The planned action.
    pub action: PlannedAction,
    /// The role of the version.
    pub role: VersionRole,
}

/// A preview of a rule: what it would do now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LifecyclePreview {
    /// Whether all versions and uploads were examined.
    pub is_complete: bool,
    /// Current objects that would expire.
    pub current_objects: u64,
    /// Bytes of their payloads.
    pub current_bytes: u64,
    /// Non-current versions that would be removed.
    pub noncurrent_versions: u64,
    /// Bytes of their payloads.
    pub noncurrent_bytes: u64,
    /// Delete markers without versions that would be removed.
    pub delete_markers: u64,
    /// Versions that are due but locked. They are not among the others.
    pub locked: u64,
    /// Unfinished uploads that would be aborted.
    pub multipart_uploads: u64,
    /// Bytes of their parts.
    pub multipart_bytes: u64,
    /// The time when something is due next.
    pub next_due_at: Option<Timestamp>,
    /// Some of the versions.
    pub sample: Vec<PlannedRemoval>,
}

/// The saved state of the lifecycle worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct SavedLifecycle {
    /// The clock was trusted at this time.
    pub(crate) trusted_time: Option<Timestamp>,
    /// The counts of rules, as totals. Rules that do not exist any more are left out.
    pub(crate) counts: Vec<(RuleId, RuleCounts)>,
}
