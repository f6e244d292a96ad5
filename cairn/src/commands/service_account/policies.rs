//! `cairn service-account policies`: everything that an account may and may not do.

use cairn_api::{Policy, PolicyStatements, Statement};

use crate::client::Request;
use crate::commands::macros::command;
use crate::commands::resources::ACCOUNTS;
use crate::commands::statement::statement_text;
use crate::failure::Outcome;
use crate::terminal::plain;

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
        client.print_as(&body, |PolicyStatements { policies }| {
            if policies.is_empty() {
                return "no policies: every request is refused\n".to_owned();
            }
            let statement = |one: &Statement| format!("  {}\n", statement_text(one));
            let policy = |policy: &Policy| {
                plain(&policy.name) + "\n" + &policy.statements.iter().map(statement).collect::<String>()
            };
            policies.iter().map(policy).collect()
        })
    }
}
