//! Request bodies of limited size, and the errors of reading any body.

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
        let text = in_json_terms(&error.to_string());
        let shown = &text[..text.floor_char_boundary(JSON_MESSAGE_BYTES_MAX)];
        let more = if shown.len() < text.len() { " …" } else { "" };
        AdminError::invalid(format!("the request body is invalid: {shown}{more}"))
    })
}

/// Names the types of JSON in place of those of this program: `an object` for `struct Quota`.
fn in_json_terms(message: &str) -> String {
    const EXPECTED: &str = "expected ";
    let message = message.replace("invalid type: map,", "invalid type: object,");
    let message = message.replace("invalid type: sequence,", "invalid type: array,");
    let Some((before, rest)) = message.split_once(EXPECTED) else { return message };
    let (expected, place) = rest.find(" at line").map_or((rest, ""), |at| rest.split_at(at));
    let is_type = before.contains("invalid type");
    let named = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" if is_type => "a whole number",
        "u8" => "0 to 255",
        "u16" => "0 to 65535",
        "u32" => "0 to 4294967295",
        "u64" | "usize" => "a whole number from 0",
        "a map" | "map" => "an object",
        "a sequence" | "sequence" => "an array",
        _ if expected.starts_with("struct ") => "an object",
        _ => expected,
    };
    format!("{before}{EXPECTED}{named}{place}")
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
