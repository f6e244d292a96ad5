//! An HTTP/1.1 client for S3: connections, signed request heads, responses.

pub(crate) mod connection;
pub mod request;
pub mod response;
pub mod server;
pub mod signature;
pub(crate) mod xml;
