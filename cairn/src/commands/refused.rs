//! `cairn refused` and `cairn explain`: the last refused S3 requests, and what would help.

use cairn_http1::encode_strict;
use serde_json::Value;

use crate::client::Request;
use crate::commands::macros::{command, noun};
use crate::failure::Outcome;
use crate::output::table::{Columns, text};
use crate::terminal::plain;

noun! {
    /// Look at the last refused S3 requests, which the server keeps in memory.
    struct Refused("refused"): RefusedCommand { List }
}

command! {
    /// List refused S3 requests, the latest first. Requests must match all filters.
    struct List("list") {
        /// the client's address
        #[argh(option, arg_name = "address")]
        client: Option<String>,
        /// the S3 error code, for example AccessDenied
        #[argh(option, arg_name = "code")]
        code: Option<String>,
        /// the bucket
        #[argh(option, arg_name = "name")]
        bucket: Option<String>,
        /// the principal that made the request, for example account:backup
        #[argh(option, arg_name = "name")]
        principal: Option<String>,
        /// maximum number of requests, 1 to 1000 (default: 100)
        #[argh(option, arg_name = "n")]
        limit: Option<u64>,
    }
}

command! {
    /// Explain why the server refused an S3 request, and what would help.
    struct Explain("explain") {
        /// the request id: x-amz-request-id in the response
        #[argh(positional, arg_name = "request-id")]
        request_id: String,
    }
}

const COLUMNS: Columns = &[
    ("time", |request| text(&request["time"])),
    ("client", |request| text(&request["client"])),
    ("principal", |request| text(&request["principal"])),
    ("operation", |request| text(&request["operation"])),
    ("resource", resource),
    ("code", |request| text(&request["code"])),
    ("request id", |request| text(&request["request_id"])),
];

/// Returns `bucket/key`, as far as it is known.
fn resource(request: &Value) -> String {
    match (request["bucket"].as_str(), request["key"].as_str()) {
        (Some(bucket), Some(key)) => plain(&format!("{bucket}/{key}")),
        _ => text(&request["bucket"]),
    }
}

impl List {
    fn run(&self) -> Outcome {
        let limit = self.limit.map(|limit| limit.to_string());
        let parameters = [
            ("client", &self.client),
            ("code", &self.code),
            ("bucket", &self.bucket),
            ("principal", &self.principal),
            ("limit", &limit),
        ];
        let given = parameters.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let query: Vec<String> =
            given.map(|(name, value)| format!("{name}={}", encode_strict(value))).collect();
        let path = format!("/api/v1/refused-requests?{}", query.join("&"));
        self.client()?.list(&path, "refused_requests", COLUMNS)
    }
}

impl Explain {
    pub(crate) fn run(&self) -> Outcome {
        let path = format!("/api/v1/refused-requests/{}", encode_strict(&self.request_id));
        let client = self.client()?;
        let request = client.call(&Request::get(path))?;
        client.print(&request, || explanation(&request))
    }
}

/// Says in words what was requested, by whom, what decided, and what would help.
fn explanation(request: &Value) -> String {
    let operation = match request["operation"].as_str() {
        Some(operation) => format!("{} ({})", plain(operation), text(&request["method"])),
        None => text(&request["method"]),
    };
    let on = match request["bucket"].as_str() {
        Some(_) => format!(" on {}", resource(request)),
        None => String::new(),
    };
    let credential = match request["access_key"].as_str() {
        Some(key) => format!(" with the access key {}", plain(key)),
        None => String::new(),
    };
    let who = match request["principal"].as_str() {
        Some(principal) => format!("{}{credential}", plain(principal)),
        None => format!("A client that was not authenticated{credential}"),
    };
    let with = request["user_agent"].as_str().map(|agent| format!(", {}", plain(agent))).unwrap_or_default();
    let mut lines = vec![
        format!("{who} requested {operation}{on},"),
        format!("from {}{with}, at {}.", text(&request["client"]), text(&request["time"])),
        String::new(),
        format!(
            "Answer:  {} {}: {}",
            text(&request["status"]),
            text(&request["code"]),
            text(&request["message"])
        ),
        format!("Decided: {}", decision(request)),
    ];
    let advice = match request["advice"].as_str() {
        Some(advice) => plain(advice),
        None => "The answer says what to change.".to_owned(),
    };
    lines.push(format!("Advice:  {advice}"));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Says what decided that the request was refused.
fn decision(request: &Value) -> String {
    let right = &request["right"];
    if right.is_object() {
        let (action, resource) = (text(&right["action"]), text(&right["resource"]));
        return if right["denied_explicitly"] == true {
            format!("a policy of the account denies {action} on {resource}.")
        } else {
            format!("no policy of the account allows {action} on {resource}.")
        };
    }
    match request["refused_by"].as_str().unwrap_or_default() {
        "authentication" => "the signature, or its credential.".to_owned(),
        "policy" => "the policies of the account.".to_owned(),
        "quota" => "the quota of the bucket.".to_owned(),
        "object_lock" => "retention or a legal hold of the version.".to_owned(),
        "cors_rules" => "the CORS rules of the bucket.".to_owned(),
        "not_implemented" => "this server does not implement what was requested.".to_owned(),
        "storage" => "the store has no room.".to_owned(),
        _ => "the request is not valid.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn explanation_says_who_what_why_and_what_helps() {
        let request = json!({
            "time": "2026-11-21T05:00:00.000Z", "request_id": "1F", "client": "192.0.2.7", "user_agent": "Boto3/1.40",
            "principal": "account:backup", "access_key": "AK", "method": "GET", "operation": "GetObject", "bucket": "photos",
            "key": "a\u{1b}b", "status": 403, "code": "AccessDenied", "message": "Access Denied: no.", "refused_by": "policy",
            "right": {"action": "s3:GetObject", "resource": "bucket:photos/a", "denied_explicitly": false},
            "advice": "Attach a policy.",
        });
        let text = explanation(&request);
        assert!(!text.contains('\u{1b}'), "control characters of a client");
        for part in [
            "account:backup with the access key AK requested GetObject (GET) on photos/a",
            "from 192.0.2.7, Boto3/1.40, at 2026-11-21T05:00:00.000Z.",
            "Answer:  403 AccessDenied: Access Denied: no.",
            "Decided: no policy of the account allows s3:GetObject on bucket:photos/a.",
            "Advice:  Attach a policy.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn little_is_known_of_a_request_without_a_credential() {
        let request = json!({
            "time": "T", "client": "::1", "user_agent": null, "principal": null, "access_key": null, "method": "GET",
            "operation": null, "bucket": null, "key": null, "status": 501, "code": "NotImplemented", "message": "M",
            "refused_by": "not_implemented", "right": null, "advice": null,
        });
        let text = explanation(&request);
        assert!(
            text.starts_with("A client that was not authenticated requested GET,\nfrom ::1, at T.\n"),
            "{text}"
        );
        assert!(text.ends_with("Advice:  The answer says what to change.\n"), "{text}");
    }
}
