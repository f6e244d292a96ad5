//! The changes of the directory, made one after the other by its own thread.
//!
//! Each is decided on the state in memory, which nobody else changes, made durable, then shown in memory, and then the
//! version goes up. Only then is it answered: from that moment every executor decides by it.

use super::error::DirectoryError;
use super::id::{AccountId, CredentialId, PolicyId, TokenId};
use super::limits::{
    ACCOUNTS_MAX, ATTACHED_RESOURCES_MAX, CREDENTIALS_PER_ACCOUNT_MAX, MANAGEMENT_TOKENS_MAX, POLICIES_MAX,
    POLICIES_PER_ACCOUNT_MAX, RESOURCES_MAX, RESOURCES_PER_ACCOUNT_MAX, TEMPORARY_PER_ACCOUNT_MAX,
    TEMPORARY_SECONDS_MAX, TEMPORARY_SECONDS_MIN, TOKEN_SECONDS_MAX,
};
use super::record::{self, AccountRecord};
use super::rights::SharedRights;
use super::seal::SecretOwner;
use super::secret::{self, hash_token};
use super::shared::Shared;
use super::state::{AccountState, CredentialState, PolicyState, State, TokenState};
use super::store::Write;
use super::view::{Account, NewCredential, NewManagementToken, Outcome, PolicyInfo};
use crate::policy::{Policy, check_description, check_name};
use crate::role::Role;
use cairn_lmdb::Error;
use cairn_model::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

type Answer<T> = Result<T, DirectoryError>;

/// What the thread has at hand.
pub(super) struct Changes {
    pub(super) shared: Arc<Shared>,
    rights: SharedRights,
    /// The disk was full at the last attempt: the log hears of the change, not of every attempt.
    lacks_space: bool,
}

fn too_many<T>(what: &'static str, max: usize) -> Answer<T> {
    Err(DirectoryError::TooMany { what, max })
}

fn invalid(error: impl ToString) -> DirectoryError {
    DirectoryError::Invalid(error.to_string())
}

/// The time that is so many seconds ahead, if that is within bounds.
fn ahead(now: Timestamp, seconds: u64, min: u64, max: u64) -> Answer<Timestamp> {
    if !(min..=max).contains(&seconds) {
        return Err(invalid(format!("expires_in_seconds must be {min} to {max}")));
    }
    Ok(Timestamp(now.0.saturating_add(seconds * 1000)))
}

