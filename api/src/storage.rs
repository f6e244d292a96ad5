//! The store: space, inspection, repair, compaction, upgrade.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{BucketName, Time, text};

text! {
    /// The state of the disk's free space.
    DiskState("enum" = ["ok", "low", "refusing"]);
    /// The state of writes.
    WriteState("enum" = ["accepted", "refused"]);
    /// The state of a compaction.
    CompactionState("enum" = ["none", "running", "done", "failed"]);
    /// The state of a backup. `copying`: the metadata are being copied. `held`: the data folder can be copied. `released`: a
    /// client ended it, and everything was kept until then. `lost`: it ended by itself.
    BackupState("enum" = ["none", "copying", "held", "released", "lost"]);
}

/// Capacity and available bytes.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct StorageStatus {
    pub capacity_bytes: u64,
    pub available_bytes: u64,
    /// Bytes of unfinished uploads.
    pub temporary_upload_bytes: u64,
    pub disk_state: DiskState,
    pub writes: WriteState,
}

/// The storage usage of one bucket.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct BucketStorage {
    pub bucket: BucketName,
    pub objects: u64,
    pub versions: u64,
    pub logical_bytes: u64,
    pub physical_bytes: u64,
}

/// The storage usage of the store and of each bucket.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct StorageUsage {
    pub buckets: u64,
    pub objects: u64,
    pub versions: u64,
    pub delete_markers: u64,
    pub multipart_uploads: u64,
    pub logical_bytes: u64,
    pub physical_bytes: u64,
    pub by_bucket: Vec<BucketStorage>,
}

/// Something that an inspection found wrong.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_id: Option<String>,
    pub detail: String,
}

/// The result of an inspection.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Inspection {
    /// False: the limit on entries ended it.
    pub complete: bool,
    pub entries_examined: u64,
    pub objects: u64,
    pub versions: u64,
    pub delete_markers: u64,
    pub multipart_uploads: u64,
    pub parts: u64,
    pub logical_bytes: u64,
    pub physical_bytes: u64,
    pub orphaned_payloads: u64,
    pub orphaned_bytes: u64,
    pub findings: Vec<Finding>,
    pub findings_omitted: u64,
}

/// Options of a repair. All members are optional.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepairStorage {
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub maximum_entries: Option<u64>,
    /// Only reports what would be freed.
    #[schemars(extend("default" = true))]
    pub dry_run: Option<bool>,
}

/// A slice that was not repaired.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RefusedSlice {
    pub slice: u16,
    pub reason: String,
}

/// The result of a repair.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Repair {
    pub dry_run: bool,
    pub complete: bool,
    pub entries_examined: u64,
    pub orphaned_payloads: u64,
    pub orphaned_bytes: u64,
    pub removed_payloads: u64,
    pub removed_bytes: u64,
    pub refused: Vec<RefusedSlice>,
}

/// Options of an upgrade. All members are optional.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpgradeStorage {
    /// Only makes the trial, and reports what the upgrade would change.
    #[schemars(extend("default" = false))]
    pub dry_run: Option<bool>,
}

/// A format version, with what it adds.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct FormatChange {
    pub format_version: u32,
    pub adds: String,
}

/// The result of an upgrade, or of its trial.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct StorageUpgrade {
    pub dry_run: bool,
    pub format_version_before: u32,
    /// The version that the store has now.
    pub format_version: u32,
    /// The version that an upgrade by this program leads to.
    pub format_version_latest: u32,
    /// Records that the trial has read.
    pub entries_examined: u64,
    /// The additions of the upgrade. Empty if the store has the latest version already.
    pub changes: Vec<FormatChange>,
}

/// The running compaction, or the last one.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Compaction {
    pub state: CompactionState,
    pub started_at: Option<Time>,
    pub finished_at: Option<Time>,
    pub environments: u32,
    pub environments_done: u32,
    pub copied_bytes: u64,
    pub expected_bytes: u64,
    pub metadata_bytes_before: u64,
    pub metadata_bytes_after: u64,
    pub records_verified: u64,
    pub volume_bytes_freed: u64,
    pub write_pause_milliseconds: u64,
    /// The reason why it failed.
    pub reason: Option<String>,
}

/// The time limits of a backup.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginBackup {
    /// The backup ends by itself after so many seconds.
    #[schemars(range(min = 1, max = 604_800), extend("default" = 7200))]
    pub timeout_seconds: Option<u64>,
    /// The backup ends by itself when nobody has asked for it by its id for so many seconds. Without it, the backup needs no
    /// client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub lease_seconds: Option<u64>,
}

/// The backup in progress, or the last one since the service was started. `held`, `since`, `ends_at` and `by` are what a script
/// asks before it copies; the others tell everything.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Backup {
    pub state: BackupState,
    /// Whether the store can be copied now: the state is `held`.
    pub held: bool,
    /// The start of the backup in progress.
    pub since: Option<Time>,
    /// The time when the backup in progress ends by itself.
    pub ends_at: Option<Time>,
    /// The principal that began the backup in progress.
    pub by: Option<String>,
    /// None if there was no backup.
    pub id: Option<String>,
    pub begun_at: Option<Time>,
    /// The time when the copy of the metadata was complete.
    pub held_at: Option<Time>,
    /// The time when it ends by itself.
    pub expires_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// The reason why it ended by itself.
    pub reason: Option<String>,
    pub copied_bytes: u64,
    pub expected_bytes: u64,
    /// Bytes of removed objects that are kept for it.
    pub held_bytes: u64,
    /// The data folder on the host of the server.
    pub data_dir: Option<String>,
    /// The folder with the copy of the metadata, on the same host.
    pub backup_dir: Option<String>,
}
