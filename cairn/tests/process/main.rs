//! Tests of the binary as a process: starts, refusals, the drain, and the command-line client.
#![expect(clippy::unwrap_used, reason = "a test ends where its own preparation fails")]

mod answers;
mod arguments;
mod client;
mod doctor;
mod documentation;
mod explain;
mod lifecycle;
mod outputs;
mod refusals;
mod scripted;
mod server;
mod supervised;