impl Changes {
    /// `rights`: those that the accounts have.
    pub(super) fn new(shared: Arc<Shared>, rights: SharedRights) -> Self {
        Self { shared, rights, lacks_space: false }
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Makes a change durable, and then has it shown.
    fn change(&mut self, writes: &[Write], show: impl FnOnce(&mut State)) -> Answer<()> {
        self.commit(writes)?;
        show(&mut self.shared.state_mut());
        self.shared.raise_version();
        Ok(())
    }

    /// Makes records durable.
    pub(super) fn commit(&mut self, writes: &[Write]) -> Answer<()> {
        let Shared { store, stopped, .. } = &*self.shared;
        if let Some(reason) = stopped.get() {
            return Err(DirectoryError::Failed(reason.clone()));
        }
        let committed = store.commit(writes);
        let lacks_space = matches!(committed, Err(Error::Full));
        if std::mem::replace(&mut self.lacks_space, lacks_space) != lacks_space {
            if lacks_space {
                tracing::error!(target: "service::identity", "no space is left for the directory of accounts: changes are refused");
            } else if committed.is_ok() {
                tracing::info!(target: "service::identity", "there is space for the directory of accounts again");
            }
        }
        committed.map_err(|error| {
            if matches!(error, Error::Full) {
                return DirectoryError::Full;
            }
            tracing::error!(target: "service::identity", %error, "the directory of accounts failed: nothing is changed until the service is started again");
            let reason = format!("nothing is changed after a failure: {error}");
            DirectoryError::Failed(stopped.get_or_init(|| reason).clone())
        })
    }

    pub(super) fn create_account(
        &mut self,
        name: &str,
        description: String,
    ) -> Answer<(Account, NewCredential)> {
        check_name(name).and_then(|()| check_description(&description)).map_err(invalid)?;
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
        let id = AccountId::make(now)?;
        let made = self.make_credential(id, now, None)?;
        let account = AccountState {
            name: name.into(),
            description,
            enabled: true,
            created_at: now,
            credentials: BTreeMap::new(),
            policies: BTreeSet::new(),
            rights: Arc::default(),
        };
        let writes = [self.write_account(id, &account, account.enabled), made.write(&self.shared, id)];
        let (credential, state) = (made.told, made.state);
        self.change(&writes, |shown| {
            shown.add_account(id, account);
            shown.add_credential(id, credential.info.id, state);
        })?;
        let view = self.shared.state().account_view(id).ok_or(DirectoryError::AccountNotFound)?;
        Ok((view, credential))
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

    pub(super) fn delete_account(&mut self, id: AccountId) -> Answer<Account> {
        let view = self.account(id)?;
        let store = &self.shared.store;
        let mut writes = vec![Write::remove(store.accounts, &id.0)];
        for credential in &view.credentials {
            let key = record::credential_key(id, credential.id);
            writes.extend([Write::remove(store.credentials, &key), Write::remove(store.last_used, &key)]);
        }
        let bound = view.policies.iter().map(|policy| record::binding_key(id, policy.id));
        writes.extend(bound.map(|key| Write::remove(store.bindings, &key)));
        self.change(&writes, |state| state.remove_account(id))?;
        Ok(view)
    }

    fn account(&self, id: AccountId) -> Answer<Account> {
        self.shared.state().account_view(id).ok_or(DirectoryError::AccountNotFound)
    }

    pub(super) fn set_account_enabled(&mut self, id: AccountId, enabled: bool) -> Answer<(Account, Outcome)> {
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

    /// Makes a credential beside those that are there: one that lasts, or one that expires in so many seconds.
    pub(super) fn add_credential(
        &mut self,
        account: AccountId,
        seconds: Option<u64>,
    ) -> Answer<NewCredential> {
        let now = self.now();
        let ahead = |seconds| ahead(now, seconds, TEMPORARY_SECONDS_MIN, TEMPORARY_SECONDS_MAX);
        let (expires_at, judged) = (seconds.map(ahead).transpose()?, self.shared.judged(now));
        {
            let state = self.shared.state();
            let owner = state.accounts.get(&account).ok_or(DirectoryError::AccountNotFound)?;
            let alike = |found: &&CredentialState| {
                let is_dead = found.has_died || self.shared.has_expired(found.expires_at, judged);
                found.expires_at.is_some() == expires_at.is_some() && !is_dead
            };
            let count = owner.credentials.values().filter(alike).count();
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
        let made = self.make_credential(account, now, expires_at)?;
        let writes = [made.write(&self.shared, account)];
        let (credential, state) = (made.told, made.state);
        self.change(&writes, |shown| {
            shown.add_credential(account, credential.info.id, state);
        })?;
        Ok(credential)
    }

    fn make_credential(
        &self,
        account: AccountId,
        now: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> Answer<MadeCredential> {
        let access_key = loop {
            let access_key = secret::access_key()?;
            let is_taken = access_key == self.shared.root_access_key
                || self.shared.state().find_access_key(&access_key).is_some();
            if !is_taken {
                break access_key;
            }
        };
        let (id, secret_key) = (CredentialId::make(now)?, secret::secret_key()?);
        let owner = SecretOwner { account, credential: id, access_key: &access_key };
        let sealed = self.shared.sealing.seal(owner, secret_key.expose())?;
        let state = CredentialState {
            access_key: access_key.into(),
            sealed_secret: sealed.into(),
            enabled: true,
            created_at: now,
            expires_at,
            last_used: Arc::default(),
            has_died: false,
        };
        Ok(MadeCredential { told: NewCredential { info: state.info(id), secret_key }, state })
    }

    pub(super) fn set_credential_enabled(
        &mut self,
        account: AccountId,
        id: CredentialId,
        enabled: bool,
    ) -> Answer<(Account, Outcome)> {
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

    pub(super) fn delete_credential(&mut self, account: AccountId, id: CredentialId) -> Answer<()> {
        self.credential(account, id)?;
        self.remove_credentials(&[(account, id)])
    }

    fn credential(&self, account: AccountId, id: CredentialId) -> Answer<CredentialState> {
        let state = self.shared.state();
        let owner = state.accounts.get(&account).ok_or(DirectoryError::AccountNotFound)?;
        owner.credentials.get(&id).cloned().ok_or(DirectoryError::CredentialNotFound)
    }

    /// Removes credentials that are there.
    pub(super) fn remove_credentials(&mut self, gone: &[(AccountId, CredentialId)]) -> Answer<()> {
        let store = &self.shared.store;
        let keys = gone.iter().map(|(account, id)| record::credential_key(*account, *id));
        let both =
            |key: [u8; 32]| [Write::remove(store.credentials, &key), Write::remove(store.last_used, &key)];
        let writes: Vec<_> = keys.flat_map(both).collect();
        self.change(&writes, |state| {
            for (account, id) in gone {
                state.remove_credential(*account, *id);
            }
        })
    }

    pub(super) fn create_policy(&mut self, policy: Policy) -> Answer<PolicyInfo> {
        {
            let state = self.shared.state();
            if state.policies.len() >= POLICIES_MAX {
                return too_many("policies", POLICIES_MAX);
            }
            if state.resources().0 + policy.patterns() > RESOURCES_MAX {
                return too_many("resources in all policies", RESOURCES_MAX);
            }
        }
        let created_at = self.now();
        let id = PolicyId::make(created_at)?;
        let body = record::encode_policy(&policy, created_at);
        let write = Write::put(self.shared.store.policies, &id.0, body);
        let policy = Arc::new(policy);
        let shown = PolicyState::new(Arc::clone(&policy), created_at);
        self.change(&[write], |state| state.add_policy(id, shown))?;
        Ok(PolicyInfo { id, policy, created_at, attached_to: Vec::new() })
    }

    pub(super) fn delete_policy(&mut self, id: PolicyId) -> Answer<PolicyInfo> {
        let view = self.shared.state().policy_view(id).ok_or(DirectoryError::PolicyNotFound)?;
        if !view.attached_to.is_empty() {
            return Err(DirectoryError::PolicyInUse { accounts: view.attached_to.len() });
        }
        let write = Write::remove(self.shared.store.policies, &id.0);
        self.change(&[write], |state| state.remove_policy(id))?;
        Ok(view)
    }

    pub(super) fn attach(&mut self, policy: PolicyId, account: AccountId) -> Answer<Outcome> {
        let rights = {
            let state = self.shared.state();
            let Some(bound) = bound_policies(&state, policy, account)? else {
                return Ok(Outcome::Unchanged);
            };
            if bound.len() >= POLICIES_PER_ACCOUNT_MAX {
                return too_many("policies attached to an account", POLICIES_PER_ACCOUNT_MAX);
            }
            let with_new = || bound.iter().chain([&policy]);
            let resources = |id| state.policies.get(id).map_or(0, |found| found.resources);
            if with_new().map(resources).sum::<usize>() > RESOURCES_PER_ACCOUNT_MAX {
                let what = "resources in the policies attached to an account";
                return too_many(what, RESOURCES_PER_ACCOUNT_MAX);
            }
            if state.resources().1 + resources(&policy) > ATTACHED_RESOURCES_MAX {
                let what = "resources in the policies attached to all accounts together";
                return too_many(what, ATTACHED_RESOURCES_MAX);
            }
            self.rights.of(&state, with_new())
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

    pub(super) fn detach(&mut self, policy: PolicyId, account: AccountId) -> Answer<Outcome> {
        let rights = {
            let state = self.shared.state();
            if bound_policies(&state, policy, account)?.is_some() {
                return Ok(Outcome::Unchanged);
            }
            let bound = state.accounts.get(&account).map(|account| &account.policies);
            self.rights.of(&state, bound.into_iter().flatten().filter(|id| **id != policy))
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
    ) -> Answer<NewManagementToken> {
        check_name(name).map_err(invalid)?;
        let created_at = self.now();
        {
            let (state, judged) = (self.shared.state(), self.shared.judged(created_at));
            let is_alive =
                |token: &&TokenState| !token.has_died && !self.shared.has_expired(token.expires_at, judged);
            if state.tokens.values().filter(is_alive).count() >= MANAGEMENT_TOKENS_MAX {
                return too_many("management tokens", MANAGEMENT_TOKENS_MAX);
            }
        }
        let expires_at =
            seconds.map(|seconds| ahead(created_at, seconds, 1, TOKEN_SECONDS_MAX)).transpose()?;
        let (id, token) = (TokenId::make(created_at)?, secret::management_token()?);
        let hash = hash_token(token.expose());
        let state = TokenState { name: name.into(), role, hash, created_at, expires_at, has_died: false };
        let info = state.info(id);
        let write = Write::put(self.shared.store.tokens, &id.0, record::encode_token(&state));
        self.change(&[write], |shown| _ = shown.add_token(id, state))?;
        Ok(NewManagementToken { info, token })
    }

    pub(super) fn delete_token(&mut self, id: TokenId) -> Answer<super::view::ManagementToken> {
        let view = self.shared.state().tokens.get(&id).map(|token| token.info(id));
        let view = view.ok_or(DirectoryError::TokenNotFound)?;
        self.remove_tokens(&[id])?;
        Ok(view)
    }

    /// Removes tokens that are there.
    pub(super) fn remove_tokens(&mut self, gone: &[TokenId]) -> Answer<()> {
        let table = self.shared.store.tokens;
        let writes: Vec<_> = gone.iter().map(|id| Write::remove(table, &id.0)).collect();
        self.change(&writes, |state| {
            for id in gone {
                state.remove_token(*id);
            }
        })
    }
}

/// The policies of an account to which this one is to be attached; `None` when it is already.
fn bound_policies(
    state: &State,
    policy: PolicyId,
    account: AccountId,
) -> Answer<Option<&BTreeSet<PolicyId>>> {
    if !state.policies.contains_key(&policy) {
        return Err(DirectoryError::PolicyNotFound);
    }
    let bound = &state.accounts.get(&account).ok_or(DirectoryError::AccountNotFound)?.policies;
    Ok((!bound.contains(&policy)).then_some(bound))
}

/// A credential that is not yet in the directory.
struct MadeCredential {
    told: NewCredential,
    state: CredentialState,
}

impl MadeCredential {
    fn write(&self, shared: &Shared, account: AccountId) -> Write {
        let key = record::credential_key(account, self.told.info.id);
        Write::put(shared.store.credentials, &key, record::encode_credential(&self.state))
    }
}

#[cfg(test)]
mod tests;
