//! The directory in memory: what the records say, and the ways to find it.
//!
//! Invariants: every credential and binding has its account, every binding its policy, and no two accounts have a name in
//! common, no two credentials an access key. `rights` of an account is what its policies amount to.

use super::id::{AccountId, CredentialId, PolicyId, TokenId};
use super::record::LastUse;
use super::rights::SharedRights;
use super::secret::TokenHash;
use super::view::{Account, AttachedPolicy, CredentialInfo, ManagementToken, PolicyInfo};
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
    pub(super) has_died: bool,
}

pub(super) struct PolicyState {
    pub(super) policy: Arc<Policy>,
    /// How many it has.
    pub(super) resources: usize,
    pub(super) created_at: Timestamp,
    pub(super) attached_to: BTreeSet<AccountId>,
}

impl PolicyState {
    /// Attached to nobody.
    pub(super) fn new(policy: Arc<Policy>, created_at: Timestamp) -> Self {
        Self { resources: policy.patterns(), policy, created_at, attached_to: BTreeSet::new() }
    }
}

pub(super) struct TokenState {
    pub(super) name: Arc<str>,
    pub(super) role: Role,
    pub(super) hash: TokenHash,
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Option<Timestamp>,
    /// It had expired before the clock was set back.
    pub(super) has_died: bool,
}

/// Whether something that expires then is dead by now.
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

/// See the file's first lines.
#[derive(Default)]
pub(super) struct State {
    pub(super) accounts: BTreeMap<AccountId, AccountState>,
    pub(super) policies: BTreeMap<PolicyId, PolicyState>,
    pub(super) tokens: BTreeMap<TokenId, TokenState>,
    account_names: HashMap<Arc<str>, AccountId>,
    access_keys: HashMap<Arc<str>, (AccountId, CredentialId)>,
    token_hashes: HashMap<TokenHash, TokenId>,
    /// Those of all policies.
    resources: usize,
    /// Those of each account's policies, added up over all accounts.
    attached_resources: usize,
}

impl State {
    /// Adds an account; `false` when its name is taken.
    pub(super) fn add_account(&mut self, id: AccountId, account: AccountState) -> bool {
        if self.account_names.insert(Arc::clone(&account.name), id).is_some() {
            return false;
        }
        self.accounts.insert(id, account).is_none()
    }

    /// Removes an account with its credentials and bindings.
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

    /// Adds a credential; `false` when there is no such account or the access key is taken.
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
        self.policies.insert(id, policy);
    }

    /// Removes a policy that is attached to nobody.
    pub(super) fn remove_policy(&mut self, id: PolicyId) {
        if let Some(policy) = self.policies.remove(&id) {
            self.resources -= policy.resources;
        }
    }

    /// The resources of all policies, and those of each account's policies, added up over all accounts.
    pub(super) fn resources(&self) -> (usize, usize) {
        (self.resources, self.attached_resources)
    }

    /// Attaches a policy, without compiling; `false` when one of the two is not there.
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

    /// Detaches a policy, without compiling.
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

    /// Adds a token; `false` when its hash is there already.
    pub(super) fn add_token(&mut self, id: TokenId, token: TokenState) -> bool {
        let is_new = self.token_hashes.insert(token.hash, id).is_none();
        self.tokens.insert(id, token).is_none() && is_new
    }

    pub(super) fn remove_token(&mut self, id: TokenId) {
        if let Some(token) = self.tokens.remove(&id) {
            self.token_hashes.remove(&token.hash);
        }
    }

    /// Compiles the policies of all accounts.
    pub(super) fn compile(&mut self) -> SharedRights {
        let mut shared = SharedRights::default();
        let of = |account: &AccountState| shared.of(self, &account.policies);
        let compiled: Vec<_> = self.accounts.values().map(of).collect();
        for (account, rights) in self.accounts.values_mut().zip(compiled) {
            account.rights = rights;
        }
        shared
    }

    /// What has expired by `seen` stays dead, whatever the clock says later.
    pub(super) fn bury(&mut self, seen: Timestamp) {
        for credential in self.accounts.values_mut().flat_map(|account| account.credentials.values_mut()) {
            credential.has_died |= is_expired(credential.expires_at, seen);
        }
        for token in self.tokens.values_mut() {
            token.has_died |= is_expired(token.expires_at, seen);
        }
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.account_names.contains_key(name)
    }

    /// The account and the credential of an access key.
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
        let named = |&id: &PolicyId| {
            self.policies.get(&id).map(|found| AttachedPolicy { id, name: found.policy.name.clone() })
        };
        Some(Account {
            id,
            name: Arc::clone(&account.name),
            description: account.description.clone(),
            enabled: account.enabled,
            created_at: account.created_at,
            credentials: account.credentials.iter().map(|(id, credential)| credential.info(*id)).collect(),
            policies: account.policies.iter().filter_map(named).collect(),
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
