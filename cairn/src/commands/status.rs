//! `cairn status`: shows the readiness of a server, and its version and capabilities.

use argh::{ArgsInfo, FromArgs};
use cairn_api::{Readiness, SystemInfo};
use serde::Serialize;
use serde_json::{Value, json};
use ureq::http::StatusCode;

use crate::client::{Address, Client, Request, read};
use crate::failure::{Failure, Outcome};
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
    /// Prints the status. Fails if the server is not ready. A refused token, or information that cannot be read, only brings a
    /// message on standard error, so that a monitor does not mistake it for a service that is down.
    pub(crate) fn run(&self) -> Outcome {
        let client = Client::new(self.endpoint.as_ref(), self.json)?;
        let response = client.call_public(&Request::get("/ready"))?;
        let readiness = match (&response.body, response.status) {
            (Some(body), StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE) => read(body).ok().zip(Some(body)),
            _ => None,
        };
        let Some((readiness, body)) = readiness else { return Err(client.unexpected_response(&response)) };
        let called = client.has_token().then(|| {
            let info = client.call(&Request::get("/api/v1/system/info"))?;
            let known = read::<SystemInfo>(&info)?;
            Ok::<_, Failure>((info, known))
        });
        let info = called.as_ref().and_then(|called| called.as_ref().ok());
        client.print(&json!({"readiness": body, "system": info.map(|(info, _)| info)}), || {
            readiness_text(&readiness) + &info.map(|(_, known)| info_text(known)).unwrap_or_default()
        })?;
        if let Some(Err(failure)) = &called {
            print_error(&format!("cairn: no system information: {}\n", failure.message()));
        }
        if response.status == StatusCode::OK { Ok(()) } else { Err("the server is not ready".into()) }
    }
}

fn readiness_text(Readiness { status, subsystems, reason, notices }: &Readiness) -> String {
    let mut rows = vec![("status".to_owned(), words(status))];
    rows.extend(indented(subsystems));
    rows.extend(reason.as_ref().map(|reason| ("reason".to_owned(), text(reason))));
    let notice = |(name, notice): (&String, &String)| {
        ("notice".to_owned(), format!("{}: {}", plain(name), text(notice)))
    };
    rows.extend(notices.iter().map(notice));
    labelled(&rows)
}

fn info_text(info: &SystemInfo) -> String {
    let mut rows = vec![
        ("name".to_owned(), text(&info.name)),
        ("version".to_owned(), text(&info.version)),
        ("S3 mode".to_owned(), text(&info.s3_compatibility)),
        ("S3 endpoint".to_owned(), text(&info.s3_endpoint)),
        ("capabilities".to_owned(), String::new()),
    ];
    rows.extend(indented(&info.capabilities));
    labelled(&rows)
}

/// Returns a row for each member.
fn indented<T: Serialize>(members: &T) -> Vec<(String, String)> {
    let row =
        |(name, value): (&String, &Value)| (format!("  {}", plain(name).replace('_', " ")), words(value));
    json!(members).as_object().into_iter().flatten().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_shown_without_control_characters() {
        let body = json!({"status": "not_ready", "subsystems": {"storage": "not_ready", "meta\u{1b}[2Jdata": "ready"}});
        let text = readiness_text(&read(&body).expect("a readiness"));
        assert_eq!(text, "status:        not ready\n  meta[2Jdata: ready\n  storage:     not ready\n");
        let body = json!({"status": "not_ready", "reason": "too\u{1b} new"});
        let text = readiness_text(&read(&body).expect("a readiness"));
        assert_eq!(text, "status: not ready\nreason: too new\n");
        let body = json!({"status": "ready", "notices": {"disk": "nearly\u{1b} full"}});
        assert_eq!(
            readiness_text(&read(&body).expect("a readiness")),
            "status: ready\nnotice: disk: nearly full\n"
        );
        let capabilities = json!({
            "versioning": true, "webhooks": true, "events": true, "lifecycle": true, "sharing": true, "object_browser": true,
            "erasure_coding": false,
        });
        let info = json!({
            "name": "cairn", "version": "1.2.3", "status": "ready", "s3_compatibility": "strict", "s3_endpoint": "http://h:7600", "capabilities": capabilities,
        });
        let text = info_text(&read(&info).expect("information"));
        let begin = "name:             cairn\nversion:          1.2.3\nS3 mode:          strict\nS3 endpoint:      http://h:7600\ncapabilities:\n  erasure coding: no\n";
        assert!(text.starts_with(begin), "{text}");
    }
}
