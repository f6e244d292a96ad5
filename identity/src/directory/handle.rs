//! [`Directory`]: the directory as all executors share it.

use super::changes::Changes;
use super::error::DirectoryError;
use super::given::GivenCredential;
use super::limits::{CHANGES_WAITING_MAX, MAINTENANCE_INTERVAL};
use super::maintenance::Maintenance;
use super::named_rights::NamedRights;
use super::rights_cache::RightsCache;
use super::seal::SecretKey;
use super::secret::{TOKEN_PREFIX, hash_token};
use super::shared::Shared;
use super::store::{DirectoryStore, SCHEMA};
use super::view::{
    Account, CredentialInfo, ManagementToken, NewCredential, NewManagementToken, Outcome, PolicyInfo,
    PolicyReplacement,
};
use crate::id::{AccountId, CredentialId, PolicyId, TokenId};
use crate::policy::Policy;
use crate::role::Role;
use cairn_lmdb::Environment;
use cairn_model::{Clock, Timestamp};
use cairn_tables::{ChangeQueue, Next, StoreOpenError, Writer};
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use zeroize::Zeroizing;

/// Options for opening the directory.
pub struct DirectoryOptions {
    /// `<data-dir>/identity`. The caller must hold the lock on the data folder, so that no other process has it open.
    pub folder: PathBuf,
    /// The id of the store that the directory belongs to.
    pub store: [u8; 16],
    /// The key that the sealing key is derived from. Never stored.
    pub master_key: Zeroizing<Vec<u8>>,
    /// The root credential's access key, which is never generated for an account.
    pub root_access_key: String,
    /// The clock for times and expiry.
    pub clock: Arc<dyn Clock>,
}

/// The directory of accounts, shared by all executors. Its thread makes the changes.
pub struct Directory {
    pub(super) shared: Arc<Shared>,
    pub(super) named_rights: NamedRights,
    writer: Writer<Changes>,
}

impl Directory {
    /// Opens the directory and starts its thread. Blocks.
    ///
    /// # Errors
    /// [`StoreOpenError`], whose message says what the operator can do. An existing directory is not changed.
    pub fn open(options: DirectoryOptions) -> Result<Arc<Self>, StoreOpenError> {
        let DirectoryOptions { folder, store: id, master_key, root_access_key, clock } = options;
        let sealing = SecretKey::derive(&master_key, id);
        let store = DirectoryStore::open(&folder, id)?;
        let mut state = store.load(&sealing)?;
        if let Some((_, account, ..)) = state.find_access_key(&root_access_key) {
            tracing::warn!(
                target: "service::identity",
                account = &*account.name,
                "the access key of root is that of a service account, too, whose credential is not valid while it is: \
                 give root another access key, or delete the credential"
            );
        }
        let rights = RightsCache::compile_all(&mut state);
        let shared = Arc::new(Shared::new(store, state, sealing, clock, root_access_key));
        let changes = Changes::new(Arc::clone(&shared), rights);
        let writer =
            Writer::start("identity", &SCHEMA, CHANGES_WAITING_MAX, move |queue| run(changes, &queue))
                .map_err(|error| StoreOpenError::io(&SCHEMA, &folder, error))?;
        Ok(Arc::new(Self { shared, named_rights: NamedRights::default(), writer }))
    }

