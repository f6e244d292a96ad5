//! Targets of webhooks: which URLs and addresses deliveries may go to.

mod numeric;
mod url;

pub use url::{TargetUrl, UrlError};
