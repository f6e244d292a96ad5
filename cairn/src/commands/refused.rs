//! `cairn refused` and `cairn explain`: the last refused S3 requests, and what would help.

use cairn_api::{MissingRight, QuotaUse, RefusalRule, RefusedRequest, RefusingSetting};
use cairn_http1::encode_strict;

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

const COLUMNS: Columns<RefusedRequest> = &[
    ("time", |request| text(&request.time)),
    ("client", |request| text(&request.client)),
    ("principal", |request| text(&request.principal)),
    ("operation", |request| text(&request.operation)),
    ("resource", resource),
    ("code", |request| text(&request.code)),
    ("request id", |request| text(&request.request_id)),
];

/// Returns `bucket/key`, as far as it is known.
fn resource(request: &RefusedRequest) -> String {
    match (&request.bucket, &request.key) {
        (Some(bucket), Some(key)) => plain(&format!("{bucket}/{key}")),
        (bucket, _) => text(bucket),
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
        client.print_as(&client.call(&Request::get(path))?, explanation)
    }
}

/// Says in words what was requested, by whom, what decided, and what would help.
fn explanation(request: &RefusedRequest) -> String {
    let operation = match (&request.operation, &request.method) {
        (Some(name), Some(method)) => format!("{} ({})", plain(name), plain(method)),
        (Some(one), None) | (None, Some(one)) => plain(one),
        (None, None) => "something".to_owned(),
    };
    let on = request.bucket.as_ref().map_or_else(String::new, |_| format!(" on {}", resource(request)));
    let key = request.access_key.as_ref();
    let credential = key.map_or_else(String::new, |key| format!(" with the access key {}", plain(key)));
    let who = request.principal.as_deref().unwrap_or("A client that was not authenticated");
    let agent = request.user_agent.as_ref().map_or_else(String::new, |agent| format!(", {}", plain(agent)));
    let (client, time) = (text(&request.client), text(&request.time));
    let status = request.status.map_or_else(String::new, |status| format!("{status} "));
    let message =
        request.message.as_ref().map_or_else(String::new, |message| format!(": {}", plain(message)));
    let code = text(&request.code);
    let setting = request.setting.as_ref().map_or_else(String::new, setting);
    let advice = request.advice.as_deref().unwrap_or("The answer says what to change.");
    format!(
        "{}{credential} requested {operation}{on},\nfrom {client}{agent}, at {time}.\n\nAnswer:  {status}{code}{message}\n\
         Decided: {}\n{setting}Advice:  {}\n",
        plain(who),
        decision(request),
        plain(advice)
    )
}

/// Says what decided that the request was refused.
fn decision(request: &RefusedRequest) -> String {
    let rule = &request.decided_by;
    if let Some(right) = &request.right {
        return policy_decision(right, rule);
    }
    match &*request.refused_by {
        "authentication" => match rule.credential.as_deref() {
            Some("account_disabled") => "the account of the credential is disabled.".to_owned(),
            Some("credential_disabled") => "the credential is disabled.".to_owned(),
            Some("credential_expired") => "the credential has expired.".to_owned(),
            _ => "the signature, or its credential.".to_owned(),
        },
        "policy" => "the policies of the account.".to_owned(),
        "quota" => format!("the quota of the bucket{}.", quota_use(rule)),
        "object_lock" => lock(rule),
        "cors_rules" => cors_rules(rule),
        "not_implemented" => "this server does not implement what was requested.".to_owned(),
        "storage" => "the store has no room.".to_owned(),
        _ => match &rule.argument {
            Some(argument) => format!("the request is not valid: {}.", plain(argument)),
            None => "the request is not valid.".to_owned(),
        },
    }
}

