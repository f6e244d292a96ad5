//! Management tokens, and the session of a credential.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{Id, Name, Role, Time, text};

text! {
    /// Returned only once.
    TokenText("pattern" = "^cairn_mt_[A-Za-z0-9_-]{43}$");
    /// The authentication method of a caller.
    AuthenticationKind("enum" = ["token", "basic", "openid"]);
}

/// A management token, without the token itself.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ManagementToken {
    pub id: Id,
    pub name: Name,
    pub role: Role,
    pub created_at: Time,
    pub expires_at: Option<Time>,
}

/// All management tokens.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ManagementTokenList {
    pub management_tokens: Vec<ManagementToken>,
}

/// A new management token.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateManagementToken {
    pub name: Name,
    pub role: Role,
    /// Null: the token does not expire.
    #[schemars(range(min = 1, max = 316_224_000))]
    pub expires_in_seconds: Option<u64>,
}

/// A new management token, with the token.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NewManagementToken {
    pub management_token: ManagementToken,
    pub token: TokenText,
}

/// Role of the credential of a request.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Session {
    pub role: Role,
    /// Its name in the audit trail.
    pub principal: String,
    pub authentication: AuthenticationKind,
}
