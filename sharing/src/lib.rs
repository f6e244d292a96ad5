//! Share links and embed links: URLs whose token alone allows to read one object.
//!
//! A *share* is for people: a page, a password, an expiry, a limit of downloads (`/s/{token}`). An *embed* is for pages of
//! other sites: images, video and audio, for chosen origins (`/e/{token}`). Both are *links*. [`Links`] stores them,
//! counts their downloads and checks passwords. [`PublicLinks`] answers the requests of visitors.
//!
//! Source: specification, "Share link", "Embed link", "Sharing", "Public capability delivery".
#![forbid(unsafe_code)]

mod checks;
mod denied;
mod downloads;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod limits;
mod links;
mod password;
mod policy;
mod public;
mod recordable;
mod schema;
mod store;
mod types;

pub use denied::{DeniedCounts, DeniedReason};
pub use downloads::Visitor;
pub use error::{LinkError, UnlockError};
pub use limits::{
    LABEL_BYTES_MAX, LINKS_MAX, LINKS_PER_OBJECT_MAX, ORIGINS_MAX, PAGE_LINKS_DEFAULT, PAGE_LINKS_MAX,
    PASSWORD_BYTES_MAX, PASSWORD_HASH_BYTES,
};
pub use links::{AnyLink, Download, LinkMetrics, LinkOptions, Links};
pub use password::unlock_token::Unlock;
pub use policy::{LinkPolicy, ListenerUrl, ListenerUrls};
pub use public::{PublicLinks, ShareService};
pub use recordable::{HIDDEN_TOKEN, recordable_id, recordable_names};
pub use store::{LinkFinding, LinkPage, LinkQuery};
pub use types::author::Author;
pub use types::embed::{Embed, EmbedChange, NewEmbed};
pub use types::id::LinkId;
pub use types::link::{Disposition, Link, LinkKind, LinkObject, LinkStatus, NewLink};
pub use types::media_type::MediaClass;
pub use types::origin::{InvalidOrigin, WebOrigin};
pub use types::share::{NewShare, Share, ShareChange};
pub use types::token::{CapabilityToken, TokenHash};
