//! `cairn service-account`: manages the accounts that use the data plane.

mod credential;
mod given;
mod policies;

use cairn_api::{CreateServiceAccount, NewServiceAccount};

use crate::client::{Request, read};
use crate::commands::macros::{command, noun, verbs};
use crate::commands::resources::ACCOUNTS;
use crate::failure::Outcome;
use crate::output::table::{Columns, record, text};
use crate::terminal::plain;
use credential::{Credential, Rotate, TemporaryCredential, print_new};
use given::GivenKeys;
use policies::Policies;

noun! {
    /// Manage the accounts that use the data plane, and their credentials.
    struct ServiceAccount("service-account"): ServiceAccountCommand {
        Create, List, Show, Policies, Enable, Disable, Delete, Rotate, TemporaryCredential, Credential,
    }
}

command! {
    /// Create a service account, and print its access key and secret key, once. Keys that an application already has can be
    /// taken along.
    struct Create("create") {
        /// the account's name, which must be unique
        #[argh(positional)]
        name: String,
        /// what the account is used for
        #[argh(option, arg_name = "text", default = "String::new()")]
        description: String,
        /// the access key of an application that keeps its keys (default: a generated one)
        #[argh(option, arg_name = "key")]
        access_key: Option<String>,
        /// the file with its secret key; - means standard input
        #[argh(option, arg_name = "file")]
        secret_file: Option<String>,
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
const CREATED_WITH_GIVEN_KEYS: Columns<NewServiceAccount> = CREATED.split_at(3).0;
const NO_PERMISSIONS: &str = "It has no permissions until a policy is attached: `cairn policy attach`.";

impl Create {
    fn run(&self) -> Outcome {
        let keys =
            GivenKeys { access_key: self.access_key.as_deref(), secret_file: self.secret_file.as_deref() };
        let credential = keys.read()?;
        let is_given = credential.is_some();
        let request = CreateServiceAccount {
            name: self.name.clone().into(),
            description: self.description.clone().into(),
            credential,
        };
        let client = self.client()?;
        let body = client.call(&Request::post(ACCOUNTS.path).json(&request))?;
        if is_given {
            return client.print_as(&body, |new: &NewServiceAccount| {
                format!("{}\n{NO_PERMISSIONS}\n", record(CREATED_WITH_GIVEN_KEYS, new))
            });
        }
        let new: NewServiceAccount = read(&body)?;
        let id = plain(&new.service_account.id);
        let lost = format!(
            "the service account {id} was created, but its secret key is lost; `cairn service-account rotate {id}` \
             creates another, `cairn service-account delete {id}` deletes the account"
        );
        print_new(&client, &body, &record(CREATED, &new), NO_PERMISSIONS, &lost)
    }
}
