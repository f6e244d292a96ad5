//! Request bodies of limited size, and the errors of reading any body.

use cairn_model::{u64_of, usize_of};
use cairn_net::{BodyError, RequestBody};
use http::StatusCode;
use serde::de::DeserializeOwned;

use super::json;
use crate::error::AdminError;
use crate::limits::{BODY_BYTES_MAX, JSON_MESSAGE_BYTES_MAX};

/// Reads a whole body.
///
/// # Errors
/// `PAYLOAD_TOO_LARGE` above [`BODY_BYTES_MAX`]; `INVALID_REQUEST` when the length is not declared (411), or when the
/// body arrives late (408) or incomplete.
pub(crate) async fn read_body(body: &mut RequestBody<'_>) -> Result<Vec<u8>, AdminError> {
    if body.remaining() > u64_of(BODY_BYTES_MAX) {
        let message = format!("the request body is larger than {BODY_BYTES_MAX} bytes");
        return Err(AdminError::Invalid(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    let length = usize_of(body.remaining());
    let mut bytes = vec![0; length];
    let mut read = 0;
    while read < length {
        match body.read(&mut bytes[read..]).await {
            Ok(count) => {
                assert!(count > 0, "a read of a body that has bytes left gives some of them, or fails");
                read += count;
            }
            Err(error) => return Err(body_error(&error)),
        }
    }
    // The remaining length of a body without a declared length is 0; reading one byte more reveals such a body.
    if length == 0 && body.read(&mut [0]).await.is_err() {
        let message = "the request must have a Content-Length".to_owned();
        return Err(AdminError::Invalid(StatusCode::LENGTH_REQUIRED, message));
    }
    Ok(bytes)
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
