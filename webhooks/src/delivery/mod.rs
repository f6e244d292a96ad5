//! Delivery: from an event to a request, its outcome, and further attempts.
//!
//! ```text
//! events ── fan-out ──▶ writer (durable) ──▶ lanes ──▶ delivery threads ──▶ target
//!                          ▲                   ▲               │
//!                          └── outcomes ───────┼───────────────┘
//!                                              └── loader: deliveries that are due, from disk
//! ```
//! A lane is one webhook's part of the queue. A delivery is begun only after it is durable, and its outcome is one transaction.
//! So after a crash, deliveries whose outcome was not recorded are made again: at least once.
//!
//! Nothing here knows how requests are made ([`crate::client`]) or how records look ([`crate::store`]).

mod backoff;
mod context;
mod event_bytes;
mod fan_out;
mod lane;
mod lanes;
mod loader;
mod redelivery;
mod source;
mod target_client;
mod tasks;
mod threads;
mod worker;

pub(crate) use context::Context;
pub use redelivery::Redeliver;
pub use source::EventSource;
pub use target_client::TargetClient;
pub(crate) use threads::Threads;
