//! Executors, one per core, and helpers for their tasks.

pub(crate) mod executors;
mod heartbeat;
pub(crate) mod timeout;
pub(crate) mod yield_budget;
