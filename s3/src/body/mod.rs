//! The bodies of requests: their declared and computed digests, bodies that become payloads, small bodies read whole,
//! and bodies that nothing is done with.

pub(crate) mod declared;
pub(crate) mod digests;
pub(crate) mod payload;
mod small;
mod unused;

pub(crate) use small::{read_document, read_small_body, read_xml_body};
pub(crate) use unused::check_unused_body;
