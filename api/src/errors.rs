//! The body of every error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::text;

text! {
    /// What is wrong, for programs.
    ErrorCode("pattern" = "^[A-Z0-9_]+$");
}

/// What went wrong.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Error {
    pub error: ErrorDetail,
}

/// An error, for programs and for people.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ErrorDetail {
    pub code: ErrorCode,
    /// What is wrong and what helps, for people.
    pub message: String,
    /// The id of the request in log and audit trail.
    pub request_id: String,
}
