//! Webhooks: storage events delivered to HTTP endpoints, signed, at least once.
#![forbid(unsafe_code)]

pub mod client;
mod limits;
pub mod signature;
pub mod target;
