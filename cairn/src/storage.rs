//! `cairn storage inspect|repair`: whether a running server's store agrees with itself, and what can be put right.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::arguments::{Inspect, Repair};
use crate::endpoint::Endpoint;
use crate::output::{self, plain, word};

/// Inspects and prints what was found; fails when anything was, or when not all was seen.
pub(crate) fn inspect(command: &Inspect) -> Result<(), String> {
    let entries =
        command.maximum_entries.map_or(String::new(), |entries| format!("?maximum_entries={entries}"));
    let endpoint = Endpoint::with_token(&command.endpoint)?;
    let body = endpoint.get_patiently(&format!("/api/v1/storage/inspect{entries}"))?.body()?;
    print(&body, command.json, inspection_text)?;
    let listed = body["findings"].as_array().map(Vec::len);
    let (Some(listed), Some(complete)) = (listed, body["complete"].as_bool()) else {
        return Err("the answer is not one of an inspection".to_owned());
    };
    match listed as u64 + body["findings_omitted"].as_u64().unwrap_or(0) {
        0 if complete => Ok(()),
        0 => Err("not everything was compared: see --maximum-entries".to_owned()),
        count => Err(format!("{count} findings")),
    }
}

/// Repairs, or says what a repair would do; fails when slices were left alone or not all was seen.
pub(crate) fn repair(command: &Repair) -> Result<(), String> {
    let mut request = json!({"dry_run": !command.apply});
    if let Some(entries) = command.maximum_entries {
        request["maximum_entries"] = entries.into();
    }
    let endpoint = Endpoint::with_token(&command.endpoint)?;
    let body = endpoint.post_patiently("/api/v1/storage/repair", &request.to_string())?.body()?;
    print(&body, command.json, repair_text)?;
    match body["complete"].as_bool() {
        Some(true) => Ok(()),
        Some(false) => Err("not everything was examined, or slices were left alone".to_owned()),
        None => Err("the answer is not one of a repair".to_owned()),
    }
}

fn print(body: &Value, as_json: bool, text: fn(&Value) -> String) -> Result<(), String> {
    if as_json {
        let pretty = serde_json::to_string_pretty(body).map_err(|error| error.to_string())?;
        output::print(&(pretty + "\n"));
    } else {
        output::print(&text(body));
    }
    Ok(())
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
