//! The S3 data plane: answers the requests of S3 clients with the engine.
//!
//! `answer` in [`service`] shows the path of a request from top to bottom: target, route, authentication, unsupported
//! headers, authorization, and then one file of `ops` for each operation. `operations.rs` is the table of all
//! operations of S3, `errors.rs` the table of all error codes, `request/unsupported_headers.rs` the table of headers
//! that are refused.
//!
//! This crate knows HTTP and XML and decides nothing about storage: the engine decides write conditions, lists and
//! durability. Requests for what is not implemented are answered with 501 `NotImplemented` and change nothing.
//!
//! Layers, from the bottom to the top; a file imports only from layers below its own: `compatibility`, `join`, `limits`;
//! `errors`; `xml`; `request`; `headers`; `access`, `forms`; `call`; `reply`; `body`, `cors`, `multipart`; `ops`; `operations`;
//! `misplaced_headers`, `routing`; `refusals`; `service`; `unavailable`.
#![forbid(unsafe_code)]

mod access;
mod body;
mod call;
mod compatibility;
mod cors;
mod errors;
mod forms;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod headers;
mod lifecycle;
mod limits;
mod misplaced_headers;
mod multipart;
mod operations;
mod ops;
mod refusals;
mod reply;
mod request;
mod routing;
mod service;
mod unavailable;
mod xml;

pub use compatibility::Compatibility;
pub use operations::{OperationSummary, operations};
pub use service::{S3Options, S3Service};
pub use unavailable::UnavailableService;
