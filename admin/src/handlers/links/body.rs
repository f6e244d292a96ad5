//! JSON forms of shares and embeds. They contain neither the token nor the password.

use cairn_http1::iso8601_millis;
use cairn_model::Timestamp;
use cairn_sharing::{AnyLink, Embed, Link, LinkStatus, Share};
use serde::Serialize;

/// A kind of links as responses show it.
pub(crate) trait ManagedLink: AnyLink {
    /// The member of a response that contains a list of them.
    const MEMBER: &'static str;
    /// The statuses that they can have.
    const STATUSES: &'static [LinkStatus];
    /// The JSON form.
    type Body: Serialize;

    /// Returns the JSON form at a time.
    fn body(&self, now: Timestamp) -> Self::Body;
}

impl ManagedLink for Share {
    const MEMBER: &'static str = "shares";
    const STATUSES: &'static [LinkStatus] = &LinkStatus::ALL;
    type Body = ShareBody;

    fn body(&self, now: Timestamp) -> ShareBody {
        ShareBody::new(self, now)
    }
}

impl ManagedLink for Embed {
    const MEMBER: &'static str = "embeds";
    const STATUSES: &'static [LinkStatus] = &[LinkStatus::Active, LinkStatus::Revoked, LinkStatus::Expired];
    type Body = EmbedBody;

    fn body(&self, now: Timestamp) -> EmbedBody {
        EmbedBody::new(self, now)
    }
}

fn time(time: Timestamp) -> String {
    iso8601_millis(time.0)
}

fn label(link: &Link) -> Option<String> {
    Some(link.label.clone()).filter(|label| !label.is_empty())
}

/// JSON form of a share.
#[derive(Serialize)]
pub(crate) struct ShareBody {
    id: String,
    bucket: String,
    key: String,
    version_id: Option<String>,
    label: Option<String>,
    created_at: String,
    created_by: String,
    expires_at: Option<String>,
    password_protected: bool,
    disposition: &'static str,
    maximum_downloads: Option<u64>,
    status: &'static str,
    access_count: u64,
    last_accessed_at: Option<String>,
}

impl ShareBody {
    fn new(share: &Share, now: Timestamp) -> Self {
        let link = &share.link;
        Self {
            id: link.id.to_string(),
            bucket: link.object.bucket.to_string(),
            key: link.object.key.to_string(),
            version_id: link.object.version.map(|version| version.to_string()),
            label: label(link),
            created_at: time(link.created_at),
            created_by: link.created_by.clone(),
            expires_at: link.expires_at.map(time),
            password_protected: share.is_password_protected(),
            disposition: share.disposition.name(),
            maximum_downloads: share.maximum_downloads,
            status: share.status_at(now).name(),
            access_count: link.access_count,
            last_accessed_at: link.last_accessed_at.map(time),
        }
    }
}

/// JSON form of an embed.
#[derive(Serialize)]
pub(crate) struct EmbedBody {
    id: String,
    bucket: String,
    key: String,
    label: Option<String>,
    allowed_origins: Vec<String>,
    disposition: &'static str,
    expires_at: Option<String>,
    version: VersionBody,
    created_at: String,
    created_by: String,
    status: &'static str,
    access_count: u64,
    last_accessed_at: Option<String>,
}

/// The version that an embed shows.
#[derive(Serialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
enum VersionBody {
    Current,
    Pinned { version_id: String },
}

impl EmbedBody {
    fn new(embed: &Embed, now: Timestamp) -> Self {
        let link = &embed.link;
        let pinned =
            |version: cairn_model::VersionName| VersionBody::Pinned { version_id: version.to_string() };
        Self {
            id: link.id.to_string(),
            bucket: link.object.bucket.to_string(),
            key: link.object.key.to_string(),
            label: label(link),
            allowed_origins: embed.allowed_origins.iter().map(ToString::to_string).collect(),
            disposition: embed.disposition.name(),
            expires_at: link.expires_at.map(time),
            version: link.object.version.map_or(VersionBody::Current, pinned),
            created_at: time(link.created_at),
            created_by: link.created_by.clone(),
            status: embed.status_at(now).name(),
            access_count: link.access_count,
            last_accessed_at: link.last_accessed_at.map(time),
        }
    }
}
