//! Compares policies and service accounts with the file.

use std::collections::{HashMap, HashSet};

use cairn_api::{BoundPolicy, CreateServiceAccount, GivenCredential, ServiceAccount};
use serde_json::{Value, json};

use crate::client::Request;
use crate::commands::apply::change::{Action, Change, Member, Step};
use crate::commands::apply::source::Problems;
use crate::commands::apply::state::State;
use crate::commands::apply::values;
use crate::commands::apply::wanted::{Placed, Wanted, WantedAccount, WantedPolicy};
use crate::commands::resources::{ACCOUNTS, POLICIES};

/// The policies and accounts of the file and of the server.
pub(super) struct Access<'a> {
    is_pruned: bool,
    problems: &'a Problems,
    /// Names of policies in the file.
    in_file: HashSet<&'a str>,
    policies: HashMap<&'a str, Vec<&'a BoundPolicy>>,
    accounts: HashMap<&'a str, &'a ServiceAccount>,
    /// The accounts of access keys.
    owners: HashMap<&'a str, &'a str>,
}

impl<'a> Access<'a> {
    pub(super) fn new(wanted: &'a Wanted, state: &'a State, is_pruned: bool, problems: &'a Problems) -> Self {
        let mut policies: HashMap<&str, Vec<&BoundPolicy>> = HashMap::new();
        for bound in &state.policies.policies {
            policies.entry(&bound.policy.name).or_default().push(bound);
        }
        let (mut accounts, mut owners) = (HashMap::new(), HashMap::new());
        for account in &state.accounts.service_accounts {
            accounts.insert(&*account.name, account);
            owners.extend(account.credentials.iter().map(|one| (&*one.access_key, &*account.name)));
        }
        let in_file = wanted.policies.iter().map(|policy| policy.name.as_str()).collect();
        Self { is_pruned, problems, in_file, policies, accounts, owners }
    }

    /// Returns what has to change for a policy to be as the file says; `None` if it is.
    pub(super) fn policy(&self, wanted: &WantedPolicy) -> Option<Change> {
        let WantedPolicy { place, name, description, statements } = wanted;
        match self.policies.get(&**name).map(Vec::as_slice) {
            None | Some([]) => {
                let mut change = Change::new(Action::Create, "policy", name.clone());
                if let Some(description) = description.as_ref().filter(|text| !text.is_empty()) {
                    change.members.push(Member::new("description", Value::Null, description.as_str()));
                }
                change.members.push(Member::new("statements", Value::Null, statements.clone()));
                let body = json!({
                    "name": name, "description": description.as_deref().unwrap_or_default(), "statements": statements
                });
                let request = Request::post(POLICIES.path).json(&body);
                change.steps.push(("the policy", Step::CreatePolicy { name: name.clone(), request }));
                Some(change)
            }
            Some([bound]) => {
                let mut change = Change::new(Action::Change, "policy", name.clone());
                let old = &*bound.policy.description;
                let new = description.as_deref().unwrap_or(old);
                if old != new {
                    change.members.push(Member::new("description", old, new));
                }
                let before: Vec<Value> = bound.policy.statements.iter().map(values::statement).collect();
                if before != *statements {
                    change.members.push(Member::new("statements", before, statements.clone()));
                }
                let body = json!({"name": name, "description": new, "statements": statements});
                let request = Request::put(POLICIES.path_of(&bound.policy.id)).json(&body);
                change.steps.push(("the policy", Step::Send(request)));
                (!change.members.is_empty()).then_some(change)
            }
            Some(several) => {
                let ids: Vec<&str> = several.iter().map(|bound| &*bound.policy.id).collect();
                self.problems.add(place, format_args!(
                    "the server has {} policies with the name {name:?}, so it is unclear which is meant: {}",
                    ids.len(),
                    ids.join(", ")
                ));
                None
            }
        }
    }

    /// Returns what has to change for an account to be as the file says; `None` if it is.
    pub(super) fn account(&self, wanted: &WantedAccount) -> Option<Change> {
        let change = match self.accounts.get(&*wanted.name) {
            None => self.new_account(wanted),
            Some(existing) => self.existing_account(wanted, existing),
        };
        (!change.steps.is_empty()).then_some(change)
    }

    fn new_account(&self, wanted: &WantedAccount) -> Change {
        let WantedAccount { name, description, enabled, credential, .. } = wanted;
        let mut change = Change::new(Action::Create, "account", name.clone());
        let description = description.as_ref().map_or("", |(_, text)| text);
        if !description.is_empty() {
            change.members.push(Member::new("description", Value::Null, description));
        }
        if let Some(credential) = credential {
            self.check_owner(credential);
            change.members.push(access_key(&credential.1));
        }
        let request = CreateServiceAccount {
            name: name.clone().into(),
            description: description.to_owned().into(),
            credential: credential.as_ref().map(|(_, keys)| copy(keys)),
        };
        change.steps.push(("the account", Step::CreateAccount(request)));
        if *enabled == Some(false) {
            let step = Step::SetAccountStatus { account: name.clone(), enabled: false };
            change.set(Member::new("enabled", Value::Null, false), step);
        }
        self.attachments(wanted, None, &mut change);
        change
    }

