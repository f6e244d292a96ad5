//! The interface that a plane implements, and its request bodies.

pub(crate) mod interface;
pub(crate) mod request_body;
