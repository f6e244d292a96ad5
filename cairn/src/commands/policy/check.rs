//! `cairn policy check`: may an account do this, and which statement decides?

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::client::Request;
use crate::commands::macros::command;
use crate::commands::resources::ACCOUNTS;
use crate::commands::statement::statement_text;
use crate::failure::{Failure, Outcome};
use crate::terminal::{plain, word};

command! {
    /// Check whether an account may do something, and show which statement decides. Exits with 1 if it may not.
    #[argh(note = "The actions are s3:ListBucket and s3:ManageBucket on a bucket, and s3:GetObject,
s3:PutObject and s3:DeleteObject on an object.")]
    struct Check("check") {
        /// the account's id or name
        #[argh(option, arg_name = "account")]
        account: Option<String>,
        /// the access key, in place of the account: a disabled or expired credential may do nothing
        #[argh(option, arg_name = "key")]
        access_key: Option<String>,
        /// the action, such as s3:GetObject
        #[argh(option, arg_name = "action")]
        action: String,
        /// the bucket, or the object as <bucket>/<key>; policies write bucket: before it
        #[argh(option, arg_name = "resource")]
        resource: String,
    }
}

/// Describes a statement that applies, with its policy.
fn applied(one: &Value) -> String {
    let number = one["statement"].as_u64().map_or(0, |index| index + 1);
    format!("policy {}, statement {number}: {}", word(&one["policy_name"]), statement_text(one))
}

/// Describes the reason of a verdict.
fn reason(body: &Value) -> &str {
    match body["reason"].as_str() {
        Some("allowed") => "a statement allows it",
        Some("denied") => "a statement denies it, which overrides every other one",
        Some("no_statement") => "no statement allows it",
        Some("root") => "the root credential may do everything",
        Some("root_disabled") => "the root credential is not accepted for S3",
        Some("account_disabled") => "the account is disabled",
        Some("credential_disabled") => "the credential is disabled",
        Some("credential_expired") => "the credential has expired",
        Some(other) => other,
        None => "",
    }
}

fn verdict(body: &Value) -> String {
    let allowed = body["allowed"].as_bool() == Some(true);
    let mut shown = format!("{}: {}\n", if allowed { "allowed" } else { "denied" }, plain(reason(body)));
    // Writing to a string cannot fail.
    if body["decided_by"].is_object() {
        let _ = writeln!(shown, "  {}", applied(&body["decided_by"]));
    }
    for (index, other) in body["also_applying"].as_array().into_iter().flatten().enumerate() {
        if index == 0 {
            shown.push_str("also applying:\n");
        }
        let _ = writeln!(shown, "  {}", applied(other));
    }
    if let Some(count) = body["also_applying_omitted"].as_u64().filter(|count| *count > 0) {
        let _ = writeln!(shown, "  and {count} more");
    }
    if body["would_allow"].is_object() {
        let _ = writeln!(shown, "this statement would allow it:\n  {}", statement_text(&body["would_allow"]));
    }
    shown
}

impl Check {
    pub(super) fn run(&self) -> Outcome {
        let mut question = json!({"action": self.action});
        // Policies, and this command, write a resource with the prefix.
        let resource = self.resource.strip_prefix("bucket:").unwrap_or(&self.resource);
        match resource.split_once('/') {
            Some((bucket, key)) => {
                question["bucket"] = bucket.into();
                question["key"] = key.into();
            }
            None => question["bucket"] = resource.into(),
        }
        let client = self.client()?;
        let who = match (&self.account, &self.access_key) {
            (Some(account), None) => {
                question["account_id"] = ACCOUNTS.id_of(&client, account)?.into();
                format!("account {account}")
            }
            (None, Some(key)) => {
                question["access_key"] = key.as_str().into();
                format!("access key {key}")
            }
            _ => {
                let usage = "either --account or --access-key is required";
                return Err(Failure::WrongUsage(usage.to_owned()));
            }
        };
        let body = client.call(&Request::post("/api/v1/access/check").json(&question))?;
        client.print(&body, || verdict(&body))?;
        match body["allowed"].as_bool() {
            Some(true) => Ok(()),
            Some(false) => Err(plain(&format!("{who} may not do {} on {resource}", self.action)).into()),
            None => Err("the response is not a verdict".into()),
        }
    }
}
