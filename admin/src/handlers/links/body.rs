//! JSON forms of shares and embeds. They contain neither the token nor the password.

use cairn_api::{EmbedVersion, LinkLabel, Time};
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
    type Body = cairn_api::Share;

    fn body(&self, now: Timestamp) -> cairn_api::Share {
        share_body(self, now)
    }
}

impl ManagedLink for Embed {
    const MEMBER: &'static str = "embeds";
    const STATUSES: &'static [LinkStatus] = &[LinkStatus::Active, LinkStatus::Revoked, LinkStatus::Expired];
    type Body = cairn_api::Embed;

    fn body(&self, now: Timestamp) -> cairn_api::Embed {
        embed_body(self, now)
    }
}

fn label(link: &Link) -> Option<LinkLabel> {
    Some(link.label.clone()).filter(|label| !label.is_empty()).map(LinkLabel::from)
}

/// Returns the body of a share.
fn share_body(share: &Share, now: Timestamp) -> cairn_api::Share {
    let link = &share.link;
    cairn_api::Share {
        id: link.id.to_string().into(),
        bucket: link.object.bucket.to_string().into(),
        key: link.object.key.to_string().into(),
        version_id: link.object.version.map(|version| version.to_string()),
        label: label(link),
        created_at: link.created_at.into(),
        created_by: link.created_by.clone(),
        expires_at: link.expires_at.map(Time::from),
        password_protected: share.is_password_protected(),
        disposition: share.disposition.name().into(),
        maximum_downloads: share.maximum_downloads,
        status: share.status_at(now).name().into(),
        access_count: link.access_count,
        last_accessed_at: link.last_accessed_at.map(Time::from),
    }
}

/// Returns the body of an embed.
fn embed_body(embed: &Embed, now: Timestamp) -> cairn_api::Embed {
    let link = &embed.link;
    let mode = if link.object.version.is_some() { "pinned" } else { "current" };
    let version_id = link.object.version.map(|version| version.to_string().into());
    cairn_api::Embed {
        id: link.id.to_string().into(),
        bucket: link.object.bucket.to_string().into(),
        key: link.object.key.to_string().into(),
        label: label(link),
        allowed_origins: embed.allowed_origins.iter().map(|origin| origin.to_string().into()).collect(),
        disposition: embed.disposition.name().into(),
        expires_at: link.expires_at.map(Time::from),
        version: EmbedVersion { mode: mode.into(), version_id },
        created_at: link.created_at.into(),
        created_by: link.created_by.clone(),
        status: embed.status_at(now).name().into(),
        access_count: link.access_count,
        last_accessed_at: link.last_accessed_at.map(Time::from),
    }
}
