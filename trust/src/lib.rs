//! Certificate authorities of outgoing HTTP requests, and the TLS of these.
//!
//! The command-line client, the deliveries of webhooks and the requests to OpenID providers use it.
#![forbid(unsafe_code)]

mod authorities;
mod tls;

pub use authorities::{Authorities, UnusablePem, count_host_authorities};
pub use tls::tls_config;
