//! The basics of the S3 protocol for commands: endpoints, signatures, and XML of responses.

pub(crate) mod endpoint;
pub(crate) mod signature;
pub(crate) mod xml;
