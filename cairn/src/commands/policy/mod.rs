//! `cairn policy`: manages policies, which grant permissions to service accounts.

mod check;
pub(super) mod template;

use cairn_api::Policy as PolicyBody;

use crate::client::Request;
use crate::commands::macros::{command, noun, verbs};
use crate::commands::resources::{ACCOUNTS, POLICIES, statements_text};
use crate::document::DocumentKind;
use crate::failure::{Failure, Outcome};
use crate::output::table::{Columns, record, text};
use crate::terminal::plain;
use check::Check;
use template::{Scope, Template};

noun! {
    /// Manage policies, attach them to service accounts, and check what they allow.
    struct Policy("policy"): PolicyCommand { Create, List, Show, Update, Attach, Detach, Check, Delete }
}

command! {
    /// Create a policy from a JSON file or from a template.
    #[argh(note = r#"A policy that allows an account to list the bucket photos and to read its objects:

  {{"name": "read-photos", "description": "", "statements": [
    {{"effect": "allow", "actions": ["s3:ListBucket"],
     "resources": ["bucket:photos"]}},
    {{"effect": "allow", "actions": ["s3:GetObject"],
     "resources": ["bucket:photos/*"]}}]}}

Templates: read-only lists and reads. read-write also writes and deletes. create-only lists, reads, and writes
new objects, but overwrites and deletes nothing."#)]
    struct Create("create") {
        /// the file; - means standard input
        #[argh(positional)]
        file: Option<String>,
        /// the template, in place of a file: read-only, read-write or create-only
        #[argh(option, arg_name = "template")]
        template: Option<Template>,
        /// the bucket of the template; app-* means all buckets whose names begin with app-
        #[argh(option, arg_name = "bucket")]
        bucket: Option<String>,
        /// the beginning of the keys of the template (default: all keys)
        #[argh(option, arg_name = "prefix")]
        prefix: Option<String>,
        /// the name of the policy (default: bucket, prefix and template)
        #[argh(option, arg_name = "name")]
        name: Option<String>,
    }
}

command! {
    /// Replace a policy's document by that of a JSON file. It is in force for the next request of every account that the
    /// policy is attached to.
    struct Update("update") {
        /// the policy's id, or a name that no other has
        #[argh(positional)]
        policy: String,
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
    /// Returns the document to send: that of the file, or that of the template.
    fn document(&self) -> Result<String, Failure> {
        let Self { file, template, bucket, prefix, name, .. } = self;
        let wrong = |usage: &str| Err(Failure::WrongUsage(usage.to_owned()));
        match (file, template, bucket) {
            (Some(file), None, None) if prefix.is_none() && name.is_none() => Ok(DOCUMENT.read(file)?),
            (Some(_), _, _) => {
                wrong("a file is given, so --template, --bucket, --prefix and --name are not possible")
            }
            (None, None, _) => wrong("either a file or --template is required"),
            (None, Some(_), None) => wrong("--template needs --bucket"),
            (None, Some(_), Some(bucket)) if bucket.ends_with('*') && prefix.is_some() => {
                wrong("--prefix is for one bucket: a pattern of buckets covers all their objects")
            }
            (None, Some(template), Some(bucket)) => {
                let scope = Scope { bucket, prefix: prefix.as_deref().unwrap_or_default() };
                let document = template.document(&scope, name.as_deref());
                Ok(serde_json::to_string(&document).expect("a document consists of texts"))
            }
        }
    }

    fn run(&self) -> Outcome {
        let document = self.document()?;
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

impl Update {
    fn run(&self) -> Outcome {
        let document = DOCUMENT.read(&self.file)?;
        let client = self.client()?;
        let policy = POLICIES.by_id_or_name(&client, &[&self.policy])?;
        let body = client.call(&Request::put(policy).document(document))?;
        client.print(&body, || format!("policy {} is replaced\n", plain(&self.policy)))
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
