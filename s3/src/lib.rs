//! The S3 data plane: requests of S3 clients to answers, over the engine.
//!
//! The path of a request is [`service`]'s `answer`, from top to bottom: target, route, authentication, what is not
//! built, authorization, and then one file of `ops` per operation. `operations.rs` is the table of all operations of
//! S3, `errors.rs` the table of all error codes, `unsupported.rs` the table of headers that are refused.
//!
//! This crate knows HTTP and XML and decides nothing about storage: conditions on writes, lists and durability are
//! the engine's. What is not implemented is answered with 501 `NotImplemented` and has changed nothing.
#![forbid(unsafe_code)]

mod account;
mod attributes;
mod audit;
mod auth;
mod body;
mod call;
mod checksum;
mod conditions;
mod copy_source;
mod cors;
mod errors;
mod fields;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod hosts;
mod late;
mod lock_headers;
mod multipart;
mod operations;
mod ops;
mod query;
mod reply;
mod routing;
mod service;
mod target;
mod token;
mod unavailable;
mod unsupported;
mod version;
mod xml;

pub use operations::{OperationSummary, operations};
pub use service::{S3Options, S3Service};
pub use unavailable::UnavailableService;
