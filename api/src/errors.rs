//! The body of every error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::text;

text! {
    /// The error code, for programs.
    ErrorCode("pattern" = "^[A-Z0-9_]+$");
}

/// The body of an error response.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Error {
    pub error: ErrorDetail,
}

impl Error {
    /// Returns the body of an error.
    #[must_use]
    pub fn new(code: &'static str, message: String, request_id: &str) -> Self {
        Self { error: ErrorDetail { code: code.into(), message, request_id: request_id.to_owned() } }
    }

    /// Returns the JSON text.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts can be serialized")
    }
}

/// An error, for programs and for people.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ErrorDetail {
    pub code: ErrorCode,
    /// The problem and its remedy, for people.
    pub message: String,
    /// The id of the request in log and audit trail.
    pub request_id: String,
}
