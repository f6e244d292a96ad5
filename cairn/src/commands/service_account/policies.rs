//! `cairn service-account policies`: everything that an account may and may not do.

use std::fmt::Write as _;

use crate::client::{Request, rows};
use crate::commands::macros::command;
use crate::commands::resources::ACCOUNTS;
use crate::commands::statement::statement_text;
use crate::failure::Outcome;
use crate::terminal::word;

command! {
    /// List everything that an account may and may not do: the statements of its policies.
    struct Policies("policies") {
        /// the account's id or name
        #[argh(positional)]
        account: String,
    }
}

impl Policies {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let body =
            client.call(&Request::get(ACCOUNTS.by_id_or_name(&client, &[&self.account])? + "/policies"))?;
        let policies = rows(&body, "policies")?;
        client.print(&body, || {
            if policies.is_empty() {
                return "no policies: every request is refused\n".to_owned();
            }
            let mut shown = String::new();
            for policy in policies {
                // Writing to a string cannot fail.
                let _ = writeln!(shown, "{}", word(&policy["name"]));
                for one in policy["statements"].as_array().into_iter().flatten() {
                    let _ = writeln!(shown, "  {}", statement_text(one));
                }
            }
            shown
        })
    }
}
