//! Credential lookup for requests, with a cache per executor.
//!
//! The cache is valid for one version of the directory. One atomic load per request tells whether the version is still current.
//! If not, the cache is emptied, and credentials are looked up again, under the directory's lock, when they are next used. The
//! number of accounts and policies therefore costs a request nothing, and a change is in force for the next request on every
//! core.

use super::handle::Directory;
use super::limits::CACHED_ACCESS_KEYS_MAX;
use super::seal::SecretOwner;
use super::shared::Shared;
use super::view::CredentialStatus;
use crate::credential::{
    AccountPrincipal, Credential, Credentials, Generation, Principal, RootCredential, Usability,
};
use crate::id::CredentialId;
use cairn_model::Timestamp;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Finds the root credential and the credentials of the directory, for one executor.
pub struct ExecutorCredentials {
    root: RootCredential,
    directory: Arc<Directory>,
    cache: RefCell<Cache>,
}

#[derive(Default)]
struct Cache {
    version: u64,
    entries: HashMap<Arc<str>, Entry>,
}

/// A credential that is valid until it expires.
struct Entry {
    credential: Credential,
    expires_at: Option<Timestamp>,
}

impl ExecutorCredentials {
    /// Makes an empty cache.
    #[must_use]
    pub fn new(root: RootCredential, directory: Arc<Directory>) -> Self {
        Self { root, directory, cache: RefCell::default() }
    }
}

impl Credentials for ExecutorCredentials {
    fn find(&self, access_key: &str, now: Timestamp) -> Option<Credential> {
        // Root overrides the directory, because the configured key may be one that an account already has.
        if let Some(root) = self.root.find(access_key, now) {
            return Some(root);
        }
        let shared = &self.directory.shared;
        // Read before the version, see `Shared::follow_clock`.
        let expiry_time = shared.expiry_time(now);
        let cache = &mut *self.cache.borrow_mut();
        // Read before the lookup. A change in between increments the version again, so the next request empties the cache.
        let version = shared.version();
        if cache.version != version {
            cache.entries.clear();
            cache.version = version;
        }
        if let Some(entry) = cache.entries.get(access_key) {
            return entry.if_valid(expiry_time, shared);
        }
        let (access_key, entry) = self.directory.find_credential(access_key)?;
        if cache.entries.len() >= CACHED_ACCESS_KEYS_MAX {
            cache.entries.clear();
        }
        let found = entry.if_valid(expiry_time, shared);
        cache.entries.insert(access_key, entry);
        found
    }

    fn version(&self) -> u64 {
        self.directory.version()
    }

    fn principal(&self, access_key: &str, generation: Generation) -> Option<Principal> {
        if self.root.is_access_key(access_key) {
            return self.root.principal(access_key, generation);
        }
        let (_, Entry { credential, .. }) = self.directory.find_credential(access_key)?;
        (credential.generation == generation).then_some(credential.principal)
    }

    fn usability(&self, access_key: &str) -> Option<Usability> {
        // Root overrides the directory, and is not the credential of an account.
        if self.root.is_access_key(access_key) {
            return None;
        }
        let (account, status) = self.directory.credential_status(access_key)?;
        Some(match status {
            _ if !self.directory.is_enabled(account) => Usability::AccountDisabled,
            CredentialStatus::Disabled => Usability::CredentialDisabled,
            CredentialStatus::Expired => Usability::CredentialExpired,
            CredentialStatus::Valid => Usability::Usable,
        })
    }
}

/// Returns the generation of a credential: its id. The secret of a credential never changes, and the access key of a deleted
/// credential can be given to another one, which has another id.
fn generation_of(id: CredentialId) -> Generation {
    Generation::from_be_bytes(id.0)
}

impl Entry {
    fn if_valid(&self, expiry_time: Timestamp, shared: &Shared) -> Option<Credential> {
        (!shared.has_expired(self.expires_at, expiry_time)).then(|| self.credential.clone())
    }
}

impl Directory {
    /// Returns the credential of an access key if it and its account are enabled.
    fn find_credential(&self, access_key: &str) -> Option<(Arc<str>, Entry)> {
        let state = self.shared.state();
        let (account_id, account, id, credential) = state.find_access_key(access_key)?;
        if !account.enabled || !credential.enabled || credential.marked_expired {
            return None;
        }
        let owner = SecretOwner { account: account_id, credential: id, access_key };
        // Opened once at the start, or sealed since. This fails only if memory is corrupted.
        let secret_key = self.shared.sealing.open(owner, &credential.sealed_secret)?;
        let principal = AccountPrincipal {
            id: account_id,
            // Copied, because a shared reference count would make cores wait for each other.
            audit_name: format!("account:{}", account.name).into(),
            rights: Arc::clone(&account.rights),
        };
        let found = Credential {
            secret_key: Arc::new(secret_key),
            principal: Principal::Account(Arc::new(principal)),
            generation: generation_of(id),
            allowed_on_data_plane: true,
            last_use: Some(Arc::clone(&credential.last_used)),
        };
        let access_key = (*credential.access_key).into();
        Some((access_key, Entry { credential: found, expires_at: credential.expires_at }))
    }
}
