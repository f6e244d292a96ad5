//! `cairn storage`: shows space and usage, inspects, repairs, compacts and upgrades the store.

mod compact;
mod discard_log;
mod upgrade;

use cairn_api::{
    BucketStorage, Finding, Inspection, RefusedSlice, RepairStorage, StorageStatus, StorageUsage,
};

use crate::client::{Request, read};
use crate::commands::macros::{command, noun};
use crate::failure::Outcome;
use crate::output::table::{Columns, bytes, record, table, text};
use crate::quantity::{Whole, counted};
use crate::terminal::plain;
use compact::Compact;
use discard_log::DiscardLog;
use upgrade::Upgrade;

noun! {
    /// Show, inspect, repair, compact and upgrade the store.
    struct Storage("storage"): StorageCommand { Status, Usage, Inspect, Repair, Compact, Upgrade, DiscardLog }
}

command! {
    /// Show the capacity and the free space of the store's file system.
    struct Status("status") {}
}

command! {
    /// Show what is stored, in total and in each bucket.
    struct Usage("usage") {}
}

command! {
    /// Check the consistency of a running server's metadata. The exit code is 0 if everything was checked and no problem was
    /// found.
    struct Inspect("inspect") {
        /// maximum number of object records to examine (default: 100000)
        #[argh(option, arg_name = "n")]
        maximum_entries: Option<Entries>,
    }
}

command! {
    /// Free the space of a running server that no record uses. Without --apply, only show what would be freed.
    struct Repair("repair") {
        /// free the space
        #[argh(switch)]
        apply: bool,
        /// maximum number of object records to examine (default: 100000)
        #[argh(option, arg_name = "n")]
        maximum_entries: Option<Entries>,
    }
}

/// A number of object records.
type Entries = Whole<1, { cairn_engine::limits::INSPECTION_ENTRIES_MAX }>;

const STATUS: Columns<StorageStatus> = &[
    ("capacity", |status| bytes(&status.capacity_bytes)),
    ("available", |status| bytes(&status.available_bytes)),
    ("uploads in progress", |status| bytes(&status.temporary_upload_bytes)),
    ("disk space", |status| text(&status.disk_state)),
    ("writes", |status| text(&status.writes)),
];

const TOTALS: Columns<StorageUsage> = &[
    ("buckets", |usage| text(&usage.buckets)),
    ("objects", |usage| text(&usage.objects)),
    ("versions", |usage| text(&usage.versions)),
    ("delete markers", |usage| text(&usage.delete_markers)),
    ("unfinished uploads", |usage| text(&usage.multipart_uploads)),
    ("logical size", |usage| bytes(&usage.logical_bytes)),
    ("physical size", |usage| bytes(&usage.physical_bytes)),
];

const BY_BUCKET: Columns<BucketStorage> = &[
    ("bucket", |usage| text(&usage.bucket)),
    ("objects", |usage| text(&usage.objects)),
    ("versions", |usage| text(&usage.versions)),
    ("logical size", |usage| bytes(&usage.logical_bytes)),
    ("physical size", |usage| bytes(&usage.physical_bytes)),
];

impl Status {
    fn run(&self) -> Outcome {
        self.client()?.show(&Request::get("/api/v1/storage/status"), STATUS)
    }
}

impl Usage {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        client.print_as(&client.call(&Request::get("/api/v1/storage/usage"))?, |usage: &StorageUsage| {
            record(TOTALS, usage) + "\n" + &table(BY_BUCKET, &usage.by_bucket)
        })
    }
}

impl Inspect {
    /// Prints the findings. Fails if there are any, or if not everything was examined.
    fn run(&self) -> Outcome {
        let entries = self
            .maximum_entries
            .map_or(String::new(), |Whole(entries)| format!("?maximum_entries={entries}"));
        let client = self.client()?;
        let body = client.call(&Request::get(format!("/api/v1/storage/inspect{entries}")).long_running())?;
        let found: Inspection = read(&body)?;
        client.print(&body, || inspection_text(&found))?;
        match count(&found) {
            0 if found.complete => Ok(()),
            0 => {
                Err("not everything was examined\n  raise --maximum-entries: versions, delete markers, uploads and parts count, too"
                    .into())
            }
            count => {
                let findings = counted(count, "finding");
                Err(format!("{findings}\n  docs/management-api.md describes each kind").into())
            }
        }
    }
}

