//! The bodies of the management API: one type for each request and response.
//!
//! The server fills the types of responses and reads those of requests; clients do the opposite. So each type can be
//! serialized and deserialized. The OpenAPI document has the JSON Schema of each type under the name of the type: doc
//! comments are its descriptions, and attributes its limits. The order of fields is that of the JSON text.
//!
//! Types of requests refuse unknown members. A client reads responses with [`read_response`], which ignores them.
#![forbid(unsafe_code)]
#![expect(
    missing_docs,
    reason = "a member is documented where its name does not say everything; the document shows each comment"
)]

mod accounts;
mod audit;
mod buckets;
mod errors;
mod events;
mod imports;
mod lifecycle;
mod links;
mod objects;
mod openapi;
mod optional;
mod parameters;
mod policies;
mod public_access;
mod reading;
mod refused_requests;
mod storage;
mod system;
mod text;
mod tokens;
mod verification;
mod visitors;
mod webhooks;

pub use accounts::*;
pub use audit::*;
pub use buckets::*;
pub use errors::*;
pub use events::*;
pub use imports::*;
pub use lifecycle::*;
pub use links::*;
pub use objects::*;
pub use openapi::{Schemas, TypeSchema, schema_of};
pub use parameters::*;
pub use policies::*;
pub use public_access::*;
pub use reading::{in_document_terms, read_request, read_response};
pub use refused_requests::*;
pub use schemars::JsonSchema;
pub use storage::*;
pub use system::*;
pub use text::*;
pub use tokens::*;
pub use verification::*;
pub use visitors::*;
pub use webhooks::*;
