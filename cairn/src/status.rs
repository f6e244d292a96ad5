//! `cairn status`: readiness, and what the server says of itself.

use std::fmt::Write;

use argh::{ArgsInfo, FromArgs};
use serde_json::{Value, json};
use ureq::http::StatusCode;

use crate::client::{Address, Client, Request};
use crate::failure::Outcome;
use crate::output::{plain, print_error, word};

/// Ask a server whether it is ready. The exit code is 0 when it is, and tells nothing else. With SERVICE_MANAGEMENT_TOKEN
/// set, system information is printed too.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "status")]
pub(crate) struct Status {
    /// print the server's answers as JSON: {"readiness": …, "system": …}
    #[argh(switch)]
    json: bool,
    /// the management plane's address (default: http://127.0.0.1:7601)
    #[argh(option, arg_name = "url", default = "Address::default()")]
    endpoint: Address,
}

impl Status {
    /// Asks and prints; fails when the server is not ready. A token that the server does not take is said, and no failure:
    /// who watches readiness must not take an ended token for an ended service.
    pub(crate) fn run(&self) -> Outcome {
        let client = Client::new(&self.endpoint, self.json);
        let answer = client.ask_publicly(&Request::get("/ready"))?;
        let readiness = match (&answer.body, answer.status) {
            (Some(body), StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE) if body["status"].is_string() => {
                body
            }
            _ => return Err(client.stranger(&answer)),
        };
        let asked = client.has_token().then(|| client.call(&Request::get("/api/v1/system/info")));
        let info = asked.as_ref().and_then(|asked| asked.as_ref().ok());
        client.print(&json!({"readiness": readiness, "system": info}), || {
            readiness_text(readiness) + &info.map(info_text).unwrap_or_default()
        })?;
        if let Some(Err(failure)) = &asked {
            print_error(&format!("cairn: no system information: {}\n", failure.message()));
        }
        if answer.status == StatusCode::OK { Ok(()) } else { Err("the service is not ready".into()) }
    }
}

fn readiness_text(readiness: &Value) -> String {
    let mut text = format!("status: {}\n", word(&readiness["status"]));
    for (name, state) in readiness["subsystems"].as_object().into_iter().flatten() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {}: {}", plain(name), word(state));
    }
    if let Some(reason) = readiness["reason"].as_str() {
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

    #[test]
    fn subsystems_and_capabilities_are_listed_and_cannot_drive_the_terminal() {
        let body = json!({"status": "not_ready", "subsystems": {"storage": "not_ready", "meta\u{1b}[2Jdata": "ready"}});
        let text = readiness_text(&body);
        assert_eq!(text, "status: not_ready\n  meta[2Jdata: ready\n  storage: not_ready\n");
        let body = json!({"status": "not_ready", "reason": "too\u{1b} new"});
        let text = readiness_text(&body);
        assert_eq!(text, "status: not_ready\n  reason: too new\n");
        let info = json!({"name": "cairn", "version": "1.2.3", "capabilities": {"versioning": false}});
        assert_eq!(info_text(&info), "name: cairn\nversion: 1.2.3\ncapabilities:\n  versioning: false\n");
    }
}
