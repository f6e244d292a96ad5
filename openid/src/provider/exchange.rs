//! Exchanges a code for tokens, and asks for claims that are missing.

use serde::Deserialize;
use serde_json::Value;
use ureq::http::StatusCode;
use zeroize::Zeroizing;

use super::client::Client;
use super::metadata::Metadata;
use crate::error::SignInError;
use crate::limits::QUOTED_BYTES_MAX;
use crate::settings::OpenIdSettings;
use crate::text::harmless;
use crate::token::Claims;

/// The authorization code that the browser brings back, with the values that the sign-in was begun with.
pub(crate) struct Code {
    pub(crate) code: Zeroizing<String>,
    pub(crate) nonce: String,
    pub(crate) verifier: Zeroizing<String>,
    /// Whether the answer names its issuer, which is then the right one.
    pub(crate) is_of_issuer: bool,
}

/// The tokens of a person. They are forgotten after the sign-in.
#[derive(Deserialize)]
pub(crate) struct Tokens {
    pub(crate) id_token: String,
    access_token: Option<String>,
}

/// The answer to a request that the provider refuses (RFC 6749, section 5.2).
#[derive(Deserialize)]
struct Refusal {
    error: String,
    error_description: Option<String>,
}

/// Exchanges a code for tokens.
///
/// # Errors
/// `Unavailable`; `Refused` if the provider does not accept the code or the client; `Invalid`.
pub(crate) fn tokens(
    client: &Client,
    metadata: &Metadata,
    settings: &OpenIdSettings,
    code: &Code,
) -> Result<Tokens, SignInError> {
    let redirect_uri = settings.redirect_uri();
    let mut form = vec![
        ("grant_type", "authorization_code"),
        ("code", code.code.as_str()),
        ("redirect_uri", &redirect_uri),
        ("code_verifier", &code.verifier),
    ];
    let credential =
        settings.client_secret.as_ref().map(|secret| (settings.client_id.as_str(), secret.as_str()));
    let basic = credential.filter(|_| !metadata.takes_secret_in_form());
    if basic.is_none() {
        form.push(("client_id", &settings.client_id));
        form.extend(credential.map(|(_, secret)| ("client_secret", secret)));
    }
    let unavailable =
        |why: String| SignInError::Unavailable(format!("{} cannot be asked now: {why}", settings.name));
    let answer = client.post(&metadata.token_endpoint, &form, basic).map_err(unavailable)?;
    if answer.status == StatusCode::OK {
        return serde_json::from_slice(&answer.body).map_err(|error| {
            SignInError::Invalid(format!(
                "the provider did not answer with an ID token: {}",
                position(&error)
            ))
        });
    }
    match serde_json::from_slice::<Refusal>(&answer.body) {
        Ok(refusal) if answer.status.is_client_error() => {
            Err(refused(&settings.name, &refusal.error, refusal.error_description.as_deref()))
        }
        _ => Err(unavailable(format!(
            "{} answered with HTTP status {}",
            metadata.token_endpoint,
            answer.status.as_u16()
        ))),
    }
}

/// Says that the provider has refused a sign-in, with its own words.
pub(crate) fn refused(name: &str, error: &str, description: Option<&str>) -> SignInError {
    let error = harmless(error, QUOTED_BYTES_MAX);
    let description = description.map(|text| format!(": {}", harmless(text, QUOTED_BYTES_MAX)));
    SignInError::Refused(format!("{name} refused the sign-in ({error}){}", description.unwrap_or_default()))
}

/// Returns the claims of the user info endpoint; none if the provider has no such endpoint.
///
/// # Errors
/// `Unavailable`; `Invalid` if they are of another person.
pub(crate) fn user_info(
    client: &Client,
    metadata: &Metadata,
    tokens: &Tokens,
    claims: &Claims,
) -> Result<Claims, SignInError> {
    let (Some(url), Some(token)) = (&metadata.userinfo_endpoint, &tokens.access_token) else {
        return Ok(Claims::new());
    };
    let answer = client.get(url, Some(token)).map_err(SignInError::Unavailable)?;
    let found: Claims = serde_json::from_slice(&answer).map_err(|error| {
        SignInError::Invalid(format!("the answer of {url} is not a list of claims: {}", position(&error)))
    })?;
    // OpenID Connect Core, section 5.3.2: without this, a provider could be made to speak of somebody else.
    if found
        .get("sub")
        .and_then(Value::as_str)
        .is_none_or(|sub| Some(sub) != claims.get("sub").and_then(Value::as_str))
    {
        return Err(SignInError::Invalid(format!(
            "the answer of {url} is about another person than the ID token"
        )));
    }
    Ok(found)
}

/// Says where JSON is wrong, without a part of it: it may be a token.
fn position(error: &serde_json::Error) -> String {
    format!("it is not valid at line {}, column {}", error.line(), error.column())
}
