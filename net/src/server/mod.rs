//! Serving a port: listeners, the spread of connections over executors, and the drain.

pub(crate) mod client_connections;
pub(crate) mod listener;
pub(crate) mod listener_group;
pub(crate) mod port_metrics;
pub(crate) mod serve;
