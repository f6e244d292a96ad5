//! The directory of service accounts, credentials, policies, bindings and management tokens.
//!
//! All of it is in memory, and every change is durable before it is shown (`changes.rs`); the records are drawn in
//! `record.rs`. Requests find credentials through [`ExecutorCredentials`], which costs them no lock. Secrets are sealed at
//! rest (`seal.rs`) and told once, by what makes them.

mod changes;
mod error;
mod id;
mod limits;
mod lookup;
mod record;
mod rights;
mod seal;
mod secret;
mod shared;
mod state;
mod store;
#[cfg(test)]
mod testing;
mod upkeep;
mod view;

pub use error::{DirectoryError, DirectoryOpenError};
pub use id::{AccountId, CredentialId, PolicyId, TokenId};
pub use limits::{
    ACCOUNTS_MAX, ATTACHED_RESOURCES_MAX, CREDENTIALS_PER_ACCOUNT_MAX, MANAGEMENT_TOKENS_MAX, POLICIES_MAX,
    POLICIES_PER_ACCOUNT_MAX, RESOURCES_MAX, RESOURCES_PER_ACCOUNT_MAX, TEMPORARY_PER_ACCOUNT_MAX,
    TEMPORARY_SECONDS_MAX, TEMPORARY_SECONDS_MIN, TOKEN_SECONDS_MAX,
};
pub use lookup::ExecutorCredentials;
pub use record::LastUse;
pub use secret::Secret;
pub use view::{
    Account, AttachedPolicy, CredentialInfo, ManagementToken, NewCredential, NewManagementToken, Outcome,
    PolicyInfo,
};

use crate::policy::Policy;
use crate::role::Role;
use cairn_model::Clock;
use changes::Changes;
use futures_channel::oneshot;
use limits::{CHANGES_WAITING_MAX, UPKEEP_INTERVAL};
use seal::SealingKey;
use secret::{TOKEN_PREFIX, hash_token};
use shared::Shared;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use store::DirectoryStore;
use upkeep::Upkeep;

/// How the directory is opened.
pub struct DirectoryOptions {
    /// `<data-dir>/identity`. The lock on the data folder must be held: nobody else may have the directory open.
    pub folder: PathBuf,
    /// The id of the store that the directory belongs to.
    pub store: [u8; 16],
    /// What secrets are sealed under. Never stored.
    pub master_key: Vec<u8>,
    /// The root credential's access key, which no account is given.
    pub root_access_key: String,
    /// What times and expiry are judged by.
    pub clock: Arc<dyn Clock>,
}

type Job = Box<dyn FnOnce(&mut Changes) + Send>;

/// See the module's first lines. Shared by all executors.
pub struct Directory {
    shared: Arc<Shared>,
    jobs: Mutex<Option<SyncSender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Directory {
    /// Opens the directory and starts its thread. Blocks.
    ///
    /// # Errors
    /// [`DirectoryOpenError`], whose text says what to do. Nothing of an existing directory has been changed.
    pub fn open(options: DirectoryOptions) -> Result<Arc<Self>, DirectoryOpenError> {
        let DirectoryOptions { folder, store: id, master_key, root_access_key, clock } = options;
        let io = |error| DirectoryOpenError::Io { path: folder.clone(), error };
        let sealing = SealingKey::derive(&master_key, id).map_err(io)?;
        let store = DirectoryStore::open(&folder, id)?;
        let mut state = store.load(&folder, &sealing)?;
        let rights = state.compile();
        let shared = Arc::new(Shared::new(store, state, sealing, clock, root_access_key));
        let (jobs, waiting) = sync_channel(CHANGES_WAITING_MAX);
        let changes = Changes::new(Arc::clone(&shared), rights);
        let thread = std::thread::Builder::new().name("identity".to_owned()).spawn(move || {
            // What a panic left half-done is unknown.
            if catch_unwind(AssertUnwindSafe(|| run(changes, &waiting))).is_err() {
                tracing::error!(target: "service::identity", "the directory's thread panicked: the process ends");
                std::process::abort();
            }
        });
        let thread = Mutex::new(Some(thread.map_err(io)?));
        Ok(Arc::new(Self { shared, jobs: Mutex::new(Some(jobs)), thread }))
    }

    /// Has the thread make a change. Durable and in force on every core when it resolves. Dropping the future does not take
    /// the change back.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Changes) -> Result<T, DirectoryError> + Send + 'static,
    ) -> Result<T, DirectoryError> {
        let (reply, answer) = oneshot::channel();
        // The one who asked may have gone: then there is nobody to tell.
        let job: Job = Box::new(move |changes| drop(reply.send(change(changes))));
        let sent = match &*lock(&self.jobs) {
            Some(jobs) => jobs.try_send(job),
            None => return Err(DirectoryError::ShuttingDown),
        };
        sent.map_err(|refused| match refused {
            TrySendError::Full(_) => DirectoryError::Overloaded,
            TrySendError::Disconnected(_) => DirectoryError::ShuttingDown,
        })?;
        answer.await.map_err(|_| DirectoryError::ShuttingDown)?
    }

