//! What S3 clients have in common: addresses, signatures, and the XML of answers.

pub(crate) mod endpoint;
pub(crate) mod signature;
pub(crate) mod xml;
