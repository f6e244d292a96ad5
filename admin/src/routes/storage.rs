//! Routes of capacity, inspection, compaction and backup.

use cairn_api::*;

use super::Route;
use super::row::*;
use crate::handlers::{backup, compaction, metrics, storage};

pub(super) static ROUTES: &[Route] = &[
    get("/api/v1/storage/status", ALL, "get_storage_status")
        .summary("Shows capacity and available bytes.")
        .answers(&[ok::<StorageStatus>()], &[])
        .handler(boxed!(storage::status)),
    get("/api/v1/storage/usage", ALL, "get_storage_usage")
        .summary("Shows the usage of each bucket and of the store.")
        .answers(&[ok::<StorageUsage>()], &[])
        .handler(boxed!(storage::usage)),
    get("/api/v1/storage/history", ALL, "get_storage_history")
        .summary("Shows the space of each bucket on each of the last 90 days.")
        .answers(&[ok::<StorageDays>()], &[])
        .handler(boxed!(metrics::days)),
    get("/api/v1/storage/inspect", ALL, "inspect_storage")
        .summary("Checks the consistency of the store's metadata.")
        .query(&[optional::<MaximumEntries>("maximum_entries")])
        .answers(&[ok::<Inspection>()], &[])
        .handler(boxed!(storage::inspect)),
    post("/api/v1/storage/repair", STORAGE, "repair_storage")
        .summary("Frees space that no record owns. By default only reports what it would free.")
        .body(optional_json::<RepairStorage>())
        .answers(&[ok::<Repair>()], &[])
        .handler(boxed!(storage::repair)),
    post("/api/v1/storage/upgrade", STORAGE, "upgrade_storage")
        .summary(
            "Raises the format version of the store to the latest, after an inspection. There is \
             no way back.",
        )
        .body(optional_json::<UpgradeStorage>())
        .answers(&[ok::<StorageUpgrade>()], &[STORE_STATE])
        .handler(boxed!(storage::upgrade)),
    get("/api/v1/storage/compact", ALL, "get_compaction")
        .summary("Shows the running compaction, or the result of the last one.")
        .answers(&[ok::<Compaction>()], &[])
        .handler(boxed!(compaction::status)),
    post("/api/v1/storage/compact", STORAGE, "compact_storage")
        .summary("Begins to return free space in metadata and empty volumes to the file system.")
        .answers(&[accepted::<Compaction>()], &[])
        .handler(boxed!(compaction::begin)),
    get("/api/v1/storage/backup", ALL, "get_backup")
        .summary("Shows the backup in progress, or the last one.")
        .query(&[optional::<String>("id")])
        .answers(&[ok::<Backup>()], &[])
        .handler(boxed!(backup::status)),
    post("/api/v1/storage/backup", STORAGE, "begin_backup")
        .summary(
            "Copies the metadata of this moment, and keeps what they refer to until the backup \
             ends.",
        )
        .body(optional_json::<BeginBackup>())
        .answers(&[accepted::<Backup>()], &[])
        .handler(boxed!(backup::begin)),
    delete("/api/v1/storage/backup", STORAGE, "end_backup")
        .summary("Ends the backup in progress, and says whether everything was kept until now.")
        .query(&[optional::<String>("id")])
        .answers(&[ok::<Backup>()], &[(404, "BACKUP_NOT_FOUND")])
        .handler(boxed!(backup::end)),
];