    /// Makes an account with one credential.
    ///
    /// # Errors
    /// [`DirectoryError::Invalid`], [`DirectoryError::NameTaken`], [`DirectoryError::TooMany`], or a failure.
    pub async fn create_account(
        &self,
        name: String,
        description: String,
    ) -> Result<(Account, NewCredential), DirectoryError> {
        self.change(move |changes| changes.create_account(&name, description)).await
    }

    /// Removes an account with its credentials and bindings; gives what it was.
    ///
    /// # Errors
    /// [`DirectoryError::AccountNotFound`], or a failure.
    pub async fn delete_account(&self, id: AccountId) -> Result<Account, DirectoryError> {
        self.change(move |changes| changes.delete_account(id)).await
    }

    /// Sets whether the credentials of an account may be used; gives the account.
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

    /// Makes a credential beside those that the account has, which go on working.
    ///
    /// # Errors
    /// [`DirectoryError::AccountNotFound`], [`DirectoryError::TooMany`], or a failure.
    pub async fn rotate(&self, account: AccountId) -> Result<NewCredential, DirectoryError> {
        self.change(move |changes| changes.add_credential(account, None)).await
    }

    /// Makes a credential that dies after so many seconds, [`TEMPORARY_SECONDS_MIN`] to [`TEMPORARY_SECONDS_MAX`].
    ///
    /// # Errors
    /// As [`Self::rotate`], and [`DirectoryError::Invalid`].
    pub async fn create_temporary(
        &self,
        account: AccountId,
        seconds: u64,
    ) -> Result<NewCredential, DirectoryError> {
        self.change(move |changes| changes.add_credential(account, Some(seconds))).await
    }

    /// Sets whether a credential may be used; gives the account.
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

    /// Removes a credential.
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

    /// Makes a policy, attached to nobody.
    ///
    /// # Errors
    /// [`DirectoryError::TooMany`], or a failure.
    pub async fn create_policy(&self, policy: Policy) -> Result<PolicyInfo, DirectoryError> {
        self.change(move |changes| changes.create_policy(policy)).await
    }

    /// Removes a policy that is attached to nobody; gives what it was.
    ///
    /// # Errors
    /// [`DirectoryError::PolicyNotFound`], [`DirectoryError::PolicyInUse`], or a failure.
    pub async fn delete_policy(&self, id: PolicyId) -> Result<PolicyInfo, DirectoryError> {
        self.change(move |changes| changes.delete_policy(id)).await
    }

    /// Attaches a policy to an account; nothing changes when it is already.
    ///
    /// # Errors
    /// [`DirectoryError::PolicyNotFound`], [`DirectoryError::AccountNotFound`], [`DirectoryError::TooMany`], or a failure.
    pub async fn attach(&self, policy: PolicyId, account: AccountId) -> Result<Outcome, DirectoryError> {
        self.change(move |changes| changes.attach(policy, account)).await
    }

    /// Detaches a policy from an account; nothing changes when it is not attached.
    ///
    /// # Errors
    /// [`DirectoryError::PolicyNotFound`], [`DirectoryError::AccountNotFound`], or a failure.
    pub async fn detach(&self, policy: PolicyId, account: AccountId) -> Result<Outcome, DirectoryError> {
        self.change(move |changes| changes.detach(policy, account)).await
    }

    /// Makes a management token; without `seconds`, one that does not expire.
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

    /// Removes a management token; gives what it was.
    ///
    /// # Errors
    /// [`DirectoryError::TokenNotFound`], or a failure.
    pub async fn delete_token(&self, id: TokenId) -> Result<ManagementToken, DirectoryError> {
        self.change(move |changes| changes.delete_token(id)).await
    }

