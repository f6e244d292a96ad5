//! `cairn status`: shows the readiness of a server, and its version and capabilities.

use argh::{ArgsInfo, FromArgs};
use serde_json::{Value, json};
use ureq::http::StatusCode;

use crate::client::{Address, Client, Request};
use crate::failure::Outcome;
use crate::output::print_error;
use crate::output::table::{labelled, text, words};
use crate::terminal::plain;

/// Show whether a server is ready. The exit code is 0 if it is. If SERVICE_MANAGEMENT_TOKEN is set, system information is shown
/// too.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "status", help_triggers("-h", "--help"))]
pub(crate) struct Status {
    /// print the server's responses as JSON: {"readiness": …, "system": …}
    #[argh(switch)]
    json: bool,
    /// the management plane's address (default: SERVICE_MANAGEMENT_ENDPOINT, or http://127.0.0.1:7601)
    #[argh(option, arg_name = "url")]
    endpoint: Option<Address>,
}

impl Status {
    /// Prints the status. Fails if the server is not ready. A refused token only brings a message on standard error, so that a
    /// monitor does not mistake an expired token for a service that is down.
    pub(crate) fn run(&self) -> Outcome {
        let client = Client::new(self.endpoint.as_ref(), self.json)?;
        let response = client.call_public(&Request::get("/ready"))?;
        let readiness = match (&response.body, response.status) {
            (Some(body), StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE) if body["status"].is_string() => {
                body
            }
            _ => return Err(client.unexpected_response(&response)),
        };
        let called = client.has_token().then(|| client.call(&Request::get("/api/v1/system/info")));
        let info = called.as_ref().and_then(|called| called.as_ref().ok());
        client.print(&json!({"readiness": readiness, "system": info}), || {
            readiness_text(readiness) + &info.map(info_text).unwrap_or_default()
        })?;
        if let Some(Err(failure)) = &called {
            print_error(&format!("cairn: no system information: {}\n", failure.message()));
        }
        if response.status == StatusCode::OK { Ok(()) } else { Err("the server is not ready".into()) }
    }
}

fn readiness_text(readiness: &Value) -> String {
    let mut rows = vec![("status".to_owned(), words(&readiness["status"]))];
    rows.extend(indented(&readiness["subsystems"]));
    if readiness["reason"].is_string() {
        rows.push(("reason".to_owned(), text(&readiness["reason"])));
    }
    for (name, notice) in readiness["notices"].as_object().into_iter().flatten() {
        rows.push(("notice".to_owned(), format!("{}: {}", plain(name), text(notice))));
    }
    labelled(&rows)
}

fn info_text(info: &Value) -> String {
    let mut rows: Vec<_> = ["name", "version"].map(|name| (name.to_owned(), text(&info[name]))).into();
    rows.push(("S3 mode".to_owned(), text(&info["s3_compatibility"])));
    rows.push(("capabilities".to_owned(), String::new()));
    rows.extend(indented(&info["capabilities"]));
    labelled(&rows)
}

/// Returns a row for each member.
fn indented(members: &Value) -> impl Iterator<Item = (String, String)> {
    let members = members.as_object().into_iter().flatten();
    members.map(|(name, value)| (format!("  {}", plain(name).replace('_', " ")), words(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_shown_without_control_characters() {
        let body = json!({"status": "not_ready", "subsystems": {"storage": "not_ready", "meta\u{1b}[2Jdata": "ready"}});
        let text = readiness_text(&body);
        assert_eq!(text, "status:        not ready\n  meta[2Jdata: ready\n  storage:     not ready\n");
        let body = json!({"status": "not_ready", "reason": "too\u{1b} new"});
        let text = readiness_text(&body);
        assert_eq!(text, "status: not ready\nreason: too new\n");
        let body = json!({"status": "ready", "notices": {"disk": "nearly\u{1b} full"}});
        assert_eq!(readiness_text(&body), "status: ready\nnotice: disk: nearly full\n");
        let info = json!({"name": "cairn", "version": "1.2.3", "s3_compatibility": "strict", "capabilities": {"versioning": false}});
        assert_eq!(
            info_text(&info),
            "name:         cairn\nversion:      1.2.3\nS3 mode:      strict\ncapabilities:\n  versioning: no\n"
        );
    }
}
