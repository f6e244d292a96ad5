//! One connection from its first byte to its close.
//!
//! Heads are read and requests are answered in order. An unread rest of a body is discarded, and the connection is kept
//! or closed.
//!
//! Invariants: bytes are parsed as a request only when it is certain where the previous request ended. An invalid head
//! is answered and ends the connection. A panic of the service ends its exchange, never the executor.

pub(crate) mod closing;
pub(crate) mod context;
pub(crate) mod exchange;
pub(crate) mod request_head;
pub(crate) mod response;
pub(crate) mod run;
pub(crate) mod tls_handshake;
pub(crate) mod trusted_proxies;
pub(crate) mod unsigned_requests;
pub(crate) mod unsigned_turns;
