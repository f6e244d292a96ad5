//! Request bodies: digests, streamed payloads, `aws-chunked` framing, small documents, and unused bodies.

pub(crate) mod chunked;
pub(crate) mod declared;
pub(crate) mod digests;
pub(crate) mod payload;
mod small;
mod unused;

pub(crate) use small::{read_document, read_small_body, read_xml_body};
pub(crate) use unused::check_unused_body;