    /// Makes a change on the directory's thread. When the future resolves, the change is durable and in force on every core.
    /// Dropping the future does not cancel the change.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Changes) -> Result<T, DirectoryError> + Send + 'static,
    ) -> Result<T, DirectoryError> {
        self.writer.change(change).await
    }

    /// Creates an account with one credential.
    ///
    /// # Errors
    /// [`DirectoryError::Invalid`], [`DirectoryError::NameTaken`], [`DirectoryError::TooMany`], or a failure.
    pub async fn create_account(
        &self,
        name: String,
        description: String,
    ) -> Result<(Account, NewCredential), DirectoryError> {
        self.change(move |changes| changes.create_account(&name, description, None)).await
    }

    /// Creates an account with one credential that has these keys.
    ///
    /// # Errors
    /// As [`Self::create_account`], and [`DirectoryError::AccessKeyExists`].
    pub async fn create_account_with_keys(
        &self,
        name: String,
        description: String,
        keys: GivenCredential,
    ) -> Result<(Account, CredentialInfo), DirectoryError> {
        let (account, made) =
            self.change(move |changes| changes.create_account(&name, description, Some(keys))).await?;
        Ok((account, made.info))
    }

    /// Deletes an account with its credentials and bindings. Returns the deleted account.
    ///
    /// # Errors
    /// [`DirectoryError::AccountNotFound`], or a failure.
    pub async fn delete_account(&self, id: AccountId) -> Result<Account, DirectoryError> {
        self.change(move |changes| changes.delete_account(id)).await
    }

    /// Sets whether the credentials of an account may be used. Returns the account.
    ///
    /// # Errors
    /// [`DirectoryError::AccountNotFound`], or a failure.
    pub async fn set_account_enabled(
        &self,
        id: AccountId,
        enabled: bool,
    ) -> Result<(Account, Outcome), DirectoryError> {
        self.change(move |changes| changes.set_account_enabled(id, enabled)).await
    }

    /// Adds a permanent credential to an account. The account's other credentials stay valid.
    ///
    /// # Errors
    /// [`DirectoryError::AccountNotFound`], [`DirectoryError::TooMany`], or a failure.
    pub async fn rotate(&self, account: AccountId) -> Result<NewCredential, DirectoryError> {
        self.change(move |changes| changes.add_credential(account, None, None)).await
    }

    /// Adds a permanent credential with these keys to an account. The account's other credentials stay valid.
    ///
    /// # Errors
    /// As [`Self::rotate`], and [`DirectoryError::AccessKeyExists`].
    pub async fn add_keys(
        &self,
        account: AccountId,
        keys: GivenCredential,
    ) -> Result<CredentialInfo, DirectoryError> {
        let made = self.change(move |changes| changes.add_credential(account, None, Some(keys))).await?;
        Ok(made.info)
    }

    /// Adds a credential that expires after `seconds`, from [`TEMPORARY_SECONDS_MIN`] to [`TEMPORARY_SECONDS_MAX`].
    ///
    /// # Errors
    /// As [`Self::rotate`], and [`DirectoryError::Invalid`].
    pub async fn create_temporary(
        &self,
        account: AccountId,
        seconds: u64,
    ) -> Result<NewCredential, DirectoryError> {
        self.change(move |changes| changes.add_credential(account, Some(seconds), None)).await
    }

    /// Sets whether a credential may be used. Returns the account.
    ///
    /// # Errors
    /// [`DirectoryError::AccountNotFound`], [`DirectoryError::CredentialNotFound`], or a failure.
    pub async fn set_credential_enabled(
        &self,
        account: AccountId,
        id: CredentialId,
        enabled: bool,
    ) -> Result<(Account, Outcome), DirectoryError> {
        self.change(move |changes| changes.set_credential_enabled(account, id, enabled)).await
    }

    /// Deletes a credential.
    ///
    /// # Errors
    /// As [`Self::set_credential_enabled`].
    pub async fn delete_credential(
        &self,
        account: AccountId,
        id: CredentialId,
    ) -> Result<(), DirectoryError> {
        self.change(move |changes| changes.delete_credential(account, id)).await
    }

    /// Creates a policy that is not attached to any account.
    ///
    /// # Errors
    /// [`DirectoryError::TooMany`], or a failure.
    pub async fn create_policy(&self, policy: Policy) -> Result<PolicyInfo, DirectoryError> {
        self.change(move |changes| changes.create_policy(policy)).await
    }

    /// Replaces the document of a policy completely. Has no effect if it is the same. The new rights are in force for the next
    /// request of every account that the policy is attached to.
    ///
    /// # Errors
    /// [`DirectoryError`]: `PolicyNotFound`, `TooMany` if the new document exceeds a limit of an account.
    pub async fn replace_policy(
        &self,
        id: PolicyId,
        policy: Policy,
    ) -> Result<(PolicyReplacement, Outcome), DirectoryError> {
        self.change(move |changes| changes.replace_policy(id, policy)).await
    }

    /// Deletes a policy that is not attached to any account. Returns the deleted policy.
    ///
    /// # Errors
    /// [`DirectoryError::PolicyNotFound`], [`DirectoryError::PolicyInUse`], or a failure.
    pub async fn delete_policy(&self, id: PolicyId) -> Result<PolicyInfo, DirectoryError> {
        self.change(move |changes| changes.delete_policy(id)).await
    }

    /// Attaches a policy to an account. Has no effect if it is already attached.
    ///
    /// # Errors
    /// [`DirectoryError::PolicyNotFound`], [`DirectoryError::AccountNotFound`], [`DirectoryError::TooMany`], or a failure.
    pub async fn attach(&self, policy: PolicyId, account: AccountId) -> Result<Outcome, DirectoryError> {
        self.change(move |changes| changes.attach(policy, account)).await
    }

    /// Detaches a policy from an account. Has no effect if it is not attached.
    ///
    /// # Errors
    /// [`DirectoryError::PolicyNotFound`], [`DirectoryError::AccountNotFound`], or a failure.
    pub async fn detach(&self, policy: PolicyId, account: AccountId) -> Result<Outcome, DirectoryError> {
        self.change(move |changes| changes.detach(policy, account)).await
    }

    /// Creates a management token that expires after `seconds`, or never if `seconds` is `None`.
    ///
    /// # Errors
    /// [`DirectoryError::Invalid`], [`DirectoryError::TooMany`], or a failure.
    pub async fn create_token(
        &self,
        name: String,
        role: Role,
        seconds: Option<u64>,
    ) -> Result<NewManagementToken, DirectoryError> {
        self.change(move |changes| changes.create_token(&name, role, seconds)).await
    }

    /// Deletes a management token. Returns the deleted token.
    ///
    /// # Errors
    /// [`DirectoryError::TokenNotFound`], or a failure.
    pub async fn delete_token(&self, id: TokenId) -> Result<ManagementToken, DirectoryError> {
        self.change(move |changes| changes.delete_token(id)).await
    }

    /// Returns a page of accounts, oldest first: those after `after`, or the first ones.
    ///
    /// An account counts as one part, and so does each of its credentials and policies. The page has at most `parts_max` parts,
    /// but at least one account if there is one. Lists are read page by page so that neither the directory nor an executor is
    /// blocked for long.
    #[must_use]
    pub fn accounts(&self, after: Option<AccountId>, parts_max: usize) -> Vec<Account> {
        let state = self.shared.state();
        let following = state.accounts.range((excluded(after), Bound::Unbounded));
        let page = page(parts_max, following, |found| found.credentials.len() + found.policies.len());
        page.filter_map(|id| state.account_view(id)).collect()
    }

    /// Returns one account.
    #[must_use]
    pub fn account(&self, id: AccountId) -> Option<Account> {
        self.shared.state().account_view(id)
    }

    /// Returns a page of policies as [`Self::accounts`] does. Each resource and each attachment of a policy is a part.
    #[must_use]
    pub fn policies(&self, after: Option<PolicyId>, parts_max: usize) -> Vec<PolicyInfo> {
        let state = self.shared.state();
        let following = state.policies.range((excluded(after), Bound::Unbounded));
        let page = page(parts_max, following, |found| found.resources + found.attached_to.len());
        page.filter_map(|id| state.policy_view(id)).collect()
    }

    /// Returns one policy.
    #[must_use]
    pub fn policy(&self, id: PolicyId) -> Option<PolicyInfo> {
        self.shared.state().policy_view(id)
    }

    /// Returns at most `count_max` management tokens, oldest first: those after `after`, or the first ones.
    #[must_use]
    pub fn tokens(&self, after: Option<TokenId>, count_max: usize) -> Vec<ManagementToken> {
        let state = self.shared.state();
        let following = state.tokens.range((excluded(after), Bound::Unbounded));
        following.take(count_max).map(|(id, token)| token.info(*id)).collect()
    }

    /// Returns the management token with this text, unless it has expired. The lookup is by hash, so its duration reveals
    /// nothing about existing tokens.
    #[must_use]
    pub fn find_token(&self, token: &str) -> Option<ManagementToken> {
        if !token.starts_with(TOKEN_PREFIX) {
            return None;
        }
        let hash = hash_token(token);
        let expiry_time = self.shared.expiry_time(self.shared.clock.now());
        let state = self.shared.state();
        let (id, found) = state.find_token(&hash)?;
        let is_expired = found.marked_expired || self.shared.has_expired(found.expires_at, expiry_time);
        (!is_expired).then(|| found.info(id))
    }

    /// Returns the directory's environment, for compactions.
    #[must_use]
    pub fn environment(&self) -> Arc<Environment> {
        Arc::clone(self.shared.store.tables.environment())
    }

    /// Returns a number that every change increments after it is durable and in force, and before it is answered.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.shared.version()
    }

    /// Returns whether this management token exists and has not expired.
    #[must_use]
    pub fn is_token_valid(&self, id: TokenId) -> bool {
        let expiry_time = self.shared.expiry_time(self.shared.clock.now());
        self.shared.state().tokens.get(&id).is_some_and(|token| {
            !token.marked_expired && !self.shared.has_expired(token.expires_at, expiry_time)
        })
    }

    /// Returns when a management token expires; `None` if it does not, or does not exist.
    #[must_use]
    pub fn token_expiry(&self, id: TokenId) -> Option<Timestamp> {
        self.shared.state().tokens.get(&id).and_then(|token| token.expires_at)
    }

    /// Returns whether changes can be made. Reads work in any case.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn health(&self) -> Result<(), String> {
        self.shared.store.tables.health()
    }

    /// Makes the waiting changes, writes last uses to disk and ends the thread. Blocks. Later changes are refused with
    /// [`StoreFailure::Closing`](cairn_tables::StoreFailure::Closing).
    pub fn close(&self) {
        self.writer.close();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Directory").finish_non_exhaustive()
    }
}

