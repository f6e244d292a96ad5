//! The XML of S3: a writer for responses, and the limits of the reader for small request bodies.

pub(crate) mod reader;
pub(crate) mod writer;

/// The namespace of S3's documents.
pub(crate) const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";
