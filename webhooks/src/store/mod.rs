//! Webhooks, waiting deliveries and the delivery log on disk.
//!
//! They are in an LMDB environment in `<data-dir>/webhooks/`. One thread writes (`writer.rs`), in few large transactions:
//! everything that waits is one batch with one commit. A reader thread answers queries. All webhooks and their health are in
//! memory as well (`state.rs`).
//!
//! `webhook_record.rs` and `delivery_record.rs` define the records. Table `position` has one record: the key `fanout`, and as
//! body, version 1, the tick (8, little-endian) before which all events have been handed to the webhooks. Table `removals` has
//! a record with an empty body, version 1, for each deleted webhook whose deliveries are still being removed; the key is its
//! id. `lost_events.rs` describes the table of lost events.
//!
//! Invariants: a delivery is in `pending`, `waiting` and `deliveries` from the transaction that moves the position past its
//! event, until the transaction that writes its last log entry. The number of waiting deliveries in `health` is exact.

mod apply;
mod changes;
mod cleanup;
mod delivery_record;
mod environment;
mod load;
mod lost_events;
mod observer;
mod pages;
mod query;
mod queue;
mod seal;
mod state;
mod webhook_record;
mod writer;

pub(crate) use apply::{NewDeliveries, NewDelivery, Outcome, Verdict};
pub(crate) use cleanup::EVENT_GONE;
pub use delivery_record::DeliveryStatus;
pub(crate) use delivery_record::Waiting;
pub(crate) use observer::{Observer, Recorded};
pub use query::{DeliveryEntry, DeliveryPage, DeliveryQuery};
pub(crate) use state::{Shared, WebhookState};
pub(crate) use webhook_record::{Settings, WebhookRecord};
pub(crate) use writer::Writer;
