//! `cairn storage`: shows space and usage, inspects, repairs and compacts the store.

mod compact;
mod discard_log;

use std::fmt::Write;

use serde_json::{Value, json};

use crate::client::{Request, rows};
use crate::commands::macros::{command, noun};
use crate::failure::Outcome;
use crate::output::table::{Columns, bytes, record, table, text};
use crate::quantity::{Whole, counted};
use crate::terminal::{plain, word};
use compact::Compact;
use discard_log::DiscardLog;

noun! {
    /// Show, inspect, repair and compact the store.
    struct Storage("storage"): StorageCommand { Status, Usage, Inspect, Repair, Compact, DiscardLog }
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
type Entries = Whole<1, 1_000_000_000>;

const STATUS: Columns = &[
    ("capacity", |status| bytes(&status["capacity_bytes"])),
    ("available", |status| bytes(&status["available_bytes"])),
    ("uploads in progress", |status| bytes(&status["temporary_upload_bytes"])),
    ("disk space", |status| text(&status["disk_state"])),
    ("writes", |status| text(&status["writes"])),
];

const TOTALS: Columns = &[
    ("buckets", |usage| text(&usage["buckets"])),
    ("objects", |usage| text(&usage["objects"])),
    ("versions", |usage| text(&usage["versions"])),
    ("delete markers", |usage| text(&usage["delete_markers"])),
    ("unfinished uploads", |usage| text(&usage["multipart_uploads"])),
    ("logical size", |usage| bytes(&usage["logical_bytes"])),
    ("physical size", |usage| bytes(&usage["physical_bytes"])),
];

const BY_BUCKET: Columns = &[
    ("bucket", |usage| text(&usage["bucket"])),
    ("objects", |usage| text(&usage["objects"])),
    ("versions", |usage| text(&usage["versions"])),
    ("logical size", |usage| bytes(&usage["logical_bytes"])),
    ("physical size", |usage| bytes(&usage["physical_bytes"])),
];

impl Status {
    fn run(&self) -> Outcome {
        self.client()?.show(&Request::get("/api/v1/storage/status"), STATUS)
    }
}

impl Usage {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let usage = client.call(&Request::get("/api/v1/storage/usage"))?;
        let buckets = rows(&usage, "by_bucket")?;
        client.print(&usage, || record(TOTALS, &usage) + "\n" + &table(BY_BUCKET, buckets))
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
        client.print(&body, || inspection_text(&body))?;
        let Some(complete) = body["complete"].as_bool() else {
            return Err("the response is not the result of an inspection".into());
        };
        let listed = rows(&body, "findings")?.len() as u64;
        match listed.saturating_add(body["findings_omitted"].as_u64().unwrap_or(0)) {
            0 if complete => Ok(()),
            0 => {
                Err("not everything was examined\n  set --maximum-entries to at least the number of stored objects"
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
        let mut request = json!({"dry_run": !self.apply});
        if let Some(Whole(entries)) = self.maximum_entries {
            request["maximum_entries"] = entries.into();
        }
        let client = self.client()?;
        let body = client.call(&Request::post("/api/v1/storage/repair").json(&request).long_running())?;
        client.print(&body, || repair_text(&body))?;
        match body["complete"].as_bool() {
            Some(true) => Ok(()),
            Some(false) => Err("not everything was examined, or slices were skipped".into()),
            None => Err("the response is not the result of a repair".into()),
        }
    }
}

const INSPECTED: Columns = &[
    ("complete", |body| text(&body["complete"])),
    ("entries examined", |body| text(&body["entries_examined"])),
    ("objects", |body| text(&body["objects"])),
    ("versions", |body| text(&body["versions"])),
    ("delete markers", |body| text(&body["delete_markers"])),
    ("unfinished uploads", |body| text(&body["multipart_uploads"])),
    ("parts", |body| text(&body["parts"])),
    ("logical size", |body| bytes(&body["logical_bytes"])),
    ("physical size", |body| bytes(&body["physical_bytes"])),
    ("orphaned payloads", |body| text(&body["orphaned_payloads"])),
    ("orphaned size", |body| bytes(&body["orphaned_bytes"])),
    ("findings", |body| {
        let listed = body["findings"].as_array().map_or(0, |findings| findings.len() as u64);
        (listed + body["findings_omitted"].as_u64().unwrap_or(0)).to_string()
    }),
];

fn inspection_text(body: &Value) -> String {
    let mut text = record(INSPECTED, body);
    let findings = body["findings"].as_array().map_or(&[][..], Vec::as_slice);
    let omitted = body["findings_omitted"].as_u64().unwrap_or(0);
    for finding in findings {
        // Writing to a string does not fail.
        let _ = write!(text, "  {}", word(&finding["kind"]));
        let (bucket, key) = (finding["bucket"].as_str(), finding["key"].as_str());
        let _ = match (bucket, key) {
            (Some(bucket), Some(key)) => write!(text, " {}", plain(&format!("{bucket}/{key}"))),
            (Some(one), None) | (None, Some(one)) => write!(text, " {}", plain(one)),
            (None, None) => Ok(()),
        };
        if !finding["version_id"].is_null() {
            let _ = write!(text, " version {}", word(&finding["version_id"]));
        }
        let _ = writeln!(text, ": {}", word(&finding["detail"]));
    }
    if omitted > 0 {
        let _ = writeln!(text, "  and {omitted} more");
    }
    text
}

const REPAIRED: Columns = &[
    ("mode", |body| {
        let mode =
            if body["dry_run"] == true { "dry run: nothing was changed; --apply frees" } else { "applied" };
        mode.to_owned()
    }),
    ("complete", |body| text(&body["complete"])),
    ("entries examined", |body| text(&body["entries_examined"])),
    ("orphaned payloads", |body| text(&body["orphaned_payloads"])),
    ("orphaned size", |body| bytes(&body["orphaned_bytes"])),
    ("removed payloads", |body| text(&body["removed_payloads"])),
    ("removed size", |body| bytes(&body["removed_bytes"])),
];

fn repair_text(body: &Value) -> String {
    let mut text = record(REPAIRED, body);
    for refused in body["refused"].as_array().into_iter().flatten() {
        let _ = writeln!(text, "slice {} was skipped: {}", word(&refused["slice"]), word(&refused["reason"]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_listed_without_control_characters() {
        let findings = json!([
            {"kind": "wrong_slice", "bucket": "b", "key": "k\u{1b}[2J", "version_id": "7", "detail": "older"},
            {"kind": "orphaned_space", "detail": "slice 0"},
        ]);
        let text = inspection_text(&json!({"complete": true, "findings": findings, "findings_omitted": 3}));
        let expected = "findings:           5\n  wrong_slice b/k[2J version 7: older\n  orphaned_space: slice 0\n  and 3 more\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn a_repair_shows_its_mode_and_skipped_slices() {
        let refused = json!([{"slice": 1, "reason": "damage"}]);
        let body = json!({"dry_run": true, "complete": false, "refused": refused});
        let text = repair_text(&body);
        assert!(
            text.starts_with("mode:              dry run") && text.ends_with("slice 1 was skipped: damage\n"),
            "{text}"
        );
        assert!(repair_text(&json!({"dry_run": false})).starts_with("mode:              applied\n"));
    }
}
