//! `cairn policy`: manages policies, which grant permissions to service accounts.

mod check;

use serde_json::Value;

use crate::client::Request;
use crate::client::resource::ResourceKind;
use crate::commands::macros::{command, noun};
use crate::commands::service_account::ACCOUNTS;
use crate::commands::statement::statement_text;
use crate::document::DocumentKind;
use crate::failure::Outcome;
use crate::output::table::{Columns, record, text};
use crate::terminal::word;
use check::Check;

noun! {
    /// Manage policies, attach them to service accounts, and check what they allow.
    struct Policy("policy"): PolicyCommand { Create, List, Show, Attach, Detach, Check, Delete }
}

command! {
    /// Create a policy from a JSON file.
    #[argh(note = r#"A policy that allows an account to list the bucket photos and to read its objects:

  {{"name": "read-photos", "description": "", "statements": [
    {{"effect": "allow", "actions": ["s3:ListBucket"],
     "resources": ["bucket:photos"]}},
    {{"effect": "allow", "actions": ["s3:GetObject"],
     "resources": ["bucket:photos/*"]}}]}}"#)]
    struct Create("create") {
        /// the file; - means standard input
        #[argh(positional)]
        file: String,
    }
}

command! {
    /// List the policies.
    struct List("list") {}
}

command! {
    /// Show a policy, its statements and the accounts that it is attached to.
    struct Show("show") {
        /// the policy's id, or a name that no other has
        #[argh(positional)]
        policy: String,
    }
}

command! {
    /// Attach a policy to a service account.
    struct Attach("attach") {
        /// the policy's id, or a name that no other has
        #[argh(positional)]
        policy: String,
        /// the account's id or name
        #[argh(positional)]
        account: String,
    }
}

command! {
    /// Detach a policy from a service account.
    struct Detach("detach") {
        /// the policy's id, or a name that no other has
        #[argh(positional)]
        policy: String,
        /// the account's id or name
        #[argh(positional)]
        account: String,
    }
}

command! {
    /// Delete a policy that is not attached to any account.
    struct Delete("delete") {
        /// the policy's id, or a name that no other has
        #[argh(positional)]
        policy: String,
    }
}

const POLICIES: ResourceKind =
    ResourceKind { path: "/api/v1/policies", list: "policies", noun: "policy", command: "policy list" };
const DOCUMENT: DocumentKind = DocumentKind { noun: "policy", command: "policy create" };

const LISTED: Columns = &[
    ("id", |policy| text(&policy["id"])),
    ("name", |policy| text(&policy["name"])),
    ("statements", |policy| items(&policy["statements"]).len().to_string()),
    ("accounts", |policy| items(&policy["attached_to"]).len().to_string()),
    ("created", |policy| text(&policy["created_at"])),
    ("description", |policy| text(&policy["description"])),
];

const SHOWN: Columns = &[
    ("id", |policy| text(&policy["id"])),
    ("name", |policy| text(&policy["name"])),
    ("description", |policy| text(&policy["description"])),
    ("created", |policy| text(&policy["created_at"])),
];

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn policy_text(policy: &Value) -> String {
    let statement = |one: &Value| format!("  {}\n", statement_text(one));
    let mut shown = record(SHOWN, policy) + "statements:\n";
    shown.extend(items(&policy["statements"]).iter().map(statement));
    // The response to a creation does not contain it, because no account has the policy yet.
    if policy["attached_to"].is_array() {
        shown.push_str("attached to:\n");
        shown.extend(items(&policy["attached_to"]).iter().map(|account| format!("  {}\n", word(account))));
    }
    shown
}

impl Create {
    fn run(&self) -> Outcome {
        let document = DOCUMENT.read(&self.file)?;
        let client = self.client()?;
        let body = client.call(&Request::post(POLICIES.path).document(document))?;
        client.print(&body, || policy_text(&body))
    }
}

impl List {
    fn run(&self) -> Outcome {
        self.client()?.list(POLICIES.path, POLICIES.list, LISTED)
    }
}

impl Show {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let body = client.call(&Request::get(POLICIES.path_of(&client, &self.policy)?))?;
        client.print(&body, || policy_text(&body))
    }
}

impl Attach {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let policy = POLICIES.path_of(&client, &self.policy)?;
        let account = ACCOUNTS.id_of(&client, &self.account)?;
        let done = format!("policy {} is attached to {}", self.policy, self.account);
        client.change(&Request::put(format!("{policy}/bindings/{account}")), &done)
    }
}

impl Detach {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let policy = POLICIES.path_of(&client, &self.policy)?;
        let account = ACCOUNTS.id_of(&client, &self.account)?;
        let done = format!("policy {} is no longer attached to {}", self.policy, self.account);
        client.change(&Request::delete(format!("{policy}/bindings/{account}")), &done)
    }
}

impl Delete {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let path = POLICIES.path_of(&client, &self.policy)?;
        client.change(&Request::delete(path), &format!("policy {} was deleted", self.policy))
    }
}
