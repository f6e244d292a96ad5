//! `serve --dev`: secrets and a certificate made on first use, and a banner that shows how to connect.

pub(crate) mod banner;
pub(crate) mod certificate;
pub(crate) mod missing_secrets;
mod program;
mod quote;
pub(crate) mod secrets;
