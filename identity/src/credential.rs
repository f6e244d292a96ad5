//! Credentials: access key and secret key, their principal, and where they may be used.
//!
//! Secrets are shared so that a lookup copies no bytes, and zeroed when the last reference is dropped. `Debug` never shows a
//! secret.

use crate::id::AccountId;
use crate::last_use::LastUse;
use crate::policy::{Action, Decision, Resource, Rights};
use cairn_model::Timestamp;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The identity that a credential authenticates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// The operator's root credential. May do every operation on every bucket.
    Root,
    /// A service account. May do what its policies allow.
    Account(Arc<AccountPrincipal>),
    /// Anybody: the request is not signed. No policy is about it, and the rules of public access may allow it.
    Anonymous,
}

/// A service account as it was when its credential was looked up.
#[derive(PartialEq, Eq)]
pub struct AccountPrincipal {
    /// The id.
    pub id: AccountId,
    /// The name in audit records and the request log: `account:` and the account's name.
    pub audit_name: Arc<str>,
    /// The compiled policies.
    pub rights: Arc<Rights>,
}

impl fmt::Debug for AccountPrincipal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, audit_name, rights: _ } = self;
        formatter
            .debug_struct("AccountPrincipal")
            .field("id", id)
            .field("audit_name", audit_name)
            .finish_non_exhaustive()
    }
}

impl Principal {
    /// The name of root in audit records and the request log.
    pub const ROOT_NAME: &str = "root";
    /// The name of anybody there.
    pub const ANONYMOUS_NAME: &str = "anonymous";

    /// Returns whether the principal may do this in a request of the client at this address.
    #[must_use]
    pub fn decide(&self, action: Action, resource: Resource<'_>, client: IpAddr) -> Decision {
        match self {
            Self::Root => Decision::Allowed,
            Self::Account(account) => account.rights.decide(action, resource, Some(client)),
            Self::Anonymous => Decision::DeniedImplicitly,
        }
    }

    /// Returns whether a bucket is shown to the principal in the list of buckets: some statement allows it something there.
    #[must_use]
    pub fn sees_bucket(&self, bucket: &str, client: IpAddr) -> bool {
        match self {
            Self::Root => true,
            Self::Account(account) => account.rights.allows_something_on(bucket, Some(client)),
            Self::Anonymous => false,
        }
    }
}

/// As audit records name it: `root`, `anonymous`, or `account:` and the account's name.
impl fmt::Display for Principal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => formatter.write_str(Self::ROOT_NAME),
            Self::Account(account) => formatter.write_str(&account.audit_name),
            Self::Anonymous => formatter.write_str(Self::ANONYMOUS_NAME),
        }
    }
}

/// A secret that signing keys are derived from, zeroed when the last reference is dropped.
pub type SecretKey = Arc<Zeroizing<String>>;

/// Tells the secrets of one access key apart. No two of them have the same number.
pub type Generation = u128;

/// The result of looking up an access key.
#[derive(Clone)]
pub struct Credential {
    /// The secret that signing keys are derived from. Never logged.
    pub secret_key: SecretKey,
    /// The identity that the credential authenticates.
    pub principal: Principal,
    /// The generation of the secret. An access key can be given again with another secret; keys and signatures that were made
    /// with an earlier one are then invalid.
    pub generation: Generation,
    /// Whether the credential may be used for S3. If not, its requests are refused unchecked.
    pub allowed_on_data_plane: bool,
    /// Records when a correctly signed request last used the credential. `None` for root.
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

/// The state of the credential of an account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Usability {
    /// It may be used.
    Usable,
    /// The account is disabled.
    AccountDisabled,
    /// The credential is disabled.
    CredentialDisabled,
    /// The credential has expired.
    CredentialExpired,
}

/// Finds the credential of an access key.
pub trait Credentials {
    /// Returns the credential of `access_key`, or `None` if it does not exist, is disabled, or has expired by `now`.
    fn find(&self, access_key: &str, now: Timestamp) -> Option<Credential>;