/// Names the statement, and says if the account has other policies since.
fn policy_decision(right: &MissingRight, rule: &RefusalRule) -> String {
    let what = format!("{} on {}", text(&right.action), text(&right.resource));
    let is_unchanged = rule.policies_unchanged == Some(true);
    let statement = rule.statement.iter().flatten().next().map(|statement| {
        let on = statement.matching_resource.as_ref().map(|on| format!(" (on {})", plain(on)));
        let (name, id) = (text(&statement.policy_name), text(&statement.policy_id));
        let number = statement.statement + 1;
        format!("statement {number} of the policy {name} ({id}){}", on.unwrap_or_default())
    });
    let then = match (&statement, right.denied_explicitly) {
        (Some(statement), true) if is_unchanged => return format!("{statement} denies {what}."),
        (_, true) => format!("a policy of the account denies {what}."),
        (Some(statement), _) if is_unchanged && rule.decision_now.as_deref() == Some("allowed_if_absent") => {
            return format!("{statement} allows {what} for new objects only (only_if_absent).");
        }
        (_, false) => format!("no policy of the account allows {what}."),
    };
    let now = match (rule.decision_now.as_deref(), statement) {
        (Some("account_deleted"), _) => "The account was deleted since.".to_owned(),
        (Some("denied"), Some(statement)) => {
            format!("The policies have changed since: now {statement} denies it.")
        }
        (Some("allowed"), Some(statement)) => {
            format!("The policies have changed since: now {statement} allows it.")
        }
        (Some("no_statement"), _) if is_unchanged => match rule.policies_attached {
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
fn quota_use(rule: &RefusalRule) -> String {
    let of = |dimension: &Option<QuotaUse>, unit: &str| {
        let QuotaUse { limit, used } = dimension.as_ref()?;
        limit.map(|limit| format!("{used} of {limit} {unit} were used"))
    };
    let limits: Vec<_> =
        [of(&rule.bytes, "bytes"), of(&rule.objects, "objects")].into_iter().flatten().collect();
    if limits.is_empty() { String::new() } else { format!(": {}", limits.join(", ")) }
}

/// Names the lock of a version.
fn lock(rule: &RefusalRule) -> String {
    let mode = rule.mode.iter().flatten().next();
    let retention = mode.map(|mode| format!("{} retention until {}", plain(mode), text(&rule.retain_until)));
    let hold = (rule.legal_hold == Some(true)).then(|| "a legal hold".to_owned());
    let locks: Vec<_> = [retention, hold].into_iter().flatten().collect();
    if locks.is_empty() {
        return "retention or a legal hold of the version.".to_owned();
    }
    format!("{} of the version {}.", locks.join(" and "), text(&rule.version_id))
}

/// Says which part of the request no CORS rule allows.
fn cors_rules(rule: &RefusalRule) -> String {
    match (rule.not_allowed.iter().flatten().next().map(String::as_str), rule.rules) {
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
fn setting(RefusingSetting { name, value, would_help }: &RefusingSetting) -> String {
    let value = match value.as_deref() {
        None | Some("") => "not set".to_owned(),
        Some(value) => format!("\"{}\"", plain(value)),
    };
    format!("Setting: {} is {value}; what would help: {}.\n", plain(name), text(would_help))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::read;
    use serde_json::{Value, json};

    /// Returns a request of which only this is known.
    fn request(known: Value) -> RefusedRequest {
        let mut request = json!({
            "time": "T", "request_id": "1F", "client": "::1", "method": "GET", "status": 403, "code": "C", "message": "M",
            "refused_by": "request", "decided_by": {"kind": "request"},
        });
        for (name, value) in known.as_object().into_iter().flatten() {
            request[name] = value.clone();
        }
        read(&request).expect("a refused request")
    }

    #[test]
    fn explanation_says_who_what_why_and_what_helps() {
        let request = json!({
            "time": "2026-11-21T05:00:00.000Z", "request_id": "1F", "client": "192.0.2.7", "user_agent": "Boto3/1.40",
            "principal": "account:backup", "access_key": "AK", "method": "GET", "operation": "GetObject", "bucket": "photos",
            "key": "a\u{1b}b", "status": 403, "code": "AccessDenied", "message": "Access Denied: no.", "refused_by": "policy",
            "right": {"action": "s3:GetObject", "resource": "bucket:photos/a", "denied_explicitly": false},
            "advice": "Attach a policy.",
        });
        let text = explanation(&self::request(request));
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
            decision(&request(json!({"refused_by": "policy", "right": right, "decided_by": decided_by})))
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
            decision(&request(json!({"refused_by": refused_by, "right": null, "decided_by": decided_by})))
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
        let said = setting(&read(&strict).expect("a setting"));
        assert_eq!(said, "Setting: s3.compatibility is \"strict\"; what would help: extended.\n");
    }

    #[test]
    fn little_is_known_of_a_request_without_a_credential() {
        let request = json!({
            "time": "T", "client": "::1", "user_agent": null, "principal": null, "access_key": null, "method": "GET",
            "operation": null, "bucket": null, "key": null, "status": 501, "code": "NotImplemented", "message": "M",
            "refused_by": "not_implemented", "right": null, "advice": null,
        });
        let text = explanation(&self::request(request));
        assert!(
            text.starts_with("A client that was not authenticated requested GET,\nfrom ::1, at T.\n"),
            "{text}"
        );
        assert!(text.ends_with("Advice:  The answer says what to change.\n"), "{text}");
    }
}
