//! Tests through the public interface, with real sockets.

mod client;
mod receiver;
mod verifier;
