//! Destinations of webhooks: which URLs and addresses deliveries may go to.
//!
//! A URL is parsed once, strictly ([`TargetUrl`]). At every attempt its host is looked up ([`Resolver`]), and every address is
//! judged ([`TargetPolicy::judge`]). The client connects to the judged addresses and to nothing else.

mod addresses;
mod numeric;
mod policy;
mod resolver;
mod url;

pub use addresses::{AddressKind, RefusedAddress};
pub use policy::{InvalidTarget, TargetPolicy, TargetRefused, check_at_creation};
pub use resolver::{LookupError, Resolver, SystemResolver};
pub(crate) use url::Host;
pub use url::{TargetUrl, UrlError};
