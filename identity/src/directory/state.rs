//! The directory in memory: the contents of the records, and indexes over them.

use super::secret::TokenHash;
use super::view::{Account, AttachedPolicy, CredentialInfo, ManagementToken, PolicyInfo};
use crate::id::{AccountId, CredentialId, PolicyId, TokenId};
use crate::last_use::LastUse;
use crate::policy::{Policy, Rights};
use crate::role::Role;
use cairn_model::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub(super) struct AccountState {
    pub(super) name: Arc<str>,
    pub(super) description: String,
    pub(super) enabled: bool,
    pub(super) created_at: Timestamp,
    pub(super) credentials: BTreeMap<CredentialId, CredentialState>,
    pub(super) policies: BTreeSet<PolicyId>,
    pub(super) rights: Arc<Rights>,
}

#[derive(Clone)]
pub(super) struct CredentialState {
    pub(super) access_key: Arc<str>,
    pub(super) sealed_secret: Arc<[u8]>,
    pub(super) enabled: bool,
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) last_used: Arc<LastUse>,
    /// It had expired before the clock was set back.
    pub(super) marked_expired: bool,
}

pub(super) struct PolicyState {
    pub(super) policy: Arc<Policy>,
    /// Number of resources in all statements.
    pub(super) resources: usize,
    pub(super) created_at: Timestamp,
    pub(super) attached_to: BTreeSet<AccountId>,
}

impl PolicyState {
    /// Makes the state of a policy that is not attached to any account.
    pub(super) fn new(policy: Arc<Policy>, created_at: Timestamp) -> Self {
        Self { resources: policy.pattern_count(), policy, created_at, attached_to: BTreeSet::new() }
    }
}

pub(super) struct TokenState {
    pub(super) name: Arc<str>,
    pub(super) role: Role,
    pub(super) hash: TokenHash,
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Option<Timestamp>,
    /// It had expired before the clock was set back.
    pub(super) marked_expired: bool,
}

/// Returns whether an expiry time has been reached.
pub(super) fn is_expired(expires_at: Option<Timestamp>, now: Timestamp) -> bool {
    expires_at.is_some_and(|expires_at| now >= expires_at)
}

impl CredentialState {
    pub(super) fn info(&self, id: CredentialId) -> CredentialInfo {
        CredentialInfo {
            id,
            access_key: Arc::clone(&self.access_key),
            enabled: self.enabled,
            created_at: self.created_at,
            expires_at: self.expires_at,
            last_used_at: self.last_used.get(),
        }
    }
}

impl TokenState {
    pub(super) fn info(&self, id: TokenId) -> ManagementToken {
        ManagementToken {
            id,
            name: Arc::clone(&self.name),
            role: self.role,
            created_at: self.created_at,
            expires_at: self.expires_at,
        }
    }
}

/// The contents of the directory.
///
/// Invariants: every credential and binding has its account, and every binding has its policy. Account names, access keys and
/// token hashes are unique. `rights` of an account are its compiled policies. `policy_names` has every policy under its name.
#[derive(Default)]
pub(super) struct State {
    pub(super) accounts: BTreeMap<AccountId, AccountState>,
    pub(super) policies: BTreeMap<PolicyId, PolicyState>,
    pub(super) tokens: BTreeMap<TokenId, TokenState>,
    account_names: HashMap<Arc<str>, AccountId>,
    access_keys: HashMap<Arc<str>, (AccountId, CredentialId)>,
    token_hashes: HashMap<TokenHash, TokenId>,
    /// Names of policies are not unique.
    policy_names: HashMap<Box<str>, BTreeSet<PolicyId>>,
    /// Resources in all policies.
    resources: usize,
    /// Resources in the policies of each account, summed over all accounts.
    attached_resources: usize,
}

impl State {
    /// Adds an account. Returns `false` if its name or id is taken.
    pub(super) fn add_account(&mut self, id: AccountId, account: AccountState) -> bool {
        if self.account_names.insert(Arc::clone(&account.name), id).is_some() {
            return false;
        }
        self.accounts.insert(id, account).is_none()
    }

    /// Removes an account with its credentials and bindings, if it exists.
    pub(super) fn remove_account(&mut self, id: AccountId) {
        let Some(account) = self.accounts.remove(&id) else { return };
        self.account_names.remove(&account.name);
        for credential in account.credentials.values() {
            self.access_keys.remove(&credential.access_key);
        }
        for policy in &account.policies {
            if let Some(policy) = self.policies.get_mut(policy) {
                policy.attached_to.remove(&id);
                self.attached_resources -= policy.resources;
            }
        }
    }

    /// Adds a credential. Returns `false` if the account does not exist, or the access key or id is taken.
    pub(super) fn add_credential(
        &mut self,
        account: AccountId,
        id: CredentialId,
        credential: CredentialState,
    ) -> bool {
        let Some(owner) = self.accounts.get_mut(&account) else { return false };
        let is_new = self.access_keys.insert(Arc::clone(&credential.access_key), (account, id)).is_none();
        owner.credentials.insert(id, credential).is_none() && is_new
    }

    pub(super) fn remove_credential(&mut self, account: AccountId, id: CredentialId) {
        let removed = self.accounts.get_mut(&account).and_then(|account| account.credentials.remove(&id));
        if let Some(credential) = removed {
            self.access_keys.remove(&credential.access_key);
        }
    }

    pub(super) fn add_policy(&mut self, id: PolicyId, policy: PolicyState) {
        self.resources += policy.resources;
        self.policy_names.entry(policy.policy.name.as_str().into()).or_default().insert(id);
        let replaced = self.policies.insert(id, policy);
        assert!(replaced.is_none(), "the id of a new policy is not in use");
    }

