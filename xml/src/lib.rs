//! Parses XML documents of S3 into a tree of elements: the bodies of requests, and the answers and settings of other servers.
//!
//! Namespaces and prefixes are dropped, because not all clients send them. Attributes, comments and processing
//! instructions are skipped. A long list is read one child of its root at a time ([`Document`]). Document types and
//! entities other than the five of XML are refused: S3 does not use them, and parsers are attacked with them. Size,
//! depth and number of elements are bounded.
#![forbid(unsafe_code)]

mod document;
mod element;

pub use document::{DEPTH_MAX, Document, Progress, XmlLimits, parse};
pub use element::{Element, InvalidXml};
