//! Views of the directory's contents for callers. Only the results of creations contain a secret.

use super::secret::Secret;
use crate::id::{AccountId, CredentialId, PolicyId, TokenId};
use crate::policy::{Policy, Rights};
use crate::role::Role;
use cairn_model::Timestamp;
use std::sync::Arc;

/// The effect of a change. A change without effect succeeds too, but nothing is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The directory was changed.
    Changed,
    /// The directory already was in the requested state.
    Unchanged,
}

/// A service account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    /// The id.
    pub id: AccountId,
    /// The name, unique among accounts.
    pub name: Arc<str>,
    /// The purpose, for people.
    pub description: String,
    /// Whether the account's credentials may be used.
    pub enabled: bool,
    /// The time when the account was created.
    pub created_at: Timestamp,
    /// The credentials, oldest first.
    pub credentials: Vec<CredentialInfo>,
    /// The attached policies.
    pub policies: Vec<AttachedPolicy>,
}

/// The permissions of an account: its state and its policies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccountAccess {
    /// The id.
    pub id: AccountId,
    /// The name.
    pub name: Arc<str>,
    /// Whether the account's credentials may be used.
    pub enabled: bool,
    /// The compiled policies, which requests are decided by.
    pub rights: Arc<Rights>,
    /// The attached policies, oldest first.
    pub policies: Vec<(PolicyId, Arc<Policy>)>,
}

/// The state of a credential.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CredentialStatus {
    /// It may be used.
    Valid,
    /// It is disabled.
    Disabled,
    /// It has expired.
    Expired,
}

/// A policy in the view of an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttachedPolicy {
    /// The id.
    pub id: PolicyId,
    /// The name.
    pub name: String,
}

/// A credential without its secret key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CredentialInfo {
    /// The id.
    pub id: CredentialId,
    /// The access key.
    pub access_key: Arc<str>,
    /// Whether the credential may be used.
    pub enabled: bool,
    /// The time when the credential was created.
    pub created_at: Timestamp,
    /// The time when a temporary credential expires.
    pub expires_at: Option<Timestamp>,
    /// The time when the credential last signed a request correctly, accurate to a second.
    pub last_used_at: Option<Timestamp>,
}

/// A credential that was just created. Its secret key is shown only here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewCredential {
    /// The credential without its secret key.
    pub info: CredentialInfo,
    /// The secret key.
    pub secret_key: Secret,
}

/// A policy of the directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyInfo {
    /// The id.
    pub id: PolicyId,
    /// The policy.
    pub policy: Arc<Policy>,
    /// The time when the policy was created.
    pub created_at: Timestamp,
    /// The accounts that the policy is attached to.
    pub attached_to: Vec<AccountId>,
}

/// A policy whose document was replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyReplacement {
    /// The document before.
    pub before: Arc<Policy>,
    /// The policy as it is now.
    pub now: PolicyInfo,
}

/// A management token without the secret text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManagementToken {
    /// The id.
    pub id: TokenId,
    /// The name, for people.
    pub name: Arc<str>,
    /// The role that the token gives.
    pub role: Role,
    /// The time when the token was created.
    pub created_at: Timestamp,
    /// The time when the token expires, if ever.
    pub expires_at: Option<Timestamp>,
}

/// A management token that was just created. The token is shown only here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewManagementToken {
    /// The token without its secret text.
    pub info: ManagementToken,
    /// The token.
    pub token: Secret,
}
