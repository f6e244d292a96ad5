//! The storage routes: status, usage, inspection, repair and upgrade.
//!
//! Inspections, repairs and upgrades run on a thread of the store, one at a time. They end early when the client disconnects.

use cairn_api::{
    BucketStorage, Finding, FormatChange, Inspection, RefusedSlice, Repair, RepairStorage, StorageStatus,
    StorageUpgrade, StorageUsage, UpgradeStorage,
};
use cairn_engine::limits::{INSPECTION_ENTRIES_DEFAULT, INSPECTION_ENTRIES_MAX};
use cairn_engine::{FORMAT_VERSION, RepairMode, format_changes};
use cairn_model::u64_of;
use cairn_sharing::LinkFinding;
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

/// The kind of findings about shares and embeds.
const LINK_RECORD: &str = "link_record";

/// `GET /api/v1/storage/status`.
pub(crate) async fn status(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let store = call.store()?;
    let (usage, disk_state) = (store.usage(), store.disk_state());
    let status = StorageStatus {
        capacity_bytes: usage.capacity_bytes,
        available_bytes: usage.available_bytes,
        temporary_upload_bytes: usage.reserved_bytes + usage.held.part_bytes,
        disk_state: disk_state.name().into(),
        writes: if store.refuses_writes() { "refused" } else { "accepted" }.into(),
    };
    Reply::json(StatusCode::OK, &status)
}

/// `GET /api/v1/storage/usage`.
pub(crate) async fn usage(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let store = call.store()?;
    let bucket_usage = |bucket: &cairn_engine::Bucket| {
        let usage = bucket.usage();
        BucketStorage {
            bucket: bucket.name.to_string().into(),
            objects: usage.objects,
            versions: usage.versions,
            logical_bytes: usage.bytes,
            physical_bytes: usage.physical_bytes(),
        }
    };
    let by_bucket: Vec<_> = store.buckets().iter().map(|bucket| bucket_usage(bucket)).collect();
    let held = store.usage().held;
    let usage = StorageUsage {
        buckets: u64_of(by_bucket.len()),
        objects: held.objects,
        versions: held.versions,
        delete_markers: held.delete_markers,
        multipart_uploads: held.uploads,
        logical_bytes: held.bytes,
        physical_bytes: held.physical_bytes(),
        by_bucket,
    };
    Reply::json(StatusCode::OK, &usage)
}

fn finding_body(finding: cairn_engine::Finding) -> Finding {
    let version_id = finding.version.map(|version| version.to_string());
    let cairn_engine::Finding { kind, bucket, key, detail, .. } = finding;
    Finding { kind: kind.name().to_owned(), bucket, key, version_id, detail }
}

/// `GET /api/v1/storage/inspect[?maximum_entries=]`.
pub(crate) async fn inspect(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    const ENTRIES: &str = "maximum_entries";
    let entries = call.parameters.number(ENTRIES, 1..=INSPECTION_ENTRIES_MAX)?;
    let begun = call.store()?.begin_inspection(entries.unwrap_or(INSPECTION_ENTRIES_DEFAULT))?;
    let found = call.wait_for_read(async { begun.await.map_err(AdminError::from) }).await?;
    let findings_of_links = inspect_links(&call).await?;
    let findings = found.findings.into_iter().map(finding_body).chain(findings_of_links);
    let reply = Inspection {
        complete: found.complete,
        entries_examined: found.entries_examined,
        objects: found.usage.objects,
        versions: found.usage.versions,
        delete_markers: found.usage.delete_markers,
        multipart_uploads: found.usage.uploads,
        parts: found.parts,
        logical_bytes: found.usage.bytes,
        physical_bytes: found.usage.physical_bytes(),
        orphaned_payloads: found.orphaned_payloads,
        orphaned_bytes: found.orphaned_bytes,
        findings: findings.collect(),
        findings_omitted: found.findings_omitted,
    };
    Reply::json(StatusCode::OK, &reply)
}

