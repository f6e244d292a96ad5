//! `aws-chunked` bodies: content in chunks with a signature each, and a checksum in a trailer.
//!
//! Source: "Signature Calculations for the Authorization Header: Transferring Payload in Multiple Chunks" and "Including
//! Trailing Headers" (Amazon S3 API Reference). `decoder.rs` and `trailer.rs` are pure; `source.rs` reads the connection.

mod decoder;
mod error;
mod headers;
mod source;
mod trailer;

pub(crate) use decoder::Decoder;
pub(crate) use headers::{decoded_size, trailing_checksum};
pub(crate) use source::ChunkedSource;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use decoder::decode_in_pieces;
