//! Compares the file with the server: the changes, in the order in which they are made.
//!
//! What something else needs comes first: policies before the accounts that they are attached to. Deletions come last, and in
//! the opposite order.

mod access;
mod buckets;
mod webhooks;

use std::collections::{HashMap, HashSet};

use super::change::Change;
use super::source::Problems;
use super::state::State;
use super::wanted::Wanted;
use access::Access;

/// The role that may do everything.
const SYSTEM_ADMIN: &str = "system_admin";
/// The role that may change buckets.
const STORAGE_ADMIN: &str = "storage_admin";

/// The plan of an apply: the changes that are needed.
pub(super) struct Plan {
    pub(super) changes: Vec<Change>,
    /// The things that the server has and the file does not, and that are left alone: kinds with names.
    pub(super) not_in_file: Vec<(&'static str, String)>,
}

impl Plan {
    /// Compares. What the server would refuse is added to the problems of the file.
    pub(super) fn new(wanted: &Wanted, state: &State, is_pruned: bool, problems: &Problems) -> Self {
        let access = Access::new(wanted, state, is_pruned, problems);
        let has_webhooks = is_pruned || !wanted.webhooks.is_empty();
        let sees_targets = state.role == SYSTEM_ADMIN;
        if has_webhooks && !sees_targets {
            problems.add_without_line(format_args!(
                "webhooks require a token with the role {SYSTEM_ADMIN}: others do not see their targets"
            ));
        }
        let mut changes = Vec::new();
        changes.extend(wanted.buckets.iter().filter_map(|bucket| buckets::change(bucket, state, problems)));
        changes.extend(wanted.policies.iter().filter_map(|policy| access.policy(policy)));
        changes.extend(wanted.accounts.iter().filter_map(|account| access.account(account)));
        if sees_targets {
            let change = |webhook| webhooks::change(webhook, state, problems);
            changes.extend(wanted.webhooks.iter().filter_map(change));
        }
        let mut plan = Self { changes, not_in_file: Vec::new() };
        if is_pruned {
            plan.prune(wanted, state, problems)
        } else {
            plan.note_others(wanted, state)
        }
        plan
    }

    /// Returns why a role may not make the changes.
    pub(super) fn refusal(&self, role: &str) -> Option<String> {
        let needed = if self.changes.iter().any(|change| change.kind != "bucket") {
            SYSTEM_ADMIN
        } else if self.changes.is_empty() || role == STORAGE_ADMIN {
            return None;
        } else {
            "system_admin or storage_admin"
        };
        (role != SYSTEM_ADMIN).then(|| {
            format!(
                "the changes require a token with the role {needed}; this one has {role}; nothing was changed"
            )
        })
    }

    /// Adds the deletions of what is not in the file.
    fn prune(&mut self, wanted: &Wanted, state: &State, problems: &Problems) {
        let others = Others { wanted, state };
        self.changes.extend(others.webhooks().map(webhooks::deletion));
        self.changes.extend(others.accounts().map(access::account_deletion));
        self.changes.extend(others.policies().map(access::policy_deletion));
        let deletion = |name: &str| buckets::deletion(name, state.contents.get(name)?, problems);
        self.changes.extend(others.buckets().filter_map(deletion));
    }

    /// Names what is not in the file. Only kinds are named that the file has.
    fn note_others(&mut self, wanted: &Wanted, state: &State) {
        let others = Others { wanted, state };
        if !wanted.buckets.is_empty() {
            self.not_in_file.extend(others.buckets().map(|name| ("bucket", name.to_owned())));
        }
        if !wanted.policies.is_empty() {
            self.not_in_file.extend(others.policies().map(|bound| ("policy", bound.policy.name.to_string())));
        }
        if !wanted.accounts.is_empty() {
            self.not_in_file.extend(others.accounts().map(|account| ("account", account.name.to_string())));
            self.not_in_file.extend(others.attachments().map(|text| ("attachment", text)));
        }
        if !wanted.webhooks.is_empty() {
            self.not_in_file.extend(others.webhooks().map(|webhook| ("webhook", webhooks::name_of(webhook))));
        }
    }
}

/// The resources that the server has and the file does not.
struct Others<'o> {
    wanted: &'o Wanted,
    state: &'o State,
}

impl<'o> Others<'o> {
    fn buckets(&self) -> impl Iterator<Item = &'o str> {
        let settings = &self.state.settings;
        let names = self.state.buckets.iter().map(|bucket| &*bucket.name);
        names.filter(|name| !settings.contains_key(*name))
    }

    fn policies(&self) -> impl Iterator<Item = &'o cairn_api::BoundPolicy> {
        let names: HashSet<&str> = self.wanted.policies.iter().map(|policy| policy.name.as_str()).collect();
        self.state.policies.policies.iter().filter(move |bound| !names.contains(&*bound.policy.name))
    }

    fn accounts(&self) -> impl Iterator<Item = &'o cairn_api::ServiceAccount> {
        let names: HashSet<&str> = self.wanted.accounts.iter().map(|account| account.name.as_str()).collect();
        self.state.accounts.service_accounts.iter().filter(move |account| !names.contains(&*account.name))
    }

    /// Policies of accounts whose `policies` the file has: `name of account name`.
    fn attachments(&self) -> impl Iterator<Item = String> {
        let existing = self.state.accounts.service_accounts.iter();
        let existing: HashMap<&str, _> = existing.map(|account| (&*account.name, account)).collect();
        self.wanted.accounts.iter().flat_map(move |wanted| {
            let account = existing.get(&*wanted.name).filter(|_| wanted.policies.is_some());
            let attached = account.map_or(&[][..], |account| &account.policies);
            let named = wanted.policies.as_deref().unwrap_or_default();
            let others = attached.iter().filter(|one| !named.iter().any(|(_, name)| **name == *one.name));
            others.map(|one| format!("policy {} of account {}", &*one.name, wanted.name)).collect::<Vec<_>>()
        })
    }

    fn webhooks(&self) -> impl Iterator<Item = &'o cairn_api::Webhook> {
        let wanted = &self.wanted.webhooks;
        let is_wanted =
            |webhook: &cairn_api::Webhook| wanted.iter().any(|one| webhooks::is_same(one, webhook));
        self.state.webhooks.webhooks.iter().filter(move |webhook| !is_wanted(webhook))
    }
}
