//! Tests through the public interface, with real sockets.
#![allow(clippy::unwrap_used, reason = "tests")]

mod client;
mod delivery;
mod receiver;
mod verifier;
