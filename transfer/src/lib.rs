//! Streams payloads between HTTP bodies and the engine.
//!
//! Both planes use it.
//!
//! [`receive_payload`] reads a request body into the engine. [`StartedPayload`] is the body of a response. This crate
//! knows neither plane: it returns its own errors, and each plane turns them into its responses.
#![forbid(unsafe_code)]

mod receive;
mod send;

pub use receive::{ReceiveError, receive_payload};
pub use send::StartedPayload;
