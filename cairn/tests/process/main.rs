//! The binary as a process: starts, refusals, the drain, and the command-line client.
#![expect(clippy::unwrap_used, reason = "a test ends where its own preparation fails")]

mod client;
mod lifecycle;
mod refusals;
mod server;
