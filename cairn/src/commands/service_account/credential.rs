//! `cairn service-account rotate`, `temporary-credential` and `credential`: manages the credentials of service accounts.

use cairn_api::{CreateCredential, CreateTemporaryCredential, CredentialWithSecret, NewCredential};
use serde_json::Value;

use super::given::GivenKeys;
use crate::client::{Client, Request, read};
use crate::commands::macros::{command, noun, verbs};
use crate::commands::resources::{ACCOUNTS, CREDENTIALS};
use crate::failure::Outcome;
use crate::output::table::{Columns, record, text};
use crate::quantity::Duration;
use crate::terminal::plain;

command! {
    /// Create an additional credential and print its secret key, once. Existing credentials keep working.
    struct Rotate("rotate") {
        /// the account's id or name
        #[argh(positional)]
        account: String,
        /// the access key of an application that keeps its keys (default: a generated one)
        #[argh(option, arg_name = "key")]
        access_key: Option<String>,
        /// the file with its secret key; - means standard input
        #[argh(option, arg_name = "file")]
        secret_file: Option<String>,
    }
}

command! {
    /// Create a credential that expires, and print its secret key, once.
    struct TemporaryCredential("temporary-credential") {
        /// the account's id or name
        #[argh(positional)]
        account: String,
        /// how long it is valid, for example 900, 15m, 12h or 7d
        #[argh(option, arg_name = "duration")]
        expires_in: Duration,
    }
}

noun! {
    /// Enable, disable and delete single credentials of an account.
    struct Credential("credential"): CredentialCommand { Enable, Disable, Delete }
}

verbs! {
    CREDENTIALS by {
        /// the account's id or name
        account,
        /// the credential's id or access key
        credential
    }
    /// Enable a disabled credential.
    enable,
    /// Disable a credential, effective from the next request.
    disable,
    /// Delete a credential permanently.
    delete,
}

const CREATED: Columns<CredentialWithSecret> = &[
    ("credential", |new| text(&new.credential.id)),
    ("access key", |new| text(&new.credential.access_key)),
    ("secret key", |new| text(&new.secret_key)),
    ("expires", |new| text(&new.credential.expires_at)),
];
const CREATED_WITH_GIVEN_KEYS: Columns<CredentialWithSecret> = CREATED.split_at(2).0;
const OLDER_ONES: &str =
    "Older credentials work until `cairn service-account credential disable` or `delete`.";

/// Prints a response with a new secret key: its text, and what to know about it. `lost` is said when it cannot be printed.
pub(super) fn print_new(client: &Client, body: &Value, text: &str, note: &str, lost: &str) -> Outcome {
    let text = || format!("{text}\nThe secret key is shown only once: store it now.\n{note}\n");
    client.print_secret(body, text, lost)
}

/// Prints an additional credential of an account.
fn print_additional(client: &Client, account: &str, body: &Value, note: &str) -> Outcome {
    let NewCredential { credential } = read(body)?;
    let id = plain(&credential.credential.id);
    let lost = format!(
        "the credential {id} was created, but its secret key is lost; \
         `cairn service-account credential delete {account} {id}` deletes it"
    );
    print_new(client, body, &record(CREATED, &credential), note, &lost)
}

impl Rotate {
    pub(crate) fn run(&self) -> Outcome {
        let keys =
            GivenKeys { access_key: self.access_key.as_deref(), secret_file: self.secret_file.as_deref() };
        let credential = keys.read()?;
        let is_given = credential.is_some();
        let client = self.client()?;
        let path = ACCOUNTS.by_id_or_name(&client, &[&self.account])? + "/credentials";
        let request = Request::post(path);
        let body = client.call(&match credential {
            Some(_) => request.json(&CreateCredential { credential }),
            None => request,
        })?;
        if is_given {
            return client.print_as(&body, |NewCredential { credential }| {
                format!("{}\n{OLDER_ONES}\n", record(CREATED_WITH_GIVEN_KEYS, credential))
            });
        }
        print_additional(&client, &self.account, &body, OLDER_ONES)
    }
}

impl TemporaryCredential {
    pub(crate) fn run(&self) -> Outcome {
        let client = self.client()?;
        let path = ACCOUNTS.by_id_or_name(&client, &[&self.account])? + "/temporary-credentials";
        let request = Request::post(path)
            .json(&CreateTemporaryCredential { expires_in_seconds: self.expires_in.seconds });
        let note = "It has only an access key and a secret key: there is no session token.";
        let body = client.call(&request)?;
        print_additional(&client, &self.account, &body, note)
    }
}
