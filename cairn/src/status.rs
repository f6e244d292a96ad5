//! `cairn status`: readiness, and what the server says of itself.

use std::fmt::Write;

use serde_json::Value;

use crate::arguments::Status;
use crate::endpoint::{Answer, Credential, Endpoint};
use crate::output::{self, plain, word};

const READY: u16 = 200;
const NOT_READY: u16 = 503;

/// Asks and prints; fails when the server is not ready.
pub(crate) fn run(command: &Status) -> Result<(), String> {
    let endpoint = Endpoint::new(&command.endpoint)?;
    let readiness = endpoint.get("/ready", Credential::None)?;
    if !matches!(readiness.status, READY | NOT_READY) || !readiness.body["status"].is_string() {
        return Err(format!(
            "{} is not the management plane of a server: {}",
            command.endpoint,
            readiness.refusal()
        ));
    }
    output::print(&readiness_text(&readiness));
    if endpoint.has_token() {
        let info = endpoint.get("/api/v1/system/info", Credential::Token)?;
        if info.status != READY {
            return Err(format!("system information was refused: {}", info.refusal()));
        }
        output::print(&info_text(&info.body));
    }
    if readiness.status == READY { Ok(()) } else { Err("the service is not ready".to_owned()) }
}

fn readiness_text(readiness: &Answer) -> String {
    let mut text = format!("status: {}\n", word(&readiness.body["status"]));
    for (name, state) in readiness.body["subsystems"].as_object().into_iter().flatten() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {}: {}", plain(name), word(state));
    }
    if let Some(reason) = readiness.body["reason"].as_str() {
        let _ = writeln!(text, "  reason: {}", plain(reason));
    }
    text
}

fn info_text(info: &Value) -> String {
    let mut text =
        format!("name: {}\nversion: {}\ncapabilities:\n", word(&info["name"]), word(&info["version"]));
    for (name, value) in info["capabilities"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "  {}: {}", plain(name), word(value));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn subsystems_and_capabilities_are_listed_and_cannot_drive_the_terminal() {
        let body = json!({"status": "not_ready", "subsystems": {"storage": "not_ready", "meta\u{1b}[2Jdata": "ready"}});
        let text = readiness_text(&Answer { status: NOT_READY, body });
        assert_eq!(text, "status: not_ready\n  meta[2Jdata: ready\n  storage: not_ready\n");
        let body = json!({"status": "not_ready", "reason": "too\u{1b} new"});
        let text = readiness_text(&Answer { status: NOT_READY, body });
        assert_eq!(text, "status: not_ready\n  reason: too new\n");
        let info = json!({"name": "cairn", "version": "1.2.3", "capabilities": {"versioning": false}});
        assert_eq!(info_text(&info), "name: cairn\nversion: 1.2.3\ncapabilities:\n  versioning: false\n");
    }
}
