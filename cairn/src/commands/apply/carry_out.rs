//! Makes the changes of a plan, until one fails.

use std::collections::HashMap;

use cairn_api::{CreateCredential, CreateServiceAccount, NewServiceAccount, NewWebhook, Policy, SetStatus};

use super::change::{Change, Step};
use super::state::State;
use crate::client::{Client, Request, read};
use crate::commands::resources::{ACCOUNTS, POLICIES, WEBHOOKS};
use crate::failure::Failure;
use crate::quantity::counted;
use crate::terminal::plain;

/// The changes that were carried out.
#[derive(Default)]
pub(super) struct Done {
    /// The number of changes that were made completely.
    pub(super) changes: usize,
    /// The next steps for what was made.
    pub(super) hints: Vec<String>,
    /// The reason why the next change was not made, and the other changes that were not.
    pub(super) failure: Option<String>,
}

/// Makes changes. `made` is told of each that is complete.
pub(super) fn carry_out(
    client: &Client,
    changes: &[Change],
    state: &State,
    mut made: impl FnMut(&Change),
) -> Done {
    let mut run = Run::new(client, state);
    let mut done = Done::default();
    for change in changes {
        for (index, (what, step)) in change.steps.iter().enumerate() {
            if let Err(failure) = run.take(step) {
                done.failure = Some(report(changes, done.changes, index, what, failure.message()));
                done.hints = run.hints;
                return done;
            }
        }
        made(change);
        done.changes += 1;
    }
    done.hints = run.hints;
    done
}

/// Says which step of which change failed, what of that change was made, and what was not made at all.
fn report(changes: &[Change], complete: usize, step: usize, what: &str, why: &str) -> String {
    let change = &changes[complete];
    let mut text = format!("{}: {what} failed: {why}", change.subject());
    let mut of_this: Vec<&str> = change.steps[..step].iter().map(|(what, _)| *what).collect();
    of_this.dedup();
    if !of_this.is_empty() {
        text.push_str(&format!("\n  made of this change: {}", of_this.join(", ")));
    }
    text.push_str(&format!("\n  made before: {}", counted(complete as u64, "change")));
    let rest: Vec<String> = changes[complete + 1..].iter().map(Change::subject).collect();
    if !rest.is_empty() {
        text.push_str(&format!("\n  not made: {}", rest.join(", ")));
    }
    text.push_str("\n  what was made stays; run the same command again to make the rest");
    text
}

/// A run, with the ids of accounts and policies by their names.
struct Run<'r> {
    client: &'r Client,
    policies: HashMap<String, String>,
    accounts: HashMap<String, String>,
    hints: Vec<String>,
}

impl<'r> Run<'r> {
    fn new(client: &'r Client, state: &State) -> Self {
        let policies = state.policies.policies.iter().map(|bound| &bound.policy);
        let accounts = state.accounts.service_accounts.iter();
        Self {
            client,
            policies: policies.map(|policy| (policy.name.to_string(), policy.id.to_string())).collect(),
            accounts: accounts.map(|account| (account.name.to_string(), account.id.to_string())).collect(),
            hints: Vec::new(),
        }
    }

    fn take(&mut self, step: &Step) -> Result<(), Failure> {
        match step {
            Step::Send(request) => self.client.call(request).map(drop),
            Step::CreatePolicy { name, request } => {
                let policy: Policy = read(&self.client.call(request)?)?;
                self.policies.insert(name.clone(), policy.id.into());
                Ok(())
            }
            Step::CreateAccount(request) => self.create_account(request),
            Step::SetAccountStatus { account, enabled } => {
                let path = ACCOUNTS.path_of(id(&self.accounts, account)) + "/status";
                self.client.call(&Request::put(path).json(&SetStatus { enabled: *enabled })).map(drop)
            }
            Step::AddKeys { account, credential } => {
                let path = ACCOUNTS.path_of(id(&self.accounts, account)) + "/credentials";
                let credential = cairn_api::GivenCredential {
                    access_key: credential.access_key.clone(),
                    secret_key: credential.secret_key.clone(),
                    expires_at: credential.expires_at.clone(),
                };
                let request = CreateCredential { credential: Some(credential) };
                self.client.call(&Request::post(path).json(&request)).map(drop)
            }
            Step::Attach { policy, account } => {
                let path = POLICIES.path_of(id(&self.policies, policy));
                let account = id(&self.accounts, account);
                self.client.call(&Request::put(format!("{path}/bindings/{account}"))).map(drop)
            }
            Step::CreateWebhook(request) => {
                let new: NewWebhook = read(&self.client.call(&Request::post(WEBHOOKS.path).json(request))?)?;
                let id = plain(&new.subscription.id);
                self.hints.push(format!(
                    "webhook {id} is signed with a secret that was not shown: `cairn webhook rotate-secret {id}` shows a new one"
                ));
                Ok(())
            }
        }
    }

    /// The server generates keys for an account without given ones. Nobody has seen their secret, so they are deleted.
    fn create_account(&mut self, request: &CreateServiceAccount) -> Result<(), Failure> {
        let new: NewServiceAccount = read(&self.client.call(&Request::post(ACCOUNTS.path).json(request))?)?;
        let (id, name) = (String::from(new.service_account.id), plain(&request.name));
        if request.credential.is_none() {
            let path = format!("{}/credentials/{}", ACCOUNTS.path_of(&id), &*new.credential.id);
            self.client.call(&Request::delete(path))?;
            self.hints.push(format!(
                "account {name} has no keys: `cairn service-account rotate {name}` makes and shows them"
            ));
        }
        self.accounts.insert(request.name.to_string(), id);
        Ok(())
    }
}

fn id<'i>(ids: &'i HashMap<String, String>, name: &str) -> &'i str {
    ids.get(name).unwrap_or_else(|| unreachable!("{name:?} was found or made before"))
}
