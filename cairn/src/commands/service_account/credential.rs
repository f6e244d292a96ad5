//! `cairn service-account rotate`, `temporary-credential` and `credential`: manages the credentials of service accounts.

use serde_json::{Value, json};

use crate::client::{Client, Request};
use crate::commands::macros::{command, noun, verbs};
use crate::commands::resources::{ACCOUNTS, CREDENTIALS};
use crate::failure::Outcome;
use crate::output::table::{Columns, record, text};
use crate::quantity::Duration;
use crate::terminal::word;

command! {
    /// Create an additional credential and print its secret key, once. Existing credentials keep working.
    struct Rotate("rotate") {
        /// the account's id or name
        #[argh(positional)]
        account: String,
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

const CREATED: Columns = &[
    ("credential", |body| text(&body["credential"]["id"])),
    ("access key", |body| text(&body["credential"]["access_key"])),
    ("secret key", |body| text(&body["credential"]["secret_key"])),
    ("expires", |body| text(&body["credential"]["expires_at"])),
];

/// Prints an answer with a new credential, and what to know about it; `lost` is said when it cannot be printed.
pub(crate) fn show_new(client: &Client, body: &Value, columns: Columns, note: &str, lost: &str) -> Outcome {
    if !["access_key", "secret_key"].iter().all(|name| body["credential"][name].is_string()) {
        return Err("the response contains no access key and secret key".into());
    }
    let text =
        || record(columns, body) + "\nThe secret key is shown only once: store it now.\n" + note + "\n";
    client.print_secret(body, text, lost)
}

/// Returns the message for an additional credential whose secret key could not be shown.
fn lost(account: &str, body: &Value) -> String {
    let id = word(&body["credential"]["id"]);
    format!(
        "the credential {id} was created, but its secret key is lost; \
         `cairn service-account credential delete {account} {id}` deletes it"
    )
}

impl Rotate {
    pub(crate) fn run(&self) -> Outcome {
        let client = self.client()?;
        let path = ACCOUNTS.by_id_or_name(&client, &[&self.account])? + "/credentials";
        let body = client.call(&Request::post(path))?;
        let note = "Older credentials work until `cairn service-account credential disable` or `delete`.";
        show_new(&client, &body, CREATED, note, &lost(&self.account, &body))
    }
}

impl TemporaryCredential {
    pub(crate) fn run(&self) -> Outcome {
        let client = self.client()?;
        let path = ACCOUNTS.by_id_or_name(&client, &[&self.account])? + "/temporary-credentials";
        let request = Request::post(path).json(&json!({"expires_in_seconds": self.expires_in.seconds}));
        let note = "It has only an access key and a secret key: there is no session token.";
        let body = client.call(&request)?;
        show_new(&client, &body, CREATED, note, &lost(&self.account, &body))
    }
}
