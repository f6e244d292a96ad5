//! The parts of a request that are parsed before it is routed: path, query, header fields and host.

pub(crate) mod acl;
pub(crate) mod checksum_modes;
pub(crate) mod fields;
pub(crate) mod query;
pub(crate) mod sosapi;
pub(crate) mod target;
pub(crate) mod unsupported_headers;
pub(crate) mod virtual_hosts;
