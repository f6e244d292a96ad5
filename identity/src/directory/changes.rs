//! Applies changes of the directory, one after the other.
//!
//! They run on a thread of their own.
//!
//! A change is decided on the state in memory, which only this thread changes. It is then made durable, applied in memory,
//! and the version is incremented. Only after that is it acknowledged: from then on it is in force on every executor.

use super::error::DirectoryError;
use super::given::GivenCredential;
use super::limits::{
    ACCOUNTS_MAX, ATTACHED_RESOURCES_MAX, CREDENTIALS_PER_ACCOUNT_MAX, MANAGEMENT_TOKENS_MAX, POLICIES_MAX,
    POLICIES_PER_ACCOUNT_MAX, RESOURCES_MAX, RESOURCES_PER_ACCOUNT_MAX, SOURCE_LISTS_PER_ACCOUNT_MAX,
    TEMPORARY_PER_ACCOUNT_MAX, TEMPORARY_SECONDS_MAX, TEMPORARY_SECONDS_MIN, TOKEN_SECONDS_MAX,
};
use super::record::{self, AccountRecord};
use super::rights_cache::RightsCache;
use super::seal::SecretOwner;
use super::secret::{self, hash_token};
use super::shared::Shared;
use super::state::{AccountState, CredentialState, PolicyState, State, TokenState};
use super::store::Write;
use super::view::{
    Account, ManagementToken, NewCredential, NewManagementToken, Outcome, PolicyInfo, PolicyReplacement,
};
use crate::id::{AccountId, CredentialId, PolicyId, TokenId};
use crate::policy::{Policy, Rights, source_list_count, validate_description, validate_name};
use crate::role::Role;
use cairn_model::{Timestamp, time_id};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

type ChangeResult<T> = Result<T, DirectoryError>;

/// State of the directory's thread.
pub(super) struct Changes {
    pub(super) shared: Arc<Shared>,
    rights: RightsCache,
}

fn too_many<T>(what: &'static str, max: usize) -> ChangeResult<T> {
    Err(DirectoryError::TooMany { what, max })
}

fn invalid(error: impl ToString) -> DirectoryError {
    DirectoryError::Invalid(error.to_string())
}

/// Returns the time `seconds` after `now`, if `seconds` is within the bounds.
fn expiry_after(now: Timestamp, seconds: u64, min: u64, max: u64) -> ChangeResult<Timestamp> {
    if !(min..=max).contains(&seconds) {
        return Err(invalid(format!("expires_in_seconds must be from {min} to {max}")));
    }
    Ok(Timestamp(now.0.saturating_add(seconds * 1000)))
}

/// Returns when a credential with given keys expires.
fn given_expiry(given: Option<&GivenCredential>, now: Timestamp) -> ChangeResult<Option<Timestamp>> {
    match given.and_then(|given| given.expires_at) {
        Some(expires_at) if expires_at <= now => Err(invalid("expires_at must be in the future")),
        expires_at => Ok(expires_at),
    }
}

