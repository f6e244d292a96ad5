//! `cairn storage`: space and what uses it, whether a running server's store agrees with itself, and what can be put
//! right.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::arguments::{command, noun};
use crate::client::{Request, rows};
use crate::compact::Compact;
use crate::failure::Outcome;
use crate::output::{plain, word};
use crate::table::{Columns, bytes, record, table, text};

noun! {
    /// Look after the store.
    struct Storage("storage"): StorageCommand { Status, Usage, Inspect, Repair, Compact }
}

command! {
    /// Show the space of the file system that the store is on.
    struct Status("status") {}
}

command! {
    /// Show what is stored, in all and in each bucket.
    struct Usage("usage") {}
}

command! {
    /// Have a server compare its metadata with itself. The exit code is 0 when everything was compared and nothing
    /// found.
    struct Inspect("inspect") {
        /// examine at most so many object records (default: 100000)
        #[argh(option, arg_name = "n")]
        maximum_entries: Option<u64>,
    }
}

command! {
    /// Have a server free space that no record owns. Without --apply it says what it would free.
    struct Repair("repair") {
        /// remove what is found
        #[argh(switch)]
        apply: bool,
        /// examine at most so many object records (default: 100000)
        #[argh(option, arg_name = "n")]
        maximum_entries: Option<u64>,
    }
}

const STATUS: Columns = &[
    ("capacity", |status| bytes(&status["capacity_bytes"])),
    ("available", |status| bytes(&status["available_bytes"])),
    ("uploads under way", |status| bytes(&status["temporary_upload_bytes"])),
];

const TOTALS: Columns = &[
    ("buckets", |usage| text(&usage["buckets"])),
    ("objects", |usage| text(&usage["objects"])),
    ("versions", |usage| text(&usage["versions"])),
    ("delete markers", |usage| text(&usage["delete_markers"])),
    ("multipart uploads", |usage| text(&usage["multipart_uploads"])),
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
        self.client().show(&Request::get("/api/v1/storage/status"), STATUS)
    }
}

impl Usage {
    fn run(&self) -> Outcome {
        let client = self.client();
        let usage = client.call(&Request::get("/api/v1/storage/usage"))?;
        let buckets = rows(&usage, "by_bucket")?;
        client.print(&usage, || record(TOTALS, &usage) + "\n" + &table(BY_BUCKET, buckets))
    }
}

impl Inspect {
    /// Prints what was found; fails when anything was, or when not all was seen.
    fn run(&self) -> Outcome {
        let entries =
            self.maximum_entries.map_or(String::new(), |entries| format!("?maximum_entries={entries}"));
        let client = self.client();
        let body = client.call(&Request::get(format!("/api/v1/storage/inspect{entries}")).patiently())?;
        client.print(&body, || inspection_text(&body))?;
        let Some(complete) = body["complete"].as_bool() else {
            return Err("the answer is not one of an inspection".into());
        };
        let listed = rows(&body, "findings")?.len() as u64;
        match listed.saturating_add(body["findings_omitted"].as_u64().unwrap_or(0)) {
            0 if complete => Ok(()),
            0 => {
                Err("not everything was compared\n  --maximum-entries must be as large as what is stored"
                    .into())
            }
            1 => Err("1 finding\n  docs/api.md says what each kind means".into()),
            count => Err(format!("{count} findings\n  docs/api.md says what each kind means").into()),
        }
    }
}

impl Repair {
    /// Prints what was done, or would be; fails when slices were left alone or not all was seen.
    fn run(&self) -> Outcome {
        let mut request = json!({"dry_run": !self.apply});
        if let Some(entries) = self.maximum_entries {
            request["maximum_entries"] = entries.into();
        }
        let client = self.client();
        let body = client.call(&Request::post("/api/v1/storage/repair").json(&request).patiently())?;
        client.print(&body, || repair_text(&body))?;
        match body["complete"].as_bool() {
            Some(true) => Ok(()),
            Some(false) => Err("not everything was examined, or slices were left alone".into()),
            None => Err("the answer is not one of a repair".into()),
        }
    }
}

fn inspection_text(body: &Value) -> String {
    let mut text = String::new();
    for (label, name) in [
        ("complete", "complete"),
        ("entries examined", "entries_examined"),
        ("objects", "objects"),
        ("versions", "versions"),
        ("delete markers", "delete_markers"),
        ("multipart uploads", "multipart_uploads"),
        ("parts", "parts"),
        ("logical bytes", "logical_bytes"),
        ("physical bytes", "physical_bytes"),
        ("orphaned payloads", "orphaned_payloads"),
        ("orphaned bytes", "orphaned_bytes"),
    ] {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{label}: {}", word(&body[name]));
    }
    let findings = body["findings"].as_array().map_or(&[][..], Vec::as_slice);
    let omitted = body["findings_omitted"].as_u64().unwrap_or(0);
    let _ = writeln!(text, "findings: {}", findings.len() as u64 + omitted);
    for finding in findings {
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

fn repair_text(body: &Value) -> String {
    let mode =
        if body["dry_run"] == true { "dry run, nothing was changed; --apply removes" } else { "applied" };
    let mut text = format!(
        "mode: {mode}\ncomplete: {}\nentries examined: {}\norphaned: {} payloads, {} bytes\nremoved: {} payloads, {} bytes\n",
        word(&body["complete"]),
        word(&body["entries_examined"]),
        word(&body["orphaned_payloads"]),
        word(&body["orphaned_bytes"]),
        word(&body["removed_payloads"]),
        word(&body["removed_bytes"]),
    );
    for refused in body["refused"].as_array().into_iter().flatten() {
        let _ =
            writeln!(text, "slice {} was left alone: {}", word(&refused["slice"]), word(&refused["reason"]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_listed_and_cannot_drive_the_terminal() {
        let findings = json!([
            {"kind": "wrong_slice", "bucket": "b", "key": "k\u{1b}[2J", "version_id": "7", "detail": "older"},
            {"kind": "orphaned_space", "detail": "slice 0"},
        ]);
        let text = inspection_text(&json!({"complete": true, "findings": findings, "findings_omitted": 3}));
        let expected =
            "findings: 5\n  wrong_slice b/k[2J version 7: older\n  orphaned_space: slice 0\n  and 3 more\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn a_repair_says_whether_it_changed_anything_and_what_it_left_alone() {
        let refused = json!([{"slice": 1, "reason": "damage"}]);
        let body = json!({"dry_run": true, "complete": false, "refused": refused});
        let text = repair_text(&body);
        assert!(
            text.starts_with("mode: dry run") && text.ends_with("slice 1 was left alone: damage\n"),
            "{text}"
        );
        assert!(repair_text(&json!({"dry_run": false})).starts_with("mode: applied\n"));
    }
}
