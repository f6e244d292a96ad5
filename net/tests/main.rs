//! Integration tests of the network layer over real sockets.
//!
//! They are modules of one binary, so that the crate is linked once. `idle.rs` is a binary of its own, because it
//! measures the memory of its process.

mod chunked_bodies;
mod limits;
mod requests;
mod support;
mod tls;
