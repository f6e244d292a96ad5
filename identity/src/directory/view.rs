//! What the directory shows of itself. No secret is in any of it, but in what a creation gives back.

use super::id::{AccountId, CredentialId, PolicyId, TokenId};
use super::secret::Secret;
use crate::policy::Policy;
use crate::role::Role;
use cairn_model::Timestamp;
use std::sync::Arc;

/// Whether a change changed anything. One that does not is answered as if it did, and nothing is written or raised for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Something is another way than before.
    Changed,
    /// It was so already.
    Unchanged,
}

/// A service account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// Its name, which no other account has.
    pub name: Arc<str>,
    /// What it is for.
    pub description: String,
    /// Whether its credentials may be used.
    pub enabled: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its credentials, the oldest first.
    pub credentials: Vec<CredentialInfo>,
    /// The policies that are attached to it.
    pub policies: Vec<AttachedPolicy>,
}

/// A policy as an account names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttachedPolicy {
    /// Its id.
    pub id: PolicyId,
    /// Its name.
    pub name: String,
}

/// A credential without its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CredentialInfo {
    /// Its id.
    pub id: CredentialId,
    /// The public half of the pair.
    pub access_key: Arc<str>,
    /// Whether it may be used.
    pub enabled: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it dies, if it is a temporary one.
    pub expires_at: Option<Timestamp>,
    /// When a request was last rightly signed with it, to the second.
    pub last_used_at: Option<Timestamp>,
}

/// A credential that was just made: the only time that its secret is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewCredential {
    /// What is shown of it later, too.
    pub info: CredentialInfo,
    /// The secret half of the pair.
    pub secret_key: Secret,
}

/// A policy of the directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyInfo {
    /// Its id.
    pub id: PolicyId,
    /// The document.
    pub policy: Arc<Policy>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The accounts that it is attached to.
    pub attached_to: Vec<AccountId>,
}

/// A management token without what authenticates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManagementToken {
    /// Its id.
    pub id: TokenId,
    /// What people call it.
    pub name: Arc<str>,
    /// What it may be used for.
    pub role: Role,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it dies, if it does.
    pub expires_at: Option<Timestamp>,
}

/// A management token that was just made: the only time that it is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewManagementToken {
    /// What is shown of it later, too.
    pub info: ManagementToken,
    /// The token.
    pub token: Secret,
}