    fn existing_account(&self, wanted: &WantedAccount, existing: &ServiceAccount) -> Change {
        let WantedAccount { name, description, enabled, credential, .. } = wanted;
        let mut change = Change::new(Action::Change, "account", name.clone());
        if let Some((place, description)) = description
            && **description != *existing.description
        {
            self.problems.add(
                place,
                format_args!(
                    "the description of account {name:?} cannot be changed; it is {:?}",
                    &*existing.description
                ),
            );
        }
        if let Some(enabled) = enabled.filter(|enabled| *enabled != existing.enabled) {
            let step = Step::SetAccountStatus { account: name.clone(), enabled };
            change.set(Member::new("enabled", existing.enabled, enabled), step);
        }
        if let Some(credential) = credential
            && !existing.credentials.iter().any(|one| *one.access_key == *credential.1.access_key)
        {
            self.check_owner(credential);
            let step = Step::AddKeys { account: name.clone(), credential: copy(&credential.1) };
            change.set(access_key(&credential.1), step);
        }
        self.attachments(wanted, Some(existing), &mut change);
        change
    }

    /// Checks that no account has the access key.
    fn check_owner(&self, (place, keys): &Placed<GivenCredential>) {
        if let Some(owner) = self.owners.get(&*keys.access_key) {
            let key = &keys.access_key;
            self.problems.add(place, format_args!("the access key {key} belongs to account {owner:?}"));
        }
    }

    fn attachments(&self, wanted: &WantedAccount, existing: Option<&ServiceAccount>, change: &mut Change) {
        let attached = existing.map_or(&[][..], |account| &account.policies);
        let named = wanted.policies.as_deref().unwrap_or_default();
        named.iter().for_each(|policy| self.check_policy(policy));
        let mut after: Vec<&str> = Vec::new();
        for policy in attached {
            let is_wanted = named.iter().any(|(_, name)| **name == *policy.name);
            if is_wanted || !self.is_pruned {
                after.push(&policy.name);
            } else if let Some(account) = existing {
                let path = format!("{}/bindings/{}", POLICIES.path_of(&policy.id), &*account.id);
                change.steps.push(("policies", Step::Send(Request::delete(path))));
            }
        }
        for (_, name) in named {
            if !attached.iter().any(|policy| *policy.name == **name) {
                after.push(name);
                let step = Step::Attach { policy: name.clone(), account: wanted.name.clone() };
                change.steps.push(("policies", step));
            }
        }
        let before: Vec<&str> = attached.iter().map(|policy| &*policy.name).collect();
        if before != after {
            change.members.push(Member::new("policies", before, after));
        }
    }

    /// Checks that a name means one policy, which stays.
    fn check_policy(&self, (place, name): &Placed<String>) {
        if self.in_file.contains(&**name) {
            return;
        }
        match self.policies.get(&**name).map_or(0, Vec::len) {
            0 => self.problems.add(
                place,
                format_args!("there is no policy {name:?}, neither in the file nor on the server"),
            ),
            1 if self.is_pruned => self.problems.add(
                place,
                format_args!("the policy {name:?} is not in the file, so --prune would delete it: add it to the file"),
            ),
            1 => {}
            several => self.problems.add(
                place,
                format_args!("the server has {several} policies with the name {name:?}, so it is unclear which is meant"),
            ),
        }
    }
}

/// Returns the deletion of an account that is not in the file.
pub(super) fn account_deletion(account: &ServiceAccount) -> Change {
    let mut change = Change::new(Action::Delete, "account", account.name.to_string());
    let keys: Vec<&str> = account.credentials.iter().map(|one| &*one.access_key).collect();
    let policies: Vec<&str> = account.policies.iter().map(|policy| &*policy.name).collect();
    for (name, before) in [("access keys", keys), ("policies", policies)] {
        if !before.is_empty() {
            change.members.push(Member::new(name, before, Value::Null));
        }
    }
    change.steps.push(("the account", Step::Send(Request::delete(ACCOUNTS.path_of(&account.id)))));
    change
}

/// Returns the deletion of a policy that is not in the file.
pub(super) fn policy_deletion(bound: &BoundPolicy) -> Change {
    let policy = &bound.policy;
    let mut change = Change::new(Action::Delete, "policy", policy.name.to_string());
    let statements: Vec<Value> = policy.statements.iter().map(values::statement).collect();
    change.members.push(Member::new("statements", statements, Value::Null));
    change.steps.push(("the policy", Step::Send(Request::delete(POLICIES.path_of(&policy.id)))));
    change
}

fn access_key(keys: &GivenCredential) -> Member {
    Member::new("credential.access_key", Value::Null, &*keys.access_key)
}

fn copy(keys: &GivenCredential) -> GivenCredential {
    let GivenCredential { access_key, secret_key, expires_at } = keys;
    GivenCredential {
        access_key: access_key.clone(),
        secret_key: secret_key.clone(),
        expires_at: expires_at.clone(),
    }
}
