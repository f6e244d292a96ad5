//! Embeds: links for pages of other sites.

use crate::types::link::{Disposition, Link, LinkStatus, NewLink};
use crate::types::origin::WebOrigin;
use cairn_model::Timestamp;

/// An embed (specification, "Embed link").
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Embed {
    /// The common fields of every link.
    pub link: Link,
    /// The origins whose pages may use it, at least one.
    pub allowed_origins: Vec<WebOrigin>,
    /// The disposition of the content.
    pub disposition: Disposition,
}

impl Embed {
    /// Returns the status at `now`: never [`LinkStatus::Exhausted`].
    #[must_use]
    pub fn status_at(&self, now: Timestamp) -> LinkStatus {
        self.link.status_at(now)
    }
}

/// A new embed.
#[derive(Clone, Debug)]
pub struct NewEmbed {
    /// The common fields of every link.
    pub link: NewLink,
    /// The origins whose pages may use it, 1 to [`ORIGINS_MAX`](crate::ORIGINS_MAX).
    pub allowed_origins: Vec<WebOrigin>,
    /// The disposition of the content. The caller has checked that the type of the object allows it.
    pub disposition: Disposition,
}

/// A change of an embed. `None` leaves a value as it is.
#[derive(Clone, Default, Debug)]
pub struct EmbedChange {
    /// The label; empty removes it.
    pub label: Option<String>,
    /// The time when it stops working; `Some(None)`: never.
    pub expires_at: Option<Option<Timestamp>>,
    /// The origins whose pages may use it.
    pub allowed_origins: Option<Vec<WebOrigin>>,
    /// The disposition of the content.
    pub disposition: Option<Disposition>,
}
