//! Request bodies of limited size, and the errors of reading any body.

use cairn_model::{u64_of, usize_of};
use cairn_net::{BodyError, RequestBody};
use http::StatusCode;
use serde::de::DeserializeOwned;

use super::json;
use crate::error::AdminError;
use crate::limits::{BODY_BYTES_MAX, JSON_MESSAGE_BYTES_MAX};

/// Bytes that are read at a time.
const READ_BYTES: usize = 4096;

/// Reads a whole body.
///
/// # Errors
/// `PAYLOAD_TOO_LARGE` above [`BODY_BYTES_MAX`]; `INVALID_REQUEST` when the body arrives late (408), incomplete or
/// malformed.
pub(crate) async fn read_body(body: &mut RequestBody<'_>) -> Result<Vec<u8>, AdminError> {
    let too_large = || {
        let message = format!("the request body is larger than {BODY_BYTES_MAX} bytes");
        AdminError::Invalid(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    if body.remaining() > u64_of(BODY_BYTES_MAX) {
        return Err(too_large());
    }
    // A body with the chunked transfer coding declares no length.
    body.accept_chunked();
    let mut bytes = Vec::with_capacity(usize_of(body.remaining()));
    let mut piece = [0; READ_BYTES];
    loop {
        let count = body.read(&mut piece).await.map_err(|error| body_error(&error))?;
        if count == 0 {
            return Ok(bytes);
        }
        if bytes.len() + count > BODY_BYTES_MAX {
            return Err(too_large());
        }
        bytes.extend_from_slice(&piece[..count]);
    }
}

/// Parses a JSON body.
///
/// # Errors
/// `INVALID_REQUEST`, with what is wrong and where.
pub(crate) fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, AdminError> {
    json::parse(bytes).map_err(|error| {
        let text = error.to_string();
        let shown = &text[..text.floor_char_boundary(JSON_MESSAGE_BYTES_MAX)];
        let more = if shown.len() < text.len() { " …" } else { "" };
        AdminError::invalid(format!("the request body is invalid: {shown}{more}"))
    })
}

/// Returns the error for a body that could not be read.
pub(crate) fn body_error(error: &BodyError) -> AdminError {
    match error {
        BodyError::TimedOut => {
            AdminError::Invalid(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time".to_owned())
        }
        _ => AdminError::invalid("the request body is incomplete or malformed"),
    }
}
