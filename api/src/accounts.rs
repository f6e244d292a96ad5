//! Service accounts and their credentials.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{Description, Id, Name, Time, text};

text! {
    /// Names a credential in a signature.
    AccessKey("pattern" = "^[A-Z0-9]{20}$");
    /// Returned only once.
    SecretKey("pattern" = "^[A-Za-z0-9]{40}$");
}

/// A credential without its secret key.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Credential {
    pub id: Id,
    pub access_key: AccessKey,
    pub enabled: bool,
    pub temporary: bool,
    pub created_at: Time,
    pub expires_at: Option<Time>,
    pub last_used_at: Option<Time>,
}

/// A policy that an account has.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct AttachedPolicy {
    pub id: Id,
    pub name: Name,
}

/// A service account with its credentials and policies.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ServiceAccount {
    pub id: Id,
    pub name: Name,
    pub description: Description,
    pub enabled: bool,
    pub created_at: Time,
    pub credentials: Vec<Credential>,
    pub policies: Vec<AttachedPolicy>,
}

/// All service accounts.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ServiceAccountList {
    pub service_accounts: Vec<ServiceAccount>,
}

/// A new service account.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateServiceAccount {
    pub name: Name,
    #[serde(default)]
    pub description: Description,
}

/// The first credential of a new account, with its secret key.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct FirstCredential {
    pub id: Id,
    pub access_key: AccessKey,
    pub secret_key: SecretKey,
}

/// A new service account, and its first credential.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NewServiceAccount {
    pub service_account: ServiceAccount,
    pub credential: FirstCredential,
}

/// A credential with its secret key.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CredentialWithSecret {
    #[serde(flatten)]
    pub credential: Credential,
    pub secret_key: SecretKey,
}

/// A new credential.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NewCredential {
    pub credential: CredentialWithSecret,
}

/// A new credential that expires.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTemporaryCredential {
    #[schemars(range(min = 60, max = 604_800))]
    pub expires_in_seconds: u64,
}

/// Enables or disables an account, a credential or a webhook.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetStatus {
    pub enabled: bool,
}

/// A body without members.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}
