//! Credentials: the pair of access key and secret, whom it stands for, and where it may be used.
//!
//! Secrets are held as shared strings so that a lookup copies no bytes. `Debug` never shows one.

use std::fmt;
use std::sync::Arc;

/// Whom a credential stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// The operator's root credential: every operation on every bucket.
    Root,
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
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Credential")
            .field("secret_key", &"redacted")
            .field("principal", &self.principal)
            .field("generation", &self.generation)
            .field("allowed_on_data_plane", &self.allowed_on_data_plane)
            .finish()
    }
}

/// Finds the credential of an access key.
pub trait Credentials {
    /// The credential of `access_key`, or `None` when there is none or it is disabled or expired.
    fn find(&self, access_key: &str) -> Option<Credential>;
}

impl<C: Credentials + ?Sized> Credentials for &C {
    fn find(&self, access_key: &str) -> Option<Credential> {
        (**self).find(access_key)
    }
}

impl<C: Credentials + ?Sized> Credentials for Arc<C> {
    fn find(&self, access_key: &str) -> Option<Credential> {
        (**self).find(access_key)
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
    fn find(&self, access_key: &str) -> Option<Credential> {
        (access_key == &*self.access_key).then(|| Credential {
            secret_key: Arc::clone(&self.secret_key),
            principal: Principal::Root,
            generation: ROOT_GENERATION,
            allowed_on_data_plane: self.s3_enabled,
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
        let found = root.find("root").expect("root is known");
        assert!(!format!("{root:?}{found:?}").contains("hush"));
    }

    #[test]
    fn only_the_exact_access_key_finds_root() {
        let root = RootCredential::new("root", "secret");
        assert!(root.find("root").is_some_and(|found| found.allowed_on_data_plane));
        for other in ["", "roo", "root ", "ROOT"] {
            assert!(root.find(other).is_none(), "{other:?}");
        }
    }
}
