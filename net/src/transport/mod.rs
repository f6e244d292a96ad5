//! The byte stream of one connection: its socket, TLS session, read buffer and timeouts.

pub(crate) mod read_buffer;
pub(crate) mod socket;
pub(crate) mod timeouts;
pub(crate) mod tls;
pub(crate) mod wire;
