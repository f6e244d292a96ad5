//! Webhooks: storage events delivered to HTTP endpoints, signed, at least once.
#![forbid(unsafe_code)]

pub mod client;
mod delivery;
pub mod destination;
mod error;
mod event_body;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod id;
mod limits;
mod schema;
pub mod signature;
mod store;
mod view;
mod webhooks;

pub use delivery::{EventSource, Redeliver, TargetClient};
pub use error::WebhookError;
pub use event_body::event_body;
pub use id::{DeliveryId, WebhookId};
pub use limits::{
    ATTEMPTS_MAX, OVERLAP_SECONDS_DEFAULT, OVERLAP_SECONDS_MAX, PAGE_DELIVERIES_DEFAULT, PAGE_DELIVERIES_MAX,
    WEBHOOKS_MAX,
};
pub use store::{DeliveryEntry, DeliveryPage, DeliveryQuery, DeliveryStatus};
pub use view::{HealthState, NewWebhook, Webhook, WebhookChange, WebhookHealth};
pub use webhooks::{WebhookMetrics, WebhookOptions, Webhooks};