    /// Returns a number that every change of a credential, an account or a policy increments before it is answered.
    fn version(&self) -> u64;

    /// Returns the present principal of `access_key`, with its present rights, or `None` if it does not exist any more, has
    /// another secret, or is disabled. Expiry is not compared: a request that began in time may end later.
    fn principal(&self, access_key: &str, generation: Generation) -> Option<Principal>;

    /// Returns whether a credential may be used, or `None` if no account has this access key. For the explanation of
    /// refused requests only.
    fn usability(&self, _access_key: &str) -> Option<Usability> {
        None
    }
}

impl<C: Credentials + ?Sized> Credentials for &C {
    fn find(&self, access_key: &str, now: Timestamp) -> Option<Credential> {
        (**self).find(access_key, now)
    }

    fn version(&self) -> u64 {
        (**self).version()
    }

    fn principal(&self, access_key: &str, generation: Generation) -> Option<Principal> {
        (**self).principal(access_key, generation)
    }

    fn usability(&self, access_key: &str) -> Option<Usability> {
        (**self).usability(access_key)
    }
}

impl<C: Credentials + ?Sized> Credentials for Box<C> {
    fn find(&self, access_key: &str, now: Timestamp) -> Option<Credential> {
        (**self).find(access_key, now)
    }

    fn version(&self) -> u64 {
        (**self).version()
    }

    fn principal(&self, access_key: &str, generation: Generation) -> Option<Principal> {
        (**self).principal(access_key, generation)
    }

    fn usability(&self, access_key: &str) -> Option<Usability> {
        (**self).usability(access_key)
    }
}

/// The operator's credential, which comes from the configuration and is fixed while the process runs.
#[derive(Clone)]
pub struct RootCredential {
    access_key: Arc<str>,
    secret_key: SecretKey,
    s3_enabled: bool,
}

/// The root credential does not change within a process, so its generation does not either.
const ROOT_GENERATION: Generation = 0;

impl RootCredential {
    /// Makes a root credential that may be used for S3. The configuration has refused keys that are empty or too short.
    #[must_use]
    pub fn new(access_key: &str, secret_key: &str) -> Self {
        Self {
            access_key: access_key.into(),
            secret_key: Arc::new(Zeroizing::new(secret_key.to_owned())),
            s3_enabled: true,
        }
    }

    /// Sets whether root may be used for S3. If not, its requests are refused with `AccessDenied`, and
    /// their signatures are not checked.
    #[must_use]
    pub fn s3_enabled(mut self, enabled: bool) -> Self {
        self.s3_enabled = enabled;
        self
    }

    /// Returns the access key, which is not secret.
    #[must_use]
    pub fn access_key(&self) -> &Arc<str> {
        &self.access_key
    }

    /// Returns whether this is the root credential's access key.
    pub(crate) fn is_access_key(&self, access_key: &str) -> bool {
        access_key == &*self.access_key
    }
}

impl Credentials for RootCredential {
    fn find(&self, access_key: &str, _now: Timestamp) -> Option<Credential> {
        self.is_access_key(access_key).then(|| Credential {
            secret_key: Arc::clone(&self.secret_key),
            principal: Principal::Root,
            generation: ROOT_GENERATION,
            allowed_on_data_plane: self.s3_enabled,
            last_use: None,
        })
    }

    fn version(&self) -> u64 {
        0
    }

    fn principal(&self, access_key: &str, generation: Generation) -> Option<Principal> {
        (self.is_access_key(access_key) && generation == ROOT_GENERATION).then_some(Principal::Root)
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
    fn root_access_key_is_exact() {
        let root = RootCredential::new("root", "secret");
        assert!(root.find("root", Timestamp(0)).is_some_and(|found| found.allowed_on_data_plane));
        for other in ["", "roo", "root ", "ROOT"] {
            assert!(root.find(other, Timestamp(0)).is_none(), "{other:?}");
        }
    }
}