impl Repair {
    /// Prints what was freed, or would be. Fails if slices were skipped or not everything was examined.
    fn run(&self) -> Outcome {
        let request = RepairStorage {
            maximum_entries: self.maximum_entries.map(|Whole(entries)| entries),
            dry_run: Some(!self.apply),
        };
        let client = self.client()?;
        let body = client.call(&Request::post("/api/v1/storage/repair").json(&request).long_running())?;
        let repair: cairn_api::Repair = read(&body)?;
        client.print(&body, || repair_text(&repair))?;
        if repair.complete {
            Ok(())
        } else {
            Err("not everything was examined, or slices were skipped".into())
        }
    }
}

/// Returns the number of findings, with those that the server left out.
fn count(found: &Inspection) -> u64 {
    found.findings_omitted.saturating_add(found.findings.len() as u64)
}

const INSPECTED: Columns<Inspection> = &[
    ("complete", |body| text(&body.complete)),
    ("entries examined", |body| text(&body.entries_examined)),
    ("objects", |body| text(&body.objects)),
    ("versions", |body| text(&body.versions)),
    ("delete markers", |body| text(&body.delete_markers)),
    ("unfinished uploads", |body| text(&body.multipart_uploads)),
    ("parts", |body| text(&body.parts)),
    ("logical size", |body| bytes(&body.logical_bytes)),
    ("physical size", |body| bytes(&body.physical_bytes)),
    ("orphaned payloads", |body| text(&body.orphaned_payloads)),
    ("orphaned size", |body| bytes(&body.orphaned_bytes)),
    ("findings", |body| count(body).to_string()),
];

fn inspection_text(found: &Inspection) -> String {
    let mut text = record(INSPECTED, found);
    for Finding { kind, bucket, key, version_id, detail } in &found.findings {
        let place: Vec<&str> = [bucket, key].into_iter().flatten().map(String::as_str).collect();
        let place = if place.is_empty() { String::new() } else { format!(" {}", place.join("/")) };
        let version = version_id.as_ref().map_or_else(String::new, |id| format!(" version {id}"));
        text += &format!("  {}\n", plain(&format!("{kind}{place}{version}: {detail}")));
    }
    if found.findings_omitted > 0 {
        text += &format!("  and {} more\n", found.findings_omitted);
    }
    text
}

const REPAIRED: Columns<cairn_api::Repair> = &[
    ("mode", |body| {
        let mode = if body.dry_run { "dry run: nothing was changed; --apply frees" } else { "applied" };
        mode.to_owned()
    }),
    ("complete", |body| text(&body.complete)),
    ("entries examined", |body| text(&body.entries_examined)),
    ("orphaned payloads", |body| text(&body.orphaned_payloads)),
    ("orphaned size", |body| bytes(&body.orphaned_bytes)),
    ("removed payloads", |body| text(&body.removed_payloads)),
    ("removed size", |body| bytes(&body.removed_bytes)),
];

fn repair_text(repair: &cairn_api::Repair) -> String {
    let mut text = record(REPAIRED, repair);
    for RefusedSlice { slice, reason } in &repair.refused {
        text += &format!("slice {slice} was skipped: {}\n", plain(reason));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn findings_are_listed_without_control_characters() {
        let findings = json!([
            {"kind": "wrong_slice", "bucket": "b", "key": "k\u{1b}[2J", "version_id": "7", "detail": "older"},
            {"kind": "orphaned_space", "detail": "slice 0"},
        ]);
        let text = inspection_text(
            &read(&json!({
                "complete": true, "entries_examined": 1, "objects": 1, "versions": 1, "delete_markers": 0, "multipart_uploads": 0,
                "parts": 0, "logical_bytes": 5, "physical_bytes": 5, "orphaned_payloads": 0, "orphaned_bytes": 0,
                "findings": findings, "findings_omitted": 3,
            }))
            .expect("an inspection"),
        );
        let expected = "findings:           5\n  wrong_slice b/k[2J version 7: older\n  orphaned_space: slice 0\n  and 3 more\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn a_repair_shows_its_mode_and_skipped_slices() {
        let refused = json!([{"slice": 1, "reason": "damage"}]);
        let body = |is_dry: bool| {
            let body = json!({
                "dry_run": is_dry, "complete": false, "entries_examined": 1, "orphaned_payloads": 0, "orphaned_bytes": 0,
                "removed_payloads": 0, "removed_bytes": 0, "refused": refused,
            });
            repair_text(&read(&body).expect("a repair"))
        };
        let text = body(true);
        assert!(
            text.starts_with("mode:              dry run") && text.ends_with("slice 1 was skipped: damage\n"),
            "{text}"
        );
        assert!(body(false).starts_with("mode:              applied\n"));
    }
}
