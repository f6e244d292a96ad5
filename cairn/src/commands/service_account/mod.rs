//! `cairn service-account`: manages the accounts that use the data plane.

mod credential;
mod policies;

use serde_json::{Value, json};

use crate::client::Request;
use crate::client::resource::ResourceKind;
use crate::commands::macros::{command, noun};
use crate::failure::Outcome;
use crate::output::table::{Columns, record, table, text};
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

command! {
    /// List the service accounts.
    struct List("list") {}
}

command! {
    /// Show a service account, its credentials and policies.
    struct Show("show") {
        /// the account's id or name
        #[argh(positional)]
        account: String,
    }
}

command! {
    /// Enable a disabled service account.
    struct Enable("enable") {
        /// the account's id or name
        #[argh(positional)]
        account: String,
    }
}

command! {
    /// Disable a service account with all its credentials, effective from the next request.
    struct Disable("disable") {
        /// the account's id or name
        #[argh(positional)]
        account: String,
    }
}

command! {
    /// Delete a service account and its credentials permanently.
    struct Delete("delete") {
        /// the account's id or name
        #[argh(positional)]
        account: String,
    }
}

/// How the management plane lists accounts.
pub(crate) const ACCOUNTS: ResourceKind = ResourceKind {
    path: "/api/v1/service-accounts",
    list: "service_accounts",
    noun: "service account",
    command: "service-account list",
};

const LISTED: Columns = &[
    ("id", |account| text(&account["id"])),
    ("name", |account| text(&account["name"])),
    ("enabled", |account| text(&account["enabled"])),
    ("credentials", |account| count(&account["credentials"])),
    ("policies", |account| count(&account["policies"])),
    ("created", |account| text(&account["created_at"])),
    ("description", |account| text(&account["description"])),
];

const SHOWN: Columns = &[
    ("id", |account| text(&account["id"])),
    ("name", |account| text(&account["name"])),
    ("description", |account| text(&account["description"])),
    ("enabled", |account| text(&account["enabled"])),
    ("created", |account| text(&account["created_at"])),
];

const POLICIES: Columns =
    &[("policy", |policy| text(&policy["id"])), ("name", |policy| text(&policy["name"]))];

const CREATED: Columns = &[
    ("service account", |body| text(&body["service_account"]["name"])),
    ("id", |body| text(&body["service_account"]["id"])),
    ("access key", |body| text(&body["credential"]["access_key"])),
    ("secret key", |body| text(&body["credential"]["secret_key"])),
];

fn count(list: &Value) -> String {
    list.as_array().map_or_else(|| text(list), |list| list.len().to_string())
}

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

impl List {
    fn run(&self) -> Outcome {
        self.client()?.list(ACCOUNTS.path, ACCOUNTS.list, LISTED)
    }
}

impl Show {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let body = client.call(&Request::get(ACCOUNTS.path_of(&client, &self.account)?))?;
        let rows = |name: &str| body[name].as_array().map_or(&[][..], Vec::as_slice);
        client.print(&body, || {
            let credentials = table(credential::LISTED, rows("credentials"));
            [record(SHOWN, &body), credentials, table(POLICIES, rows("policies"))].join("\n")
        })
    }
}

impl Enable {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let path = ACCOUNTS.path_of(&client, &self.account)? + "/status";
        let done = format!("service account {} is enabled", self.account);
        client.change(&Request::put(path).json(&json!({"enabled": true})), &done)
    }
}

impl Disable {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let path = ACCOUNTS.path_of(&client, &self.account)? + "/status";
        let done = format!("service account {} is disabled", self.account);
        client.change(&Request::put(path).json(&json!({"enabled": false})), &done)
    }
}

impl Delete {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let path = ACCOUNTS.path_of(&client, &self.account)?;
        client.change(&Request::delete(path), &format!("service account {} was deleted", self.account))
    }
}
