//! Credentials on the way of a request: what one executor keeps at hand of the directory.
//!
//! An entry holds for one version of the directory. One atomic load per request says whether what is at hand still holds; if
//! not, all is forgotten and looked up again, under the directory's lock, when it is next asked for. So the number of
//! accounts and policies costs a request nothing, and a change holds for the very next request on every core.

use super::Directory;
use super::limits::CACHED_ACCESS_KEYS_MAX;
use super::seal::SecretOwner;
use super::shared::Shared;
use crate::credential::{AccountPrincipal, Credential, Credentials, Principal, RootCredential};
use cairn_model::Timestamp;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// The secret of an access key never changes, and no access key is given twice: signing keys that were derived from it stay
/// right for as long as the key is found.
const GENERATION: u64 = 1;

/// The root credential and those of the directory, for one executor.
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

/// A credential that may be used until it expires.
struct Entry {
    credential: Credential,
    expires_at: Option<Timestamp>,
}

impl ExecutorCredentials {
    /// With nothing at hand.
    #[must_use]
    pub fn new(root: RootCredential, directory: Arc<Directory>) -> Self {
        Self { root, directory, cache: RefCell::default() }
    }
}

impl Credentials for ExecutorCredentials {
    fn find(&self, access_key: &str, now: Timestamp) -> Option<Credential> {
        // In front of the directory: the configuration may have been given a key that an account has already.
        if let Some(root) = self.root.find(access_key, now) {
            return Some(root);
        }
        let shared = &self.directory.shared;
        // Before the version, see `Shared::follow_clock`.
        let now = shared.judged(now);
        let cache = &mut *self.cache.borrow_mut();
        // Read before the lookup: a change in between raises it again, and what was found is forgotten with the next request.
        let version = shared.version();
        if cache.version != version {
            cache.entries.clear();
            cache.version = version;
        }
        if let Some(entry) = cache.entries.get(access_key) {
            return entry.at(now, shared);
        }
        let (access_key, entry) = self.directory.look_up(access_key)?;
        if cache.entries.len() >= CACHED_ACCESS_KEYS_MAX {
            cache.entries.clear();
        }
        let found = entry.at(now, shared);
        cache.entries.insert(access_key, entry);
        found
    }
}

impl Entry {
    fn at(&self, judged: Timestamp, shared: &Shared) -> Option<Credential> {
        (!shared.has_expired(self.expires_at, judged)).then(|| self.credential.clone())
    }
}

impl Directory {
    /// The credential of an access key, if it and its account are enabled.
    fn look_up(&self, access_key: &str) -> Option<(Arc<str>, Entry)> {
        let state = self.shared.state();
        let (account_id, account, id, credential) = state.find_access_key(access_key)?;
        if !account.enabled || !credential.enabled || credential.has_died {
            return None;
        }
        let owner = SecretOwner { account: account_id, credential: id, access_key };
        // It was opened once at the start, or made since: only a defect of memory can keep it shut.
        let secret_key = self.shared.sealing.open(owner, &credential.sealed_secret)?;
        let principal = AccountPrincipal {
            id: account_id,
            // A copy of this executor's own: counting its users must not make cores wait for each other.
            name: (*account.name).into(),
            rights: Arc::clone(&account.rights),
        };
        let found = Credential {
            secret_key: secret_key.into(),
            principal: Principal::Account(Arc::new(principal)),
            generation: GENERATION,
            allowed_on_data_plane: true,
            last_use: Some(Arc::clone(&credential.last_used)),
        };
        let access_key = (*credential.access_key).into();
        Some((access_key, Entry { credential: found, expires_at: credential.expires_at }))
    }
}
