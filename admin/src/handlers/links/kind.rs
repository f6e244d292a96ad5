//! [`ManagedLink`]: what the common routes of links need to know of shares and of embeds.

use cairn_model::Timestamp;
use cairn_sharing::{
    Embed, Link, LinkId, LinkKind, LinkObject, LinkPage, LinkQuery, LinkStatus, Share, Sharing, SharingError,
};
use serde::Serialize;

use super::body::{EmbedBody, ShareBody};

/// A share or an embed. The methods are those of [`Sharing`], by kind.
pub(crate) trait ManagedLink: Sized + 'static {
    /// The kind.
    const KIND: LinkKind;
    /// The member of a response that contains a list of them.
    const MEMBER: &'static str;
    /// The statuses that they can have.
    const STATUSES: &'static [LinkStatus];
    /// The JSON form.
    type Body: Serialize;

    /// Returns what every link has.
    fn link(&self) -> &Link;
    /// Returns the JSON form at a time.
    fn body(&self, now: Timestamp) -> Self::Body;
    /// Returns a link, if it exists.
    fn find(sharing: &Sharing, id: LinkId) -> Result<Option<Self>, SharingError>;
    /// Returns the links of an object, the newest first.
    async fn of_object(sharing: &Sharing, object: LinkObject) -> Result<Vec<Self>, SharingError>;
    /// Returns a page of all links, the newest first.
    async fn page(sharing: &Sharing, query: LinkQuery) -> Result<LinkPage<Self>, SharingError>;
    /// Revokes a link. Returns it, and whether it was not revoked before.
    async fn revoke(sharing: &Sharing, id: LinkId) -> Result<(Self, bool), SharingError>;
    /// Deletes a link. Returns it.
    async fn delete(sharing: &Sharing, id: LinkId) -> Result<Self, SharingError>;
}

impl ManagedLink for Share {
    const KIND: LinkKind = LinkKind::Share;
    const MEMBER: &'static str = "shares";
    const STATUSES: &'static [LinkStatus] = &LinkStatus::ALL;
    type Body = ShareBody;

    fn link(&self) -> &Link {
        &self.link
    }

    fn body(&self, now: Timestamp) -> ShareBody {
        ShareBody::new(self, now)
    }

    fn find(sharing: &Sharing, id: LinkId) -> Result<Option<Self>, SharingError> {
        sharing.share(id)
    }

    async fn of_object(sharing: &Sharing, object: LinkObject) -> Result<Vec<Self>, SharingError> {
        sharing.shares_of_object(object).await
    }

    async fn page(sharing: &Sharing, query: LinkQuery) -> Result<LinkPage<Self>, SharingError> {
        sharing.shares(query).await
    }

    async fn revoke(sharing: &Sharing, id: LinkId) -> Result<(Self, bool), SharingError> {
        sharing.revoke_share(id).await
    }

    async fn delete(sharing: &Sharing, id: LinkId) -> Result<Self, SharingError> {
        sharing.delete_share(id).await
    }
}

impl ManagedLink for Embed {
    const KIND: LinkKind = LinkKind::Embed;
    const MEMBER: &'static str = "embeds";
    const STATUSES: &'static [LinkStatus] = &[LinkStatus::Active, LinkStatus::Revoked, LinkStatus::Expired];
    type Body = EmbedBody;

    fn link(&self) -> &Link {
        &self.link
    }

    fn body(&self, now: Timestamp) -> EmbedBody {
        EmbedBody::new(self, now)
    }

    fn find(sharing: &Sharing, id: LinkId) -> Result<Option<Self>, SharingError> {
        sharing.embed(id)
    }

    async fn of_object(sharing: &Sharing, object: LinkObject) -> Result<Vec<Self>, SharingError> {
        sharing.embeds_of_object(object).await
    }

    async fn page(sharing: &Sharing, query: LinkQuery) -> Result<LinkPage<Self>, SharingError> {
        sharing.embeds(query).await
    }

    async fn revoke(sharing: &Sharing, id: LinkId) -> Result<(Self, bool), SharingError> {
        sharing.revoke_embed(id).await
    }

    async fn delete(sharing: &Sharing, id: LinkId) -> Result<Self, SharingError> {
        sharing.delete_embed(id).await
    }
}
