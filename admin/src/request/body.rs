//! Request bodies of limited size, and the errors of reading any body.

use cairn_api::in_document_terms;
use cairn_engine::Engine;
use cairn_net::{BodyError, RequestBody};
use cairn_transfer::{SmallBody, SmallBodyError, read_small_body};
use http::StatusCode;
use serde::de::DeserializeOwned;

use super::json;
use crate::error::AdminError;
use crate::limits::JSON_MESSAGE_BYTES_MAX;

/// Reads a whole body of at most `bytes_max` bytes.
///
/// # Errors
/// `PAYLOAD_TOO_LARGE` above `bytes_max`; `INVALID_REQUEST` when the body arrives late (408), incomplete or malformed.
pub(crate) async fn read_body(
    engine: &Engine,
    body: &mut RequestBody<'_>,
    bytes_max: usize,
) -> Result<SmallBody, AdminError> {
    body.accept_chunked();
    read_small_body(engine, body, bytes_max, |_| {}).await.map_err(|error| match error {
        SmallBodyError::TooLarge => {
            let message = format!("the request body is larger than {bytes_max} bytes");
            AdminError::Invalid(StatusCode::PAYLOAD_TOO_LARGE, message)
        }
        SmallBodyError::Body(error) => body_error(&error),
        SmallBodyError::TooSlow => {
            let message = "the body arrived too slowly while other requests waited for memory; try again";
            AdminError::Invalid(StatusCode::REQUEST_TIMEOUT, message.to_owned())
        }
    })
}

/// Parses a JSON body.
///
/// # Errors
/// `INVALID_REQUEST`, with what is wrong and where.
pub(crate) fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, AdminError> {
    json::parse(bytes).map_err(|error| {
        let text = in_document_terms(&error.to_string(), "an object");
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
        BodyError::Stopping => AdminError::NotReady("the service is shutting down"),
        _ => AdminError::invalid("the request body is incomplete or malformed"),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_json;
    use cairn_api::{BeginBackup, SetQuota};

    #[test]
    fn wrong_types_are_named_in_terms_of_json() {
        let wrong = |text: &str| parse_json::<SetQuota>(text.as_bytes()).err().map(|error| error.message());
        for (text, expected) in [
            ("[]", "invalid type: array, expected an object"),
            ("\"x\"", "invalid type: string \"x\", expected an object"),
            ("{\"quota\": 1}", "invalid type: integer `1`, expected an object"),
        ] {
            let message = wrong(text).unwrap_or_default();
            assert!(message.contains(expected) && !message.contains("struct"), "{text}: {message}");
        }
        let number =
            parse_json::<BeginBackup>(b"{\"timeout_seconds\": \"1h\"}").err().map(|error| error.message());
        assert!(number.is_some_and(|message| message.contains("expected a whole number at line 1")));
    }
}
