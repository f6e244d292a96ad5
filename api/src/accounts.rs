//! Service accounts and their credentials.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::optional::or_default;
use crate::text::{Description, Id, Name, Time, text};

text! {
    /// Names a credential in a signature. Those that the server generates have 20 letters and digits.
    AccessKey("minLength" = 3, "maxLength" = 128, "pattern" = "^[A-Za-z0-9._+=/@-]+$");
    /// Returned only once.
    SecretKey("pattern" = "^[A-Za-z0-9]{40}$");
    /// A secret that the client chooses: printable ASCII characters without spaces. Never returned.
    GivenSecretKey("minLength" = 8, "maxLength" = 128, "pattern" = "^[!-~]+$");
}

/// Keys that a credential gets instead of generated ones.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenCredential {
    pub access_key: AccessKey,
    pub secret_key: GivenSecretKey,
    /// The time when the credential stops working, as a temporary one does. In the future. Null: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

/// Messages do not quote the value, which may be a secret in the wrong place.
impl<'de> Deserialize<'de> for GivenCredential {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Members {
            access_key: AccessKey,
            secret_key: GivenSecretKey,
            expires_at: Option<Time>,
        }
        let expected = "credential must be an object with the members access_key, secret_key and, if it expires, \
                        expires_at, all of them texts";
        let Members { access_key, secret_key, expires_at } =
            Members::deserialize(value).map_err(|_| D::Error::custom(expected))?;
        Ok(Self { access_key, secret_key, expires_at })
    }
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
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Description>")]
    pub description: Description,
    /// Keys that an application already has. Without them, keys are generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<GivenCredential>,
}

/// The first credential of a new account, with its secret key if the server generated it.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct FirstCredential {
    pub id: Id,
    pub access_key: AccessKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<SecretKey>,
}

/// A new service account, and its first credential.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NewServiceAccount {
    pub service_account: ServiceAccount,
    pub credential: FirstCredential,
}

/// A credential with its secret key if the server generated it.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CredentialWithSecret {
    #[serde(flatten)]
    pub credential: Credential,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<SecretKey>,
}

/// A new credential.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NewCredential {
    pub credential: CredentialWithSecret,
}

/// An additional credential, with generated keys or with these.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateCredential {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<GivenCredential>,
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
