//! Public access: what anybody may read and list without a signature.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::optional::{or_default, or_yes, yes};
use crate::text::{BucketName, Time, text};

text! {
    /// The beginning of keys: at most 1024 bytes of UTF-8. Empty means all keys.
    PublicPrefix("maxLength" = 1024);
}

/// A rule: anybody may read the current objects whose keys begin with the prefix.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublicRule {
    pub prefix: PublicPrefix,
    /// Always true.
    #[serde(default = "yes", deserialize_with = "or_yes")]
    #[schemars(with = "Option<bool>", extend("enum" = [true, null]))]
    pub read: bool,
    /// Whether anybody may also list these keys.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<bool>")]
    pub list: bool,
}

/// The rules of a bucket, which replace all earlier ones. Each prefix occurs once.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublicAccess {
    #[schemars(length(max = 100))]
    pub rules: Vec<PublicRule>,
    /// Whether the rules have no effect.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<bool>")]
    pub blocked: bool,
}

/// A rule with its bucket.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PublicBucketRule {
    pub bucket: BucketName,
    pub prefix: PublicPrefix,
    pub read: bool,
    pub list: bool,
    /// Whether it has an effect: neither the bucket nor the server blocks it.
    pub effective: bool,
    pub created_at: Time,
    /// The principal that made it, as audit records name it.
    pub created_by: String,
}

/// Everything that is public.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PublicAccessList {
    /// Whether rules have an effect at all: `auth.public_access_enabled`.
    pub enabled: bool,
    pub rules: Vec<PublicBucketRule>,
}
