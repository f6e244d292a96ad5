//! Webhooks: storage events delivered to HTTP endpoints, signed, at least once.
#![forbid(unsafe_code)]

pub mod client;
mod event_body;
mod id;
mod limits;
pub mod signature;
pub mod target;

pub use event_body::EventBody;
pub use id::{DeliveryId, WebhookId};
