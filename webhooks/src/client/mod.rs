//! The HTTP client that makes one attempt to deliver an event.

mod attempt;

pub use attempt::{Attempt, Delivery, Failure, FailureKind, Sender};