    /// Replaces the document of a policy that exists, without updating the rights of its accounts.
    pub(super) fn replace_policy(&mut self, id: PolicyId, policy: Arc<Policy>) {
        let Some(found) = self.policies.get_mut(&id) else { return };
        let (before, after) = (found.resources, policy.pattern_count());
        let replaced = std::mem::replace(&mut found.policy, Arc::clone(&policy));
        found.resources = after;
        self.resources = self.resources - before + after;
        let accounts = found.attached_to.len();
        self.attached_resources = self.attached_resources - before * accounts + after * accounts;
        self.forget_policy_name(&replaced.name, id);
        self.policy_names.entry(policy.name.as_str().into()).or_default().insert(id);
    }

    fn forget_policy_name(&mut self, name: &str, id: PolicyId) {
        if let Some(named) = self.policy_names.get_mut(name) {
            named.remove(&id);
            if named.is_empty() {
                self.policy_names.remove(name);
            }
        }
    }

    /// Returns the policies with this name.
    pub(super) fn policies_named(&self, name: &str) -> impl Iterator<Item = (PolicyId, &PolicyState)> {
        let named = self.policy_names.get(name).into_iter().flatten();
        named.filter_map(|id| Some((*id, self.policies.get(id)?)))
    }

    /// Removes a policy that is not attached to any account, if it exists.
    pub(super) fn remove_policy(&mut self, id: PolicyId) {
        if let Some(policy) = self.policies.remove(&id) {
            assert!(policy.attached_to.is_empty(), "an attached policy cannot be deleted");
            self.resources -= policy.resources;
            self.forget_policy_name(&policy.policy.name, id);
        }
    }

    /// Returns the number of resources in all policies.
    pub(super) fn resources(&self) -> usize {
        self.resources
    }

    /// Returns the number of resources in the policies of each account, summed over all accounts.
    pub(super) fn attached_resources(&self) -> usize {
        self.attached_resources
    }

    /// Attaches a policy without compiling it. Returns `false` if the account or the policy does not exist.
    pub(super) fn bind(&mut self, account: AccountId, policy: PolicyId) -> bool {
        let (Some(owner), Some(bound)) = (self.accounts.get_mut(&account), self.policies.get_mut(&policy))
        else {
            return false;
        };
        if owner.policies.insert(policy) {
            self.attached_resources += bound.resources;
        }
        bound.attached_to.insert(account);
        true
    }

    /// Detaches a policy without updating the account's rights.
    pub(super) fn unbind(&mut self, account: AccountId, policy: PolicyId) {
        if let Some(account) = self.accounts.get_mut(&account) {
            account.policies.remove(&policy);
        }
        if let Some(policy) = self.policies.get_mut(&policy)
            && policy.attached_to.remove(&account)
        {
            self.attached_resources -= policy.resources;
        }
    }

    /// Adds a token. Returns `false` if its hash or id is taken.
    pub(super) fn add_token(&mut self, id: TokenId, token: TokenState) -> bool {
        let is_new = self.token_hashes.insert(token.hash, id).is_none();
        self.tokens.insert(id, token).is_none() && is_new
    }

    pub(super) fn remove_token(&mut self, id: TokenId) {
        if let Some(token) = self.tokens.remove(&id) {
            self.token_hashes.remove(&token.hash);
        }
    }

    /// Marks everything that has expired by `time`, so that it stays expired if the clock shows an earlier time later.
    pub(super) fn mark_expired(&mut self, time: Timestamp) {
        for credential in self.accounts.values_mut().flat_map(|account| account.credentials.values_mut()) {
            credential.marked_expired |= is_expired(credential.expires_at, time);
        }
        for token in self.tokens.values_mut() {
            token.marked_expired |= is_expired(token.expires_at, time);
        }
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.account_names.contains_key(name)
    }

    /// Returns the account and the credential of an access key.
    pub(super) fn find_access_key(
        &self,
        access_key: &str,
    ) -> Option<(AccountId, &AccountState, CredentialId, &CredentialState)> {
        let (account, credential) = *self.access_keys.get(access_key)?;
        let owner = self.accounts.get(&account)?;
        Some((account, owner, credential, owner.credentials.get(&credential)?))
    }

    pub(super) fn find_token(&self, hash: &TokenHash) -> Option<(TokenId, &TokenState)> {
        let id = *self.token_hashes.get(hash)?;
        Some((id, self.tokens.get(&id)?))
    }

    pub(super) fn account_view(&self, id: AccountId) -> Option<Account> {
        let account = self.accounts.get(&id)?;
        let attached = |&id: &PolicyId| {
            self.policies.get(&id).map(|found| AttachedPolicy { id, name: found.policy.name.clone() })
        };
        Some(Account {
            id,
            name: Arc::clone(&account.name),
            description: account.description.clone(),
            enabled: account.enabled,
            created_at: account.created_at,
            credentials: account.credentials.iter().map(|(id, credential)| credential.info(*id)).collect(),
            policies: account.policies.iter().filter_map(attached).collect(),
        })
    }

    pub(super) fn policy_view(&self, id: PolicyId) -> Option<PolicyInfo> {
        let PolicyState { policy, created_at, attached_to, .. } = self.policies.get(&id)?;
        Some(PolicyInfo {
            id,
            policy: Arc::clone(policy),
            created_at: *created_at,
            attached_to: attached_to.iter().copied().collect(),
        })
    }
}
