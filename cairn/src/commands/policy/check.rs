//! `cairn policy check`: may an account do this, and which statement decides?

use std::fmt::Write as _;

use cairn_api::{AccessVerdict, CheckAccess};

use crate::client::{Request, read};
use crate::commands::macros::command;
use crate::commands::resources::ACCOUNTS;
use crate::commands::statement::{applied_text, statement_text};
use crate::failure::{Failure, Outcome};
use crate::terminal::plain;

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
        /// in place of an account: requests without credentials, which rules of public access may allow
        #[argh(switch)]
        anonymous: bool,
        /// the action, such as s3:GetObject
        #[argh(option, arg_name = "action")]
        action: String,
        /// the bucket, or the object as <bucket>/<key>; policies write bucket: before it
        #[argh(option, arg_name = "resource")]
        resource: String,
        /// the client's address, for statements with source_ip (default: only their denials apply)
        #[argh(option, arg_name = "address")]
        source_ip: Option<String>,
    }
}

/// Describes the reason of a verdict.
fn reason(reason: &str) -> &str {
    match reason {
        "allowed" => "a statement allows it",
        "denied" => "a statement denies it, which overrides every other one",
        "no_statement" => "no statement allows it",
        "public" => "a rule of public access allows it",
        "not_public" => "no rule of public access allows it, or public access is blocked",
        "root" => "the root credential may do everything",
        "root_disabled" => "the root credential is not accepted for S3",
        "account_disabled" => "the account is disabled",
        "credential_disabled" => "the credential is disabled",
        "credential_expired" => "the credential has expired",
        other => other,
    }
}

fn verdict_text(verdict: &AccessVerdict) -> String {
    let allowed = match verdict {
        AccessVerdict { allowed: true, only_if_absent: true, .. } => "allowed for keys without an object",
        AccessVerdict { allowed: true, .. } => "allowed",
        AccessVerdict { allowed: false, .. } => "denied",
    };
    let mut shown = format!("{allowed}: {}\n", plain(reason(&verdict.reason)));
    // Writing to a string cannot fail.
    if let Some(statement) = &verdict.decided_by {
        let _ = writeln!(shown, "  {}", applied_text(statement));
    }
    if !verdict.also_applying.is_empty() {
        shown.push_str("also applying:\n");
    }
    for other in &verdict.also_applying {
        let _ = writeln!(shown, "  {}", applied_text(other));
    }
    if verdict.also_applying_omitted > 0 {
        let _ = writeln!(shown, "  and {} more", verdict.also_applying_omitted);
    }
    if let Some(statement) = &verdict.would_allow {
        let _ = writeln!(shown, "this statement would allow it:\n  {}", statement_text(statement));
    }
    shown
}

impl Check {
    pub(super) fn run(&self) -> Outcome {
        // Policies, and this command, write a resource with the prefix.
        let resource = self.resource.strip_prefix("bucket:").unwrap_or(&self.resource);
        let (bucket, key) =
            resource.split_once('/').map_or((resource, None), |(bucket, key)| (bucket, Some(key.to_owned())));
        let client = self.client()?;
        let (account_id, who) = match (&self.account, &self.access_key) {
            (None, None) if self.anonymous => (None, "anybody".to_owned()),
            (Some(account), None) if !self.anonymous => {
                (Some(ACCOUNTS.id_of(&client, account)?.into()), format!("account {account}"))
            }
            (None, Some(key)) if !self.anonymous => (None, format!("access key {key}")),
            _ => {
                let usage = "either --account or --access-key is required, or --anonymous";
                return Err(Failure::WrongUsage(usage.to_owned()));
            }
        };
        let question = CheckAccess {
            account_id,
            access_key: self.access_key.clone(),
            anonymous: self.anonymous.then_some(true),
            action: self.action.clone().into(),
            bucket: bucket.to_owned().into(),
            key: key.map(Into::into),
            source_ip: self.source_ip.clone().map(Into::into),
        };
        let body = client.call(&Request::post("/api/v1/access/check").json(&question))?;
        let verdict: AccessVerdict = read(&body)?;
        client.print(&body, || {
            let mut text = verdict_text(&verdict);
            if *verdict.reason == *"no_statement" && self.source_ip.is_none() {
                text.push_str("  without --source-ip, allowances with source_ip do not count\n");
            }
            text
        })?;
        if verdict.allowed {
            return Ok(());
        }
        Err(plain(&format!("{who} may not do {} on {resource}", self.action)).into())
    }
}
