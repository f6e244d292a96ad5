//! `cairn service-account`: manages the accounts that use the data plane.

mod credential;
mod policies;

use serde_json::json;

use crate::client::Request;
use crate::commands::macros::{command, noun, verbs};
use crate::commands::resources::ACCOUNTS;
use crate::failure::Outcome;
use crate::output::table::{Columns, text};
use crate::terminal::word;
use credential::{Credential, Rotate, TemporaryCredential};
use policies::Policies;

noun! {
    /// Manage the accounts that use the data plane, and their credentials.
    struct ServiceAccount("service-account"): ServiceAccountCommand {
        Create, List, Show, Policies, Enable, Disable, Delete, Rotate, TemporaryCredential, Credential,
    }
}

command! {
    /// Create a service account, and print its access key and secret key, once.
    struct Create("create") {
        /// the account's name, which must be unique
        #[argh(positional)]
        name: String,
        /// what the account is used for
        #[argh(option, arg_name = "text", default = "String::new()")]
        description: String,
    }
}

verbs! {
    ACCOUNTS by {
        /// the account's id or name
        account
    }
    /// List the service accounts.
    list,
    /// Show a service account, its credentials and policies.
    show,
    /// Enable a disabled service account.
    enable,
    /// Disable a service account with all its credentials, effective from the next request.
    disable,
    /// Delete a service account and its credentials permanently.
    delete,
}

const CREATED: Columns = &[
    ("service account", |body| text(&body["service_account"]["name"])),
    ("id", |body| text(&body["service_account"]["id"])),
    ("access key", |body| text(&body["credential"]["access_key"])),
    ("secret key", |body| text(&body["credential"]["secret_key"])),
];

impl Create {
    fn run(&self) -> Outcome {
        let request = json!({"name": self.name, "description": self.description});
        let client = self.client()?;
        let body = client.call(&Request::post(ACCOUNTS.path).json(&request))?;
        let id = word(&body["service_account"]["id"]);
        let lost = format!(
            "the service account {id} was created, but its secret key is lost; `cairn service-account rotate {id}` \
             creates another, `cairn service-account delete {id}` deletes the account"
        );
        credential::show_new(
            &client,
            &body,
            CREATED,
            "It has no permissions until a policy is attached: `cairn policy attach`.",
            &lost,
        )
    }
}
