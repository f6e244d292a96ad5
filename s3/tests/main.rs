//! Integration tests of the data plane over real sockets.
//!
//! They are modules of one binary, so that the crate is linked once. They test what needs access to the internals of a
//! server: planted damage, usage, audit records, the table of operations. What any client can see is tested in
//! `tests/e2e` only.
#![allow(clippy::unwrap_used, reason = "tests")]

mod audit;
mod common;
mod copies;
mod cors;
mod damage;
mod locks;
mod multipart;
mod operations;
mod permissions;
mod refusals;
