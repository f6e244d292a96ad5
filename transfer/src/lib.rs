//! Streams payloads between HTTP bodies and the engine, for both APIs.
//!
//! [`receive_payload`] reads a request body, or another [`BodyReader`], into the engine;
//! [`receive_payload_to_end`] does so for a source of unknown size. [`ReadPlan`] decides how an object is answered, and
//! [`StartedPayload`] is the body of the response. [`checksum`] computes
//! the checksums that clients declare. [`list_token`] makes the tokens of paged lists. [`read_small_body`] reads
//! documents and forms into memory. [`join_all`] waits for several futures. [`ZipWriter`] writes archives whose entries
//! [`ArchiveNames`] names. This crate knows neither plane: it returns its own errors, and each plane turns them into its
//! responses.
#![forbid(unsafe_code)]

mod archive_names;
mod body_reader;
pub mod checksum;
mod join;
pub mod list_token;
mod plan;
mod receive;
mod send;
mod small_body;
mod zip;

pub use archive_names::ArchiveNames;
pub use body_reader::{BodyReader, MemoryBody};
pub use join::{JOINED_MAX, join_all};
pub use plan::{ReadPlan, ValidatorHeaders, stored_content_type, stored_header};
pub use receive::{ReceiveError, receive_payload, receive_payload_to_end};
pub use send::StartedPayload;
pub use small_body::{CONNECTION_BODY_BYTES, SmallBody, SmallBodyError, read_small_body};
pub use zip::{NAME_BYTES_MAX as ZIP_NAME_BYTES_MAX, ZipEntry, ZipWriter};
