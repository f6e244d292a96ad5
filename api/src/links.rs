//! Shares and embeds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::optional::{present, removable};
use crate::text::{BucketName, Id, ObjectKey, Time, VersionId, text};

/// Most downloads that a share can be limited to: 2^53 - 1, which every JSON parser reads exactly.
pub const MAXIMUM_DOWNLOADS_MAX: u64 = 9_007_199_254_740_991;

text! {
    /// A text for people, of at most 256 bytes.
    LinkLabel("maxLength" = 256, "pattern" = r"^[^\u0000-\u001f\u007f-\u009f]*$");
    /// At most 1024 bytes.
    Password("minLength" = 1, "maxLength" = 1024);
    /// The disposition of the content: browsers show it or download it.
    Disposition("enum" = ["inline", "attachment"]);
    /// The status of a share. Exhausted: it was downloaded as often as allowed.
    ShareStatus("enum" = ["active", "revoked", "expired", "exhausted"]);
    /// The status of an embed.
    EmbedStatus("enum" = ["active", "revoked", "expired"]);
    /// Whoever has the URL can use it.
    CapabilityUrl("pattern" = "^https?://.+/[se]/[A-Za-z0-9_-]{43}$");
    /// Scheme, host and, if it is not the scheme's default, port.
    WebOrigin("maxLength" = 280, "pattern" = r"^https?://[^/?#@\u0000-\u0020\u007f-\u00a0]+$");
    /// The version that an embed shows.
    EmbedVersionMode("enum" = ["current", "pinned"]);
}

/// The URL of a link.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct LinkUrl {
    pub url: CapabilityUrl,
}

/// A share, without its URL.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Share {
    pub id: Id,
    pub bucket: BucketName,
    pub key: ObjectKey,
    /// Null: the current version.
    pub version_id: Option<String>,
    pub label: Option<LinkLabel>,
    pub created_at: Time,
    pub created_by: String,
    pub expires_at: Option<Time>,
    pub password_protected: bool,
    pub disposition: Disposition,
    #[schemars(range(min = 1, max = MAXIMUM_DOWNLOADS_MAX))]
    pub maximum_downloads: Option<u64>,
    pub status: ShareStatus,
    pub access_count: u64,
    pub last_accessed_at: Option<Time>,
}

/// The shares of an object, the newest first.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ShareList {
    #[schemars(length(max = 1000))]
    pub shares: Vec<Share>,
}

/// A page of shares, the newest first.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct SharePage {
    #[schemars(length(max = 1000))]
    pub shares: Vec<Share>,
    /// Null on the last page.
    pub next_continuation_token: Option<String>,
}

/// A new share. All members are optional.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateShare {
    pub label: Option<LinkLabel>,
    pub password: Option<Password>,
    pub expires_at: Option<Time>,
    pub version_id: Option<VersionId>,
    pub disposition: Option<Disposition>,
    #[schemars(range(min = 1, max = MAXIMUM_DOWNLOADS_MAX))]
    pub maximum_downloads: Option<u64>,
}

/// A new share, with its URL.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NewShare {
    pub share: Share,
    pub url: CapabilityUrl,
}

/// Changes of a share. Members that are absent stay; null removes a value.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateShare {
    #[serde(default, deserialize_with = "removable", skip_serializing_if = "Option::is_none")]
    pub label: Option<Option<LinkLabel>>,
    #[serde(default, deserialize_with = "removable", skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Option<Time>>,
    #[serde(default, deserialize_with = "removable", skip_serializing_if = "Option::is_none")]
    pub password: Option<Option<Password>>,
    #[serde(default, deserialize_with = "removable", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAXIMUM_DOWNLOADS_MAX))]
    pub maximum_downloads: Option<Option<u64>>,
}

/// The version that an embed shows: always the current one, or one that is pinned.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"properties": {"mode": {"const": "current"}, "version_id": {"type": "null"}}},
    {"properties": {"mode": {"const": "pinned"}, "version_id": {"type": "string"}}, "required": ["version_id"]},
]))]
pub struct EmbedVersion {
    pub mode: EmbedVersionMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_id: Option<VersionId>,
}

/// An embed, without its URL.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Embed {
    pub id: Id,
    pub bucket: BucketName,
    pub key: ObjectKey,
    pub label: Option<LinkLabel>,
    /// Origins of the pages that may use the embed.
    #[schemars(length(min = 1, max = 100))]
    pub allowed_origins: Vec<WebOrigin>,
    pub disposition: Disposition,
    pub expires_at: Option<Time>,
    pub version: EmbedVersion,
    pub created_at: Time,
    pub created_by: String,
    pub status: EmbedStatus,
    pub access_count: u64,
    pub last_accessed_at: Option<Time>,
}

/// The embeds of an object, the newest first.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct EmbedList {
    #[schemars(length(max = 1000))]
    pub embeds: Vec<Embed>,
}

/// A page of embeds, the newest first.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct EmbedPage {
    #[schemars(length(max = 1000))]
    pub embeds: Vec<Embed>,
    /// Null on the last page.
    pub next_continuation_token: Option<String>,
}

/// A new embed.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateEmbed {
    pub label: Option<LinkLabel>,
    /// Origins of the pages that may use the embed.
    #[schemars(length(min = 1, max = 100))]
    pub allowed_origins: Vec<WebOrigin>,
    pub disposition: Option<Disposition>,
    pub expires_at: Option<Time>,
    pub version: Option<EmbedVersion>,
}

/// A new embed, with its URL.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NewEmbed {
    pub embed: Embed,
    pub url: CapabilityUrl,
    /// HTML that shows the embed in a page.
    pub snippet: String,
}

/// Changes of an embed. Members that are absent stay; null removes label and expiry.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateEmbed {
    #[serde(default, deserialize_with = "removable", skip_serializing_if = "Option::is_none")]
    pub label: Option<Option<LinkLabel>>,
    /// Origins of the pages that may use the embed.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<WebOrigin>", length(min = 1, max = 100))]
    pub allowed_origins: Option<Vec<WebOrigin>>,
    #[serde(default, deserialize_with = "removable", skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Option<Time>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Disposition")]
    pub disposition: Option<Disposition>,
}

/// The deployment-wide policy of sharing.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct SharingSettings {
    pub embeds_enabled: bool,
    #[schemars(range(min = 1))]
    pub maximum_lifetime_days: Option<u64>,
    pub require_expiration: bool,
    pub share_base_url: Option<String>,
    pub embed_base_url: Option<String>,
}
