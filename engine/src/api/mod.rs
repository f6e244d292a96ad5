//! The operations of the engine on one executor.

pub(crate) mod admission;
pub(crate) mod copy;
pub(crate) mod engine;
pub(crate) mod event_retention;
pub(crate) mod expiry;
pub(crate) mod multipart;
