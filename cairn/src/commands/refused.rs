//! `cairn refused` and `cairn explain`: the last refused S3 requests, and what would help.

use cairn_http1::encode_strict;
use serde_json::Value;

use crate::client::{Request, query, with_query};
use crate::commands::macros::{command, noun};
use crate::failure::Outcome;
use crate::output::table::{Columns, text};
use crate::quantity::{PageLimit, Whole, counted};
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
        limit: Option<PageLimit>,
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

/// The route of the refused requests.
const REQUESTS: &str = "/api/v1/refused-requests";

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
        let parameters = query([
            ("client", self.client.clone()),
            ("code", self.code.clone()),
            ("bucket", self.bucket.clone()),
            ("principal", self.principal.clone()),
            ("limit", self.limit.map(|Whole(limit)| limit.to_string())),
        ]);
        self.client()?.list(with_query(REQUESTS, &parameters), "refused_requests", COLUMNS)
    }
}

impl Explain {
    pub(crate) fn run(&self) -> Outcome {
        // Some clients and logs show ids in lower case.
        let id = self.request_id.to_ascii_uppercase();
        let path = format!("{REQUESTS}/{}", encode_strict(&id));
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
    if let Some(setting) = setting(&request["setting"]) {
        lines.push(format!("Setting: {setting}"));
    }
    let advice = match request["advice"].as_str() {
        Some(advice) => plain(advice),
        None => "The answer says what to change.".to_owned(),
    };
    lines.push(format!("Advice:  {advice}"));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Says what decided that the request was refused.
fn decision(request: &Value) -> String {
    let (right, decided_by) = (&request["right"], &request["decided_by"]);
    if right.is_object() {
        return policy_decision(right, decided_by);
    }
    match request["refused_by"].as_str().unwrap_or_default() {
        "authentication" => match decided_by["credential"].as_str() {
            Some("account_disabled") => "the account of the credential is disabled.".to_owned(),
            Some("credential_disabled") => "the credential is disabled.".to_owned(),
            Some("credential_expired") => "the credential has expired.".to_owned(),
            _ => "the signature, or its credential.".to_owned(),
        },
        "policy" => "the policies of the account.".to_owned(),
        "quota" => format!("the quota of the bucket{}.", quota_use(decided_by)),
        "object_lock" => lock(decided_by),
        "cors_rules" => cors_rules(decided_by),
        "not_implemented" => "this server does not implement what was requested.".to_owned(),
        "storage" => "the store has no room.".to_owned(),
        _ => match decided_by["argument"].as_str() {
            Some(argument) => format!("the request is not valid: {}.", plain(argument)),
            None => "the request is not valid.".to_owned(),
        },
    }
}

/// Names the statement, and says if the account has other policies since.
fn policy_decision(right: &Value, decided_by: &Value) -> String {
    let what = format!("{} on {}", text(&right["action"]), text(&right["resource"]));
    let was_denied = right["denied_explicitly"] == true;
    let is_unchanged = decided_by["policies_unchanged"] == true;
    let statement = &decided_by["statement"];
    let statement = statement.is_object().then(|| {
        let number = statement["statement"].as_u64().map_or(0, |index| index + 1);
        let on = statement["matching_resource"].as_str().map(|on| format!(" (on {})", plain(on)));
        let (name, id) = (text(&statement["policy_name"]), text(&statement["policy_id"]));
        format!("statement {number} of the policy {name} ({id}){}", on.unwrap_or_default())
    });
    let then = match (&statement, was_denied) {
        (Some(statement), true) if is_unchanged => return format!("{statement} denies {what}."),
        (_, true) => format!("a policy of the account denies {what}."),
        (_, false) => format!("no policy of the account allows {what}."),
    };
    let now = match (decided_by["decision_now"].as_str(), statement) {
        (Some("account_deleted"), _) => "The account was deleted since.".to_owned(),
        (Some("denied"), Some(statement)) => {
            format!("The policies have changed since: now {statement} denies it.")
        }
        (Some("allowed"), Some(statement)) => {
            format!("The policies have changed since: now {statement} allows it.")
        }
        (Some("no_statement"), _) if is_unchanged => match decided_by["policies_attached"].as_u64() {
            Some(0) => "The account has no policy.".to_owned(),
            Some(count) => format!("The account has {}.", counted(count, "policy")),
            None => return then,
        },
        (Some("no_statement"), _) => {
            "The policies have changed since: now none of them allows it.".to_owned()
        }
        _ => return then,
    };
    format!("{then}\n         {now}")
}

/// Returns what of a quota is used; empty if it is not known.
fn quota_use(decided_by: &Value) -> String {
    let of = |member: &Value, unit: &str| {
        let (limit, used) = (member["limit"].as_u64()?, member["used"].as_u64()?);
        Some(format!("{used} of {limit} {unit} were used"))
    };
    let limits = [of(&decided_by["bytes"], "bytes"), of(&decided_by["objects"], "objects")];
    let limits: Vec<_> = limits.into_iter().flatten().collect();
    if limits.is_empty() { String::new() } else { format!(": {}", limits.join(", ")) }
}

/// Names the lock of a version.
fn lock(decided_by: &Value) -> String {
    let mode = decided_by["mode"].as_str();
    let retention = mode.map(|mode| format!("{mode} retention until {}", text(&decided_by["retain_until"])));
    let hold = (decided_by["legal_hold"] == true).then(|| "a legal hold".to_owned());
    let locks: Vec<_> = [retention, hold].into_iter().flatten().collect();
    if locks.is_empty() {
        return "retention or a legal hold of the version.".to_owned();
    }
    format!("{} of the version {}.", locks.join(" and "), text(&decided_by["version_id"]))
}

/// Says which part of the request no CORS rule allows.
fn cors_rules(decided_by: &Value) -> String {
    match (decided_by["not_allowed"].as_str(), decided_by["rules"].as_u64()) {
        (Some("bucket"), _) => "the bucket does not exist, so it has no CORS rules.".to_owned(),
        (_, Some(0)) => "the bucket has no CORS rules.".to_owned(),
        (Some("origin"), Some(count)) => {
            format!("none of the bucket's CORS rules ({count}) allows the origin.")
        }
        (Some("method"), Some(count)) => {
            format!("none of the bucket's CORS rules ({count}) that allows the origin allows the method.")
        }
        (Some("headers"), Some(count)) => format!(
            "none of the bucket's CORS rules ({count}) that allows origin and method allows all the headers."
        ),
        _ => "the CORS rules of the bucket.".to_owned(),
    }
}

/// Names a key of the configuration with its value and the one that would help.
fn setting(setting: &Value) -> Option<String> {
    let name = setting["name"].as_str()?;
    let value = match setting["value"].as_str() {
        None | Some("") => "not set".to_owned(),
        Some(value) => format!("\"{}\"", plain(value)),
    };
    let would_help = text(&setting["would_help"]);
    Some(format!("{} is {value}; what would help: {would_help}.", plain(name)))
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

    /// A statement is blamed only if the account still has the policies that decided.
    #[test]
    fn a_statement_is_named_with_the_policies_that_decided() {
        let said = |denied: bool, decided_by: Value| {
            let right =
                json!({"action": "s3:GetObject", "resource": "bucket:b/k", "denied_explicitly": denied});
            decision(&json!({"refused_by": "policy", "right": right, "decided_by": decided_by}))
        };
        let policies = |unchanged: bool, now: &str, statement: Value| {
            json!({"kind": "policy", "policies_unchanged": unchanged, "decision_now": now, "policies_attached": 2,
                   "statement": statement})
        };
        let statement = |on: Value| json!({"policy_id": "0197", "policy_name": "no", "statement": 1, "effect": "deny", "matching_resource": on});
        let named = "statement 2 of the policy no (0197) (on bucket:b/*)";
        assert_eq!(
            said(true, policies(true, "denied", statement(json!("bucket:b/*")))),
            format!("{named} denies s3:GetObject on bucket:b/k.")
        );
        let hidden = said(true, policies(true, "denied", statement(Value::Null)));
        assert!(hidden.starts_with("statement 2 of the policy no (0197) denies"), "{hidden}");
        for (now, ending) in [("denied", "denies it."), ("allowed", "allows it.")] {
            let changed = said(true, policies(false, now, statement(json!("bucket:b/*"))));
            assert!(
                changed.starts_with("a policy of the account denies s3:GetObject on bucket:b/k.\n"),
                "{changed}"
            );
            assert!(changed.ends_with(&format!("have changed since: now {named} {ending}")), "{changed}");
        }
        for (unchanged, now, ending) in [
            (true, "no_statement", "The account has 2 policies."),
            (false, "no_statement", "now none of them allows it."),
            (false, "account_deleted", "The account was deleted since."),
        ] {
            let none = said(false, policies(unchanged, now, Value::Null));
            assert!(none.starts_with("no policy of the account allows") && none.ends_with(ending), "{none}");
        }
    }

    #[test]
    fn other_rules_are_named_with_their_values() {
        let said = |refused_by: &str, decided_by: Value| {
            decision(&json!({"refused_by": refused_by, "right": null, "decided_by": decided_by}))
        };
        let quota = json!({"kind": "quota", "bytes": {"limit": 100, "used": 60}, "objects": {"limit": null, "used": 1}});
        assert_eq!(said("quota", quota), "the quota of the bucket: 60 of 100 bytes were used.");
        let lock = json!({"kind": "object_lock", "version_id": "v1", "mode": "GOVERNANCE", "retain_until": "T", "legal_hold": true});
        assert_eq!(
            said("object_lock", lock),
            "GOVERNANCE retention until T and a legal hold of the version v1."
        );
        for (rules, part, ending) in [
            (0, "bucket", "does not exist, so it has no CORS rules."),
            (0, "", "the bucket has no CORS rules."),
            (3, "origin", "rules (3) allows the origin."),
            (3, "method", "allows the method."),
            (3, "headers", "allows all the headers."),
        ] {
            let cors = said("cors_rules", json!({"kind": "cors_rules", "rules": rules, "not_allowed": part}));
            assert!(cors.ends_with(ending), "{cors}");
        }
        let expired = json!({"kind": "authentication", "credential": "credential_expired"});
        assert_eq!(said("authentication", expired), "the credential has expired.");
        assert!(said("request", json!({"kind": "request", "argument": "max-keys"})).ends_with("max-keys."));
        let strict = json!({"name": "s3.compatibility", "value": "strict", "would_help": "extended"});
        assert_eq!(setting(&strict).unwrap(), "s3.compatibility is \"strict\"; what would help: extended.");
        assert_eq!(setting(&Value::Null), None);
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