    /// The accounts behind one, or the first ones, the oldest first: as many as have so many parts together, each one and all
    /// that it holds counted, and one at least if there is one. A list of all is made page by page, so that neither the
    /// directory nor an executor is held up.
    #[must_use]
    pub fn accounts(&self, after: Option<AccountId>, most: usize) -> Vec<Account> {
        let state = self.shared.state();
        let behind = state.accounts.range((behind(after), Bound::Unbounded));
        let page = within(most, behind, |found| found.credentials.len() + found.policies.len());
        page.filter_map(|id| state.account_view(id)).collect()
    }

    /// One account.
    #[must_use]
    pub fn account(&self, id: AccountId) -> Option<Account> {
        self.shared.state().account_view(id)
    }

    /// The policies behind one, or the first ones, as [`Self::accounts`].
    #[must_use]
    pub fn policies(&self, after: Option<PolicyId>, most: usize) -> Vec<PolicyInfo> {
        let state = self.shared.state();
        let behind = state.policies.range((behind(after), Bound::Unbounded));
        let page = within(most, behind, |found| found.resources + found.attached_to.len());
        page.filter_map(|id| state.policy_view(id)).collect()
    }

    /// One policy.
    #[must_use]
    pub fn policy(&self, id: PolicyId) -> Option<PolicyInfo> {
        self.shared.state().policy_view(id)
    }

    /// The management tokens behind one, or the first ones, as [`Self::accounts`]; each has one part.
    #[must_use]
    pub fn tokens(&self, after: Option<TokenId>, most: usize) -> Vec<ManagementToken> {
        let state = self.shared.state();
        let behind = state.tokens.range((behind(after), Bound::Unbounded));
        behind.take(most).map(|(id, token)| token.info(*id)).collect()
    }

    /// The management token that this text is, unless it has expired. Found by its hash, so the time that it takes tells
    /// nothing about tokens that are there.
    #[must_use]
    pub fn find_token(&self, token: &str) -> Option<ManagementToken> {
        if !token.starts_with(TOKEN_PREFIX) {
            return None;
        }
        let hash = hash_token(token);
        let judged = self.shared.judged(self.shared.clock.now());
        let state = self.shared.state();
        let (id, found) = state.find_token(&hash)?;
        let is_dead = found.has_died || self.shared.has_expired(found.expires_at, judged);
        (!is_dead).then(|| found.info(id))
    }

    /// Whether changes can be made: `Err` says what is wrong. Reads go on all the same.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn health(&self) -> Result<(), String> {
        self.shared.stopped.get().map_or(Ok(()), |reason| Err(reason.clone()))
    }

    /// Makes the changes that wait, writes down uses and ends the thread. Blocks. Later changes are refused with
    /// [`DirectoryError::ShuttingDown`].
    pub fn close(&self) {
        drop(lock(&self.jobs).take());
        if let Some(thread) = lock(&self.thread).take() {
            // One that panicked has ended the process already.
            let _ = thread.join();
        }
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

/// The bound of what follows.
fn behind<T>(after: Option<T>) -> Bound<T> {
    after.map_or(Bound::Unbounded, Bound::Excluded)
}

/// The ids of the first entries that have at most so many parts together, and of the first one in any case.
fn within<'s, I: Copy + 's, T: 's>(
    most: usize,
    entries: impl Iterator<Item = (&'s I, &'s T)>,
    held: impl Fn(&T) -> usize,
) -> impl Iterator<Item = I> {
    let mut parts = 0usize;
    let fits = move |(_, entry): &(&I, &T)| {
        let is_first = parts == 0;
        parts = parts.saturating_add(1 + held(entry));
        is_first || parts <= most
    };
    entries.take_while(fits).map(|(id, _)| *id)
}

/// The thread: one change after the other, and the upkeep, until nobody can ask any more.
fn run(mut changes: Changes, waiting: &Receiver<Job>) {
    let mut upkeep = Upkeep::new(&changes);
    let mut due = Instant::now() + UPKEEP_INTERVAL;
    loop {
        match waiting.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(job) => {
                changes.shared.follow_clock();
                job(&mut changes);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if Instant::now() >= due {
            upkeep.run(&mut changes);
            due = Instant::now() + UPKEEP_INTERVAL;
        }
    }
    upkeep.run(&mut changes);
}