impl Changes {
    /// `rights` holds the rights of the accounts.
    pub(super) fn new(shared: Arc<Shared>, rights: RightsCache) -> Self {
        Self { shared, rights }
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Makes a change durable and then applies it to the state in memory.
    fn change(&mut self, writes: &[Write], apply: impl FnOnce(&mut State)) -> ChangeResult<()> {
        self.commit(writes)?;
        apply(&mut self.shared.state_mut());
        self.shared.increment_version();
        Ok(())
    }

    /// Writes records in one durable transaction.
    pub(super) fn commit(&mut self, writes: &[Write]) -> ChangeResult<()> {
        Ok(self.shared.store.commit(writes)?)
    }

    pub(super) fn create_account(
        &mut self,
        name: &str,
        description: String,
        given: Option<GivenCredential>,
    ) -> ChangeResult<(Account, NewCredential)> {
        validate_name(name).and_then(|()| validate_description(&description)).map_err(invalid)?;
        let now = self.now();
        {
            let state = self.shared.state();
            if state.has_name(name) {
                return Err(DirectoryError::NameTaken);
            }
            if state.accounts.len() >= ACCOUNTS_MAX {
                return too_many("service accounts", ACCOUNTS_MAX);
            }
        }
        let id = AccountId(time_id::random(now)?);
        let new = self.new_credential(id, now, given_expiry(given.as_ref(), now)?, given)?;
        let account = AccountState {
            name: name.into(),
            description,
            enabled: true,
            created_at: now,
            credentials: BTreeMap::new(),
            policies: BTreeSet::new(),
            rights: Arc::default(),
        };
        let writes = [self.write_account(id, &account, account.enabled), new.write(&self.shared, id)];
        let UnsavedCredential { created, state: credential } = new;
        self.change(&writes, |state| {
            assert!(state.add_account(id, account), "the name was free and the id is new");
            let added = state.add_credential(id, created.info.id, credential);
            assert!(added, "the account was just added and the access key was free");
        })?;
        Ok((self.account(id)?, created))
    }

    fn write_account(&self, id: AccountId, account: &AccountState, enabled: bool) -> Write {
        let record = AccountRecord {
            name: account.name.to_string(),
            description: account.description.clone(),
            enabled,
            created_at: account.created_at.0,
        };
        Write::put(self.shared.store.accounts, &id.0, record.encode())
    }

    pub(super) fn delete_account(&mut self, id: AccountId) -> ChangeResult<Account> {
        let view = self.account(id)?;
        let store = &self.shared.store;
        let mut writes = vec![Write::remove(store.accounts, &id.0)];
        for credential in &view.credentials {
            let key = record::credential_key(id, credential.id);
            writes.extend([Write::remove(store.credentials, &key), Write::remove(store.last_used, &key)]);
        }
        let bindings = view.policies.iter().map(|policy| record::binding_key(id, policy.id));
        writes.extend(bindings.map(|key| Write::remove(store.bindings, &key)));
        self.change(&writes, |state| state.remove_account(id))?;
        Ok(view)
    }

    fn account(&self, id: AccountId) -> ChangeResult<Account> {
        self.shared.state().account_view(id).ok_or(DirectoryError::AccountNotFound)
    }

    pub(super) fn set_account_enabled(
        &mut self,
        id: AccountId,
        enabled: bool,
    ) -> ChangeResult<(Account, Outcome)> {
        let write = {
            let state = self.shared.state();
            let account = state.accounts.get(&id).ok_or(DirectoryError::AccountNotFound)?;
            (account.enabled != enabled).then(|| self.write_account(id, account, enabled))
        };
        let Some(write) = write else { return Ok((self.account(id)?, Outcome::Unchanged)) };
        self.change(&[write], |state| {
            if let Some(account) = state.accounts.get_mut(&id) {
                account.enabled = enabled;
            }
        })?;
        Ok((self.account(id)?, Outcome::Changed))
    }

    /// Adds a credential to an account: with generated keys, unless some are given. With `seconds` it is temporary and expires
    /// after that time.
    pub(super) fn add_credential(
        &mut self,
        account: AccountId,
        seconds: Option<u64>,
        given: Option<GivenCredential>,
    ) -> ChangeResult<NewCredential> {
        let now = self.now();
        let expiry = |seconds| expiry_after(now, seconds, TEMPORARY_SECONDS_MIN, TEMPORARY_SECONDS_MAX);
        let (after, expiry_time) = (seconds.map(expiry).transpose()?, self.shared.expiry_time(now));
        let expires_at = after.or(given_expiry(given.as_ref(), now)?);
        {
            let state = self.shared.state();
            let owner = state.accounts.get(&account).ok_or(DirectoryError::AccountNotFound)?;
            let is_valid_and_same_kind = |found: &&CredentialState| {
                let is_expired =
                    found.marked_expired || self.shared.has_expired(found.expires_at, expiry_time);
                found.expires_at.is_some() == expires_at.is_some() && !is_expired
            };
            let count = owner.credentials.values().filter(is_valid_and_same_kind).count();
            match expires_at {
                Some(_) if count >= TEMPORARY_PER_ACCOUNT_MAX => {
                    return too_many("temporary credentials of an account", TEMPORARY_PER_ACCOUNT_MAX);
                }
                None if count >= CREDENTIALS_PER_ACCOUNT_MAX => {
                    return too_many("credentials of an account", CREDENTIALS_PER_ACCOUNT_MAX);
                }
                _ => {}
            }
        }
        let new = self.new_credential(account, now, expires_at, given)?;
        let writes = [new.write(&self.shared, account)];
        let UnsavedCredential { created, state: credential } = new;
        self.change(&writes, |state| {
            let added = state.add_credential(account, created.info.id, credential);
            assert!(added, "the account exists and the access key was free");
        })?;
        Ok(created)
    }

    /// Returns whether a credential has this access key, or root.
    fn is_taken(&self, access_key: &str) -> bool {
        access_key == self.shared.root_access_key || self.shared.state().find_access_key(access_key).is_some()
    }

    /// Makes a credential with an access key that is not in use: the given one, or a generated one.
    fn new_credential(
        &self,
        account: AccountId,
        now: Timestamp,
        expires_at: Option<Timestamp>,
        given: Option<GivenCredential>,
    ) -> ChangeResult<UnsavedCredential> {
        let (access_key, secret_key) = match given {
            Some(GivenCredential { access_key, .. }) if self.is_taken(&access_key) => {
                return Err(DirectoryError::AccessKeyExists);
            }
            Some(GivenCredential { access_key, secret_key, .. }) => (access_key, secret_key),
            None => loop {
                let access_key = secret::access_key()?;
                if !self.is_taken(&access_key) {
                    break (access_key, secret::secret_key()?);
                }
            },
        };
        let id = CredentialId(time_id::random(now)?);
        let owner = SecretOwner { account, credential: id, access_key: &access_key };
        let sealed = self.shared.sealing.seal(owner, secret_key.expose())?;
        let state = CredentialState {
            access_key: access_key.into(),
            sealed_secret: sealed.into(),
            enabled: true,
            created_at: now,
            expires_at,
            last_used: Arc::default(),
            marked_expired: false,
        };
        Ok(UnsavedCredential { created: NewCredential { info: state.info(id), secret_key }, state })
    }

    pub(super) fn set_credential_enabled(
        &mut self,
        account: AccountId,
        id: CredentialId,
        enabled: bool,
    ) -> ChangeResult<(Account, Outcome)> {
        let before = self.credential(account, id)?;
        if before.enabled == enabled {
            return Ok((self.account(account)?, Outcome::Unchanged));
        }
        let credential = CredentialState { enabled, ..before };
        let key = record::credential_key(account, id);
        let write = Write::put(self.shared.store.credentials, &key, record::encode_credential(&credential));
        self.change(&[write], |state| {
            let owner = state.accounts.get_mut(&account);
            if let Some(found) = owner.and_then(|owner| owner.credentials.get_mut(&id)) {
                found.enabled = enabled;
            }
        })?;
        Ok((self.account(account)?, Outcome::Changed))
    }

    pub(super) fn delete_credential(&mut self, account: AccountId, id: CredentialId) -> ChangeResult<()> {
        self.credential(account, id)?;
        self.remove_credentials(&[(account, id)])
    }

    fn credential(&self, account: AccountId, id: CredentialId) -> ChangeResult<CredentialState> {
        let state = self.shared.state();
        let owner = state.accounts.get(&account).ok_or(DirectoryError::AccountNotFound)?;
        owner.credentials.get(&id).cloned().ok_or(DirectoryError::CredentialNotFound)
    }

    /// Deletes credentials that exist.
    pub(super) fn remove_credentials(
        &mut self,
        credentials: &[(AccountId, CredentialId)],
    ) -> ChangeResult<()> {
        let store = &self.shared.store;
        let keys = credentials.iter().map(|(account, id)| record::credential_key(*account, *id));
        let both_records =
            |key: [u8; 32]| [Write::remove(store.credentials, &key), Write::remove(store.last_used, &key)];
        let writes: Vec<_> = keys.flat_map(both_records).collect();
        self.change(&writes, |state| {
            for (account, id) in credentials {
                state.remove_credential(*account, *id);
            }
        })
    }

    pub(super) fn create_policy(&mut self, policy: Policy) -> ChangeResult<PolicyInfo> {
        {
            let state = self.shared.state();
            if state.policies.len() >= POLICIES_MAX {
                return too_many("policies", POLICIES_MAX);
            }
            if state.resources() + policy.pattern_count() > RESOURCES_MAX {
                return too_many("resources in all policies", RESOURCES_MAX);
            }
        }
        let created_at = self.now();
        let id = PolicyId(time_id::random(created_at)?);
        let body = record::encode_policy(&policy, created_at);
        let write = Write::put(self.shared.store.policies, &id.0, body);
        let policy = Arc::new(policy);
        let policy_state = PolicyState::new(Arc::clone(&policy), created_at);
        self.change(&[write], |state| state.add_policy(id, policy_state))?;
        Ok(PolicyInfo { id, policy, created_at, attached_to: Vec::new() })
    }

    /// Replaces the document of a policy. The accounts that it is attached to have its rights from then on.
    pub(super) fn replace_policy(
        &mut self,
        id: PolicyId,
        policy: Policy,
    ) -> ChangeResult<(PolicyReplacement, Outcome)> {
        let policy = Arc::new(policy);
        let before = self.shared.state().policy_view(id).ok_or(DirectoryError::PolicyNotFound)?;
        let replacement = PolicyReplacement {
            before: Arc::clone(&before.policy),
            now: PolicyInfo { policy: Arc::clone(&policy), ..before },
        };
        if replacement.before == policy {
            return Ok((replacement, Outcome::Unchanged));
        }
        // Compiled before the change, so that no executor waits for it.
        self.rights.forget(id);
        let compiled = self.compile_replacement(id, &replacement);
        let body = record::encode_policy(&policy, replacement.now.created_at);
        let write = Write::put(self.shared.store.policies, &id.0, body);
        let changed = compiled.and_then(|rights| {
            self.change(&[write], |state| {
                state.replace_policy(id, policy);
                for (account, rights) in rights {
                    if let Some(account) = state.accounts.get_mut(&account) {
                        account.rights = rights;
                    }
                }
            })
        });
        if changed.is_err() {
            // The compiled rights are those of a document that is not in force.
            self.rights.forget(id);
        }
        changed.map(|()| (replacement, Outcome::Changed))
    }

    /// Checks the limits for the accounts of a policy with its new document, and compiles their rights.
    fn compile_replacement(
        &mut self,
        id: PolicyId,
        replacement: &PolicyReplacement,
    ) -> ChangeResult<Vec<(AccountId, Arc<Rights>)>> {
        let PolicyReplacement { before, now: PolicyInfo { policy, attached_to, .. } } = replacement;
        let (before, after) = (before.pattern_count(), policy.pattern_count());
        let state = self.shared.state();
        if state.resources() - before + after > RESOURCES_MAX {
            return too_many("resources in all policies", RESOURCES_MAX);
        }
        if state.attached_resources() + after * attached_to.len() - before * attached_to.len()
            > ATTACHED_RESOURCES_MAX
        {
            let what = "resources in the policies attached to all accounts together";
            return too_many(what, ATTACHED_RESOURCES_MAX);
        }
        let mut compiled = Vec::with_capacity(attached_to.len());
        for account in attached_to {
            let Some(owner) = state.accounts.get(account) else { continue };
            let others = owner.policies.iter().filter(|other| **other != id);
            let others = others.filter_map(|other| Some(&*state.policies.get(other)?.policy));
            check_account_limits(others.chain([&**policy]))?;
            let rights = self.rights.rights_with(&state, &owner.policies, Some((id, policy)));
            compiled.push((*account, rights));
        }
        Ok(compiled)
    }

    pub(super) fn delete_policy(&mut self, id: PolicyId) -> ChangeResult<PolicyInfo> {
        let view = self.shared.state().policy_view(id).ok_or(DirectoryError::PolicyNotFound)?;
        if !view.attached_to.is_empty() {
            return Err(DirectoryError::PolicyInUse { accounts: view.attached_to.len() });
        }
        let write = Write::remove(self.shared.store.policies, &id.0);
        self.change(&[write], |state| state.remove_policy(id))?;
        Ok(view)
    }

    pub(super) fn attach(&mut self, policy: PolicyId, account: AccountId) -> ChangeResult<Outcome> {
        let rights = {
            let state = self.shared.state();
            let attached = attached_policies(&state, policy, account)?;
            if attached.contains(&policy) {
                return Ok(Outcome::Unchanged);
            }
            if attached.len() >= POLICIES_PER_ACCOUNT_MAX {
                return too_many("policies attached to an account", POLICIES_PER_ACCOUNT_MAX);
            }
            let with_new = || attached.iter().chain([&policy]);
            let resources = |id| state.policies.get(id).map_or(0, |found| found.resources);
            check_account_limits(with_new().filter_map(|id| Some(&*state.policies.get(id)?.policy)))?;
            if state.attached_resources() + resources(&policy) > ATTACHED_RESOURCES_MAX {
                let what = "resources in the policies attached to all accounts together";
                return too_many(what, ATTACHED_RESOURCES_MAX);
            }
            self.rights.rights_of(&state, with_new())
        };
        let (key, attached_at) = (record::binding_key(account, policy), record::encode_time(self.now()));
        let write = Write::put(self.shared.store.bindings, &key, attached_at);
        self.change(&[write], |state| {
            state.bind(account, policy);
            if let Some(account) = state.accounts.get_mut(&account) {
                account.rights = rights;
            }
        })?;
        Ok(Outcome::Changed)
    }

    pub(super) fn detach(&mut self, policy: PolicyId, account: AccountId) -> ChangeResult<Outcome> {
        let rights = {
            let state = self.shared.state();
            let attached = attached_policies(&state, policy, account)?;
            if !attached.contains(&policy) {
                return Ok(Outcome::Unchanged);
            }
            self.rights.rights_of(&state, attached.iter().filter(|id| **id != policy))
        };
        let key = record::binding_key(account, policy);
        let write = Write::remove(self.shared.store.bindings, &key);
        self.change(&[write], |state| {
            state.unbind(account, policy);
            if let Some(account) = state.accounts.get_mut(&account) {
                account.rights = rights;
            }
        })?;
        Ok(Outcome::Changed)
    }

    pub(super) fn create_token(
        &mut self,
        name: &str,
        role: Role,
        seconds: Option<u64>,
    ) -> ChangeResult<NewManagementToken> {
        validate_name(name).map_err(invalid)?;
        let created_at = self.now();
        {
            let (state, expiry_time) = (self.shared.state(), self.shared.expiry_time(created_at));
            let is_valid = |token: &&TokenState| {
                !token.marked_expired && !self.shared.has_expired(token.expires_at, expiry_time)
            };
            if state.tokens.values().filter(is_valid).count() >= MANAGEMENT_TOKENS_MAX {
                return too_many("management tokens", MANAGEMENT_TOKENS_MAX);
            }
        }
        let expiry = |seconds| expiry_after(created_at, seconds, 1, TOKEN_SECONDS_MAX);
        let expires_at = seconds.map(expiry).transpose()?;
        let (id, token) = (TokenId(time_id::random(created_at)?), secret::management_token()?);
        let hash = hash_token(token.expose());
        let token_state =
            TokenState { name: name.into(), role, hash, created_at, expires_at, marked_expired: false };
        let info = token_state.info(id);
        let write = Write::put(self.shared.store.tokens, &id.0, record::encode_token(&token_state));
        self.change(&[write], |state| assert!(state.add_token(id, token_state), "tokens are random"))?;
        Ok(NewManagementToken { info, token })
    }

    pub(super) fn delete_token(&mut self, id: TokenId) -> ChangeResult<ManagementToken> {
        let view = self.shared.state().tokens.get(&id).map(|token| token.info(id));
        let view = view.ok_or(DirectoryError::TokenNotFound)?;
        self.remove_tokens(&[id])?;
        Ok(view)
    }

    /// Deletes tokens that exist.
    pub(super) fn remove_tokens(&mut self, tokens: &[TokenId]) -> ChangeResult<()> {
        let table = self.shared.store.tokens;
        let writes: Vec<_> = tokens.iter().map(|id| Write::remove(table, &id.0)).collect();
        self.change(&writes, |state| {
            for id in tokens {
                state.remove_token(*id);
            }
        })
    }
}

/// Checks the limits on all policies of an account together.
fn check_account_limits<'p>(policies: impl Iterator<Item = &'p Policy> + Clone) -> ChangeResult<()> {
    if policies.clone().map(Policy::pattern_count).sum::<usize>() > RESOURCES_PER_ACCOUNT_MAX {
        let what = "resources in the policies attached to an account";
        return too_many(what, RESOURCES_PER_ACCOUNT_MAX);
    }
    if source_list_count(policies) > SOURCE_LISTS_PER_ACCOUNT_MAX {
        let what = "different source_ip lists in the policies attached to an account";
        return too_many(what, SOURCE_LISTS_PER_ACCOUNT_MAX);
    }
    Ok(())
}

/// Returns the policies attached to an account, after checking that `policy` exists too.
fn attached_policies(
    state: &State,
    policy: PolicyId,
    account: AccountId,
) -> ChangeResult<&BTreeSet<PolicyId>> {
    if !state.policies.contains_key(&policy) {
        return Err(DirectoryError::PolicyNotFound);
    }
    let owner = state.accounts.get(&account).ok_or(DirectoryError::AccountNotFound)?;
    Ok(&owner.policies)
}

/// A credential that is not in the directory yet.
struct UnsavedCredential {
    created: NewCredential,
    state: CredentialState,
}

impl UnsavedCredential {
    fn write(&self, shared: &Shared, account: AccountId) -> Write {
        let key = record::credential_key(account, self.created.info.id);
        Write::put(shared.store.credentials, &key, record::encode_credential(&self.state))
    }
}

#[cfg(test)]
mod tests;
