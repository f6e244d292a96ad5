//! `cairn token`: manages the tokens of the management plane.

use serde_json::json;

use crate::choice::choice;
use crate::client::Request;
use crate::commands::macros::{command, noun, verbs};
use crate::commands::resources::TOKENS;
use crate::failure::Outcome;
use crate::output::table::{Columns, record, text};
use crate::quantity::Duration;
use crate::terminal::word;

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

const CREATED: Columns = &[
    ("id", |body| text(&body["management_token"]["id"])),
    ("name", |body| text(&body["management_token"]["name"])),
    ("role", |body| text(&body["management_token"]["role"])),
    ("expires", |body| text(&body["management_token"]["expires_at"])),
    ("token", |body| text(&body["token"])),
];

impl Create {
    fn run(&self) -> Outcome {
        let mut request = json!({"name": self.name, "role": self.role.0});
        if let Some(Duration { seconds }) = self.expires_in {
            request["expires_in_seconds"] = seconds.into();
        }
        let client = self.client()?;
        let body = client.call(&Request::post(TOKENS.path).json(&request))?;
        if !body["token"].is_string() {
            return Err("the response contains no token".into());
        }
        let id = word(&body["management_token"]["id"]);
        let lost = format!(
            "the management token {id} was created but is lost; `cairn token delete {id}` deletes it"
        );
        let text = || {
            record(CREATED, &body)
                + "\nThe token is shown only once: store it now. Commands read it from SERVICE_MANAGEMENT_TOKEN.\n"
        };
        client.print_secret(&body, text, &lost)
    }
}
