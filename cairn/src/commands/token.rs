//! `cairn token`: manages the tokens of the management plane.

use cairn_api::{CreateManagementToken, NewManagementToken};

use crate::choice::choice;
use crate::client::{Request, read};
use crate::commands::macros::{command, noun, verbs};
use crate::commands::resources::TOKENS;
use crate::failure::Outcome;
use crate::output::table::{Columns, record, text};
use crate::quantity::Duration;
use crate::terminal::plain;

noun! {
    /// Manage the tokens of the management plane.
    struct Token("token"): TokenCommand { Create, List, Delete }
}

command! {
    /// Create a management token, and print it, once.
    struct Create("create") {
        /// the token's name
        #[argh(positional)]
        name: String,
        /// system_admin, storage_admin or auditor
        #[argh(option, arg_name = "role")]
        role: Role,
        /// how long it is valid, for example 900, 15m, 12h or 90d (default: no limit)
        #[argh(option, arg_name = "duration")]
        expires_in: Option<Duration>,
    }
}

verbs! {
    TOKENS by {
        /// the token's id, or a name that no other has
        token
    }
    /// List the management tokens.
    list,
    /// Delete a management token, effective from the next request.
    delete,
}

choice! {
    /// The role of a token.
    Role = "system_admin" | "storage_admin" | "auditor"
}

const CREATED: Columns<NewManagementToken> = &[
    ("id", |new| text(&new.management_token.id)),
    ("name", |new| text(&new.management_token.name)),
    ("role", |new| text(&new.management_token.role)),
    ("expires", |new| text(&new.management_token.expires_at)),
    ("token", |new| text(&new.token)),
];

impl Create {
    fn run(&self) -> Outcome {
        let request = CreateManagementToken {
            name: self.name.clone().into(),
            role: self.role.0.into(),
            expires_in_seconds: self.expires_in.map(|Duration { seconds }| seconds),
        };
        let client = self.client()?;
        let body = client.call(&Request::post(TOKENS.path).json(&request))?;
        let new: NewManagementToken = read(&body)?;
        let id = plain(&new.management_token.id);
        let lost = format!(
            "the management token {id} was created but is lost; `cairn token delete {id}` deletes it"
        );
        let text = || {
            record(CREATED, &new)
                + "\nThe token is shown only once: store it now. Commands read it from SERVICE_MANAGEMENT_TOKEN.\n"
        };
        client.print_secret(&body, text, &lost)
    }
}
