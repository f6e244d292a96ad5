//! Bodies that visitors of shares send and receive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{Time, text};

text! {
    /// The last part of a share's URL.
    CapabilityToken("pattern" = "^[A-Za-z0-9_-]{43}$");
}

/// The object of a share. Nothing about it is known before a required password was given.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ShareDescriptor {
    pub name: Option<String>,
    pub size: Option<u64>,
    pub content_type: Option<String>,
    pub last_modified: Option<Time>,
    pub expires_at: Option<Time>,
    pub password_required: bool,
    pub unlocked: bool,
    pub content_url: Option<String>,
}

/// The password of a share.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnlockShare {
    pub password: String,
}

/// Gives access to the content of a share until it expires.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct UnlockedShare {
    #[schemars(extend("const" = true))]
    pub unlocked: bool,
    /// For the header x-service-unlock.
    pub unlock_token: String,
    pub expires_at: Time,
}
