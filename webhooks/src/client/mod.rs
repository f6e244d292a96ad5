//! The HTTP client that makes one attempt to deliver an event.
//!
//! Every attempt looks the host up and judges every address ([`crate::destination`]). A connection is made to judged addresses
//! only, and a connection that is kept is used only while its address is among those that were judged for the attempt. Proxies
//! and redirects are not followed. Of the answer, only the status and `Retry-After` are used.

mod attempt;
mod call;
mod connection;
mod http_client;
mod judging;
mod probe;
mod retry_after;

pub use attempt::{Attempt, Delivery, Failure, FailureKind, Sender};
pub use http_client::{Client, ClientSettings};
pub use probe::{Probe, Step, StepReport};
