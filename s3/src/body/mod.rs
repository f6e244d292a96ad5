//! The bodies of requests: their declared and computed digests, and small bodies read whole.

pub(crate) mod declared;
pub(crate) mod digests;
mod small;
pub(crate) mod turns;

pub(crate) use small::read_xml_body;