/// Inspects the records of shares and embeds. Returns what is wrong with them.
async fn inspect_links(call: &Call<'_, '_>) -> Result<Vec<Finding>, AdminError> {
    let sharing = call.sharing()?;
    let inspection = async { sharing.inspect().await.map_err(AdminError::from) };
    let (_, findings) = call.wait_for_read(inspection).await?;
    let finding = |LinkFinding { bucket, key, detail }| Finding {
        kind: LINK_RECORD.to_owned(),
        bucket,
        key,
        version_id: None,
        detail,
    };
    Ok(findings.into_iter().map(finding).collect())
}

/// `POST /api/v1/storage/repair`.
pub(crate) async fn repair(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let request: RepairStorage = call.optional_json().await?;
    let dry_run = request.dry_run.unwrap_or(true);
    let mode = if dry_run { RepairMode::DryRun } else { RepairMode::Apply };
    let begun = call.store()?.begin_repair(entries_max(request.maximum_entries)?, mode)?;
    let done = call.until_disconnect(async { begun.await.map_err(AdminError::from) }).await?;
    let reply = Repair {
        dry_run,
        complete: done.complete,
        entries_examined: done.entries_examined,
        orphaned_payloads: done.orphaned_payloads,
        orphaned_bytes: done.orphaned_bytes,
        removed_payloads: done.removed_payloads,
        removed_bytes: done.removed_bytes,
        refused: done.refused.into_iter().map(|(slice, reason)| RefusedSlice { slice, reason }).collect(),
    };
    let removed = format!("{} payloads, {} bytes removed", reply.removed_payloads, reply.removed_bytes);
    let answer = Reply::json(StatusCode::OK, &reply)?.detail(removed);
    Ok(if dry_run { answer.without_change() } else { answer })
}

/// `POST /api/v1/storage/upgrade`: raises the format version of the store.
pub(crate) async fn upgrade(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let request: UpgradeStorage = call.optional_json().await?;
    let dry_run = request.dry_run.unwrap_or(false);
    let begun = call.store()?.begin_upgrade(!dry_run)?;
    let done = call.until_disconnect(async { begun.await.map_err(AdminError::from) }).await?;
    let added = |(version, what): (u32, &str)| FormatChange { format_version: version, adds: what.into() };
    let reply = StorageUpgrade {
        dry_run,
        format_version_before: done.from,
        format_version: done.to,
        format_version_latest: FORMAT_VERSION,
        entries_examined: done.entries_examined,
        changes: format_changes(done.from).map(added).collect(),
    };
    let answer = Reply::json(StatusCode::OK, &reply)?
        .detail(format!("format version {} before, {} now", done.from, done.to));
    Ok(if done.from == done.to { answer.without_change() } else { answer })
}

fn entries_max(sent: Option<u64>) -> Result<u64, AdminError> {
    let entries = sent.unwrap_or(INSPECTION_ENTRIES_DEFAULT);
    if (1..=INSPECTION_ENTRIES_MAX).contains(&entries) {
        Ok(entries)
    } else {
        Err(AdminError::invalid(format!(
            "maximum_entries must be an integer from 1 to {INSPECTION_ENTRIES_MAX}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_entries_is_limited() {
        assert_eq!((entries_max(None), entries_max(Some(1))), (Ok(100_000), Ok(1)));
        assert!(entries_max(Some(0)).is_err() && entries_max(Some(INSPECTION_ENTRIES_MAX + 1)).is_err());
    }

    #[test]
    fn misspelt_or_invalid_repair_field_is_refused() {
        assert!(serde_json::from_str::<RepairStorage>(r#"{"dry_run": false, "maximum_entries": 5}"#).is_ok());
        for wrong in [r#"{"dryrun": false}"#, r#"{"dry_run": "false"}"#, r#"{"maximum_entries": -1}"#, "[]x"]
        {
            assert!(serde_json::from_str::<RepairStorage>(wrong).is_err(), "{wrong}");
        }
    }
}
