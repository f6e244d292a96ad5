//! Credentials: the pair of access key and secret, whom it stands for, and where it may be used.
//!
//! Secrets are held as shared strings so that a lookup copies no bytes. `Debug` never shows one.

use crate::directory::{AccountId, LastUse};
use crate::policy::{Action, Decision, Resource, Rights};
use cairn_model::Timestamp;
use std::fmt;
use std::sync::Arc;

/// Whom a credential stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// The operator's root credential: every operation on every bucket.
    Root,
    /// A service account: what its policies allow.
    Account(Arc<AccountPrincipal>),
}

/// A service account as it was when its credential was found.
#[derive(PartialEq, Eq)]
pub struct AccountPrincipal {
    /// Its id.
    pub id: AccountId,
    /// Its name.
    pub name: Box<str>,
    /// What its policies amount to.
    pub rights: Arc<Rights>,
}

impl fmt::Debug for AccountPrincipal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, name, rights: _ } = self;
        formatter.debug_struct("AccountPrincipal").field("id", id).field("name", name).finish_non_exhaustive()
    }
}

impl Principal {
    /// Whether the principal may do this.
    #[must_use]
    pub fn decide(&self, action: Action, resource: Resource<'_>) -> Decision {
        match self {
            Self::Root => Decision::Allowed,
            Self::Account(account) => account.rights.decide(action, resource),
        }
    }

    /// Whether a bucket is shown to the principal in the list of buckets: some statement allows it something there.
    #[must_use]
    pub fn sees_bucket(&self, bucket: &str) -> bool {
        match self {
            Self::Root => true,
            Self::Account(account) => account.rights.allows_something_on(bucket),
        }
    }
}

/// As audit records name it: `root`, or `account:` and the account's name.
impl fmt::Display for Principal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => formatter.write_str("root"),
            Self::Account(account) => write!(formatter, "account:{}", account.name),
        }
    }
}

/// What a lookup of an access key yields.
#[derive(Clone)]
pub struct Credential {
    /// The secret that signing keys are derived from. Never logged.
    pub secret_key: Arc<str>,
    /// Whom the credential stands for.
    pub principal: Principal,
    /// Changes whenever the secret or the state of the credential changes, and so invalidates the signing keys
    /// that were derived from the secret before.
    pub generation: u64,
    /// Whether the credential may be used for S3. When not, a request that is rightly signed with it is still
    /// refused.
    pub allowed_on_data_plane: bool,
    /// Where it is noted that a request was rightly signed with it; for root nowhere.
    pub last_use: Option<Arc<LastUse>>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Credential")
            .field("secret_key", &"redacted")
            .field("principal", &self.principal)
            .field("generation", &self.generation)
            .field("allowed_on_data_plane", &self.allowed_on_data_plane)
            .finish_non_exhaustive()
    }
}

/// Finds the credential of an access key.
pub trait Credentials {
    /// The credential of `access_key`, or `None` when there is none or it is disabled, or expired by `now`.
    fn find(&self, access_key: &str, now: Timestamp) -> Option<Credential>;
}

impl<C: Credentials + ?Sized> Credentials for &C {
    fn find(&self, access_key: &str, now: Timestamp) -> Option<Credential> {
        (**self).find(access_key, now)
    }
}

impl<C: Credentials + ?Sized> Credentials for Box<C> {
    fn find(&self, access_key: &str, now: Timestamp) -> Option<Credential> {
        (**self).find(access_key, now)
    }
}

/// The operator's credential, given by the configuration and fixed while the process runs.
#[derive(Clone)]
pub struct RootCredential {
    access_key: Arc<str>,
    secret_key: Arc<str>,
    s3_enabled: bool,
}

/// The root credential cannot change within a process, so neither does its generation.
const ROOT_GENERATION: u64 = 0;

impl RootCredential {
    /// A root credential that may be used for S3. The configuration refuses keys that are empty or too short.
    #[must_use]
    pub fn new(access_key: &str, secret_key: &str) -> Self {
        Self { access_key: access_key.into(), secret_key: secret_key.into(), s3_enabled: true }
    }

    /// Sets whether root may be used for S3. Switched off, its requests authenticate and are then refused with
    /// `AccessDenied`.
    #[must_use]
    pub fn s3_enabled(mut self, enabled: bool) -> Self {
        self.s3_enabled = enabled;
        self
    }

    /// The access key, which is no secret.
    #[must_use]
    pub fn access_key(&self) -> &Arc<str> {
        &self.access_key
    }
}

impl Credentials for RootCredential {
    fn find(&self, access_key: &str, _now: Timestamp) -> Option<Credential> {
        (access_key == &*self.access_key).then(|| Credential {
            secret_key: Arc::clone(&self.secret_key),
            principal: Principal::Root,
            generation: ROOT_GENERATION,
            allowed_on_data_plane: self.s3_enabled,
            last_use: None,
        })
    }
}

impl fmt::Debug for RootCredential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RootCredential")
            .field("access_key", &self.access_key)
            .field("secret_key", &"redacted")
            .field("s3_enabled", &self.s3_enabled)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_never_shows_a_secret() {
        let root = RootCredential::new("root", "hush-hush-hush");
        let found = root.find("root", Timestamp(0)).expect("root is known");
        assert!(!format!("{root:?}{found:?}").contains("hush"));
    }

    #[test]
    fn only_the_exact_access_key_finds_root() {
        let root = RootCredential::new("root", "secret");
        assert!(root.find("root", Timestamp(0)).is_some_and(|found| found.allowed_on_data_plane));
        for other in ["", "roo", "root ", "ROOT"] {
            assert!(root.find(other, Timestamp(0)).is_none(), "{other:?}");
        }
    }
}
