//! `cairn service-account`: manages the accounts that use the data plane.

mod credential;
mod policies;

use cairn_api::{CreateServiceAccount, NewServiceAccount};

use crate::client::{Request, read};
use crate::commands::macros::{command, noun, verbs};
use crate::commands::resources::ACCOUNTS;
use crate::failure::Outcome;
use crate::output::table::{Columns, record, text};
use crate::terminal::plain;
use credential::{Credential, Rotate, TemporaryCredential, print_new};
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

const CREATED: Columns<NewServiceAccount> = &[
    ("service account", |new| text(&new.service_account.name)),
    ("id", |new| text(&new.service_account.id)),
    ("access key", |new| text(&new.credential.access_key)),
    ("secret key", |new| text(&new.credential.secret_key)),
];

impl Create {
    fn run(&self) -> Outcome {
        let request = CreateServiceAccount {
            name: self.name.clone().into(),
            description: self.description.clone().into(),
        };
        let client = self.client()?;
        let body = client.call(&Request::post(ACCOUNTS.path).json(&request))?;
        let new: NewServiceAccount = read(&body)?;
        let id = plain(&new.service_account.id);
        let lost = format!(
            "the service account {id} was created, but its secret key is lost; `cairn service-account rotate {id}` \
             creates another, `cairn service-account delete {id}` deletes the account"
        );
        let note = "It has no permissions until a policy is attached: `cairn policy attach`.";
        print_new(&client, &body, &record(CREATED, &new), note, &lost)
    }
}
