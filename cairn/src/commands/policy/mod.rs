//! `cairn policy`: manages policies, which grant permissions to service accounts.

mod check;

use cairn_api::Policy as PolicyBody;

use crate::client::Request;
use crate::commands::macros::{command, noun, verbs};
use crate::commands::resources::{ACCOUNTS, POLICIES, statements_text};
use crate::document::DocumentKind;
use crate::failure::Outcome;
use crate::output::table::{Columns, record, text};
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

verbs! {
    POLICIES by {
        /// the policy's id, or a name that no other has
        policy
    }
    /// List the policies.
    list,
    /// Show a policy, its statements and the accounts that it is attached to.
    show,
    /// Delete a policy that is not attached to any account.
    delete,
}

const DOCUMENT: DocumentKind = DocumentKind { noun: "policy", command: "policy create" };

impl Create {
    fn run(&self) -> Outcome {
        let document = DOCUMENT.read(&self.file)?;
        let client = self.client()?;
        let body = client.call(&Request::post(POLICIES.path).document(document))?;
        // A new policy has no accounts, and the response does not name any.
        client.print_as(&body, |policy: &PolicyBody| {
            let columns: Columns<PolicyBody> = &[
                ("id", |policy| text(&policy.id)),
                ("name", |policy| text(&policy.name)),
                ("description", |policy| text(&policy.description)),
                ("created", |policy| text(&policy.created_at)),
            ];
            record(columns, policy) + &statements_text(policy)
        })
    }
}

impl Attach {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let policy = POLICIES.by_id_or_name(&client, &[&self.policy])?;
        let account = ACCOUNTS.id_of(&client, &self.account)?;
        let done = format!("policy {} is attached to {}", self.policy, self.account);
        client.change(&Request::put(format!("{policy}/bindings/{account}")), &done)
    }
}

impl Detach {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let policy = POLICIES.by_id_or_name(&client, &[&self.policy])?;
        let account = ACCOUNTS.id_of(&client, &self.account)?;
        let done = format!("policy {} is no longer attached to {}", self.policy, self.account);
        client.change(&Request::delete(format!("{policy}/bindings/{account}")), &done)
    }
}