/// Returns the lower bound of a range that begins after `after`.
fn excluded<T>(after: Option<T>) -> Bound<T> {
    after.map_or(Bound::Unbounded, Bound::Excluded)
}

/// Returns the ids of the first entries with at most `parts_max` parts together, and of the first entry in any case. An entry
/// counts as one part plus its `inner_parts`.
pub(super) fn page<'s, I: Copy + 's, T: 's>(
    parts_max: usize,
    entries: impl Iterator<Item = (&'s I, &'s T)>,
    inner_parts: impl Fn(&T) -> usize,
) -> impl Iterator<Item = I> {
    let mut parts = 0usize;
    let fits = move |(_, entry): &(&I, &T)| {
        let is_first = parts == 0;
        parts = parts.saturating_add(1 + inner_parts(entry));
        is_first || parts <= parts_max
    };
    entries.take_while(fits).map(|(id, _)| *id)
}

/// Runs the directory's thread: one change after the other, and the maintenance, until the directory is closed.
fn run(mut changes: Changes, queue: &ChangeQueue<Changes>) {
    let mut maintenance = Maintenance::new(&changes);
    let mut due = Instant::now() + MAINTENANCE_INTERVAL;
    loop {
        match queue.next(due.saturating_duration_since(Instant::now())) {
            Next::Change(change) => {
                changes.shared.follow_clock();
                change(&mut changes);
            }
            Next::TimedOut => {}
            Next::Closed => break,
        }
        if Instant::now() >= due {
            maintenance.run(&mut changes);
            due = Instant::now() + MAINTENANCE_INTERVAL;
        }
    }
    maintenance.run(&mut changes);
}
