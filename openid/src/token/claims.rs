//! Verifies an ID token (OpenID Connect Core, section 3.1.3.7).

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, get_current_timestamp};
use serde_json::{Map, Value};
use subtle::ConstantTimeEq;

use super::ring_verifier::install;
use crate::error::SignInError;
use crate::limits::{CLOCK_SKEW_SECONDS, SUBJECT_BYTES_MAX};
use crate::text::is_invisible;

/// The claims of a person.
pub(crate) type Claims = Map<String, Value>;

/// The required claims of an ID token.
#[derive(Clone, Copy)]
pub(crate) struct Expected<'e> {
    pub(crate) issuer: &'e str,
    pub(crate) client_id: &'e str,
    pub(crate) nonce: &'e str,
}

/// The problem with a token.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Flaw {
    /// It is not signed with this key.
    Signature,
    /// The problem in words.
    Other(String),
}

impl From<String> for Flaw {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

impl From<Flaw> for SignInError {
    fn from(flaw: Flaw) -> Self {
        Self::Invalid(match flaw {
            Flaw::Signature => "the signature of the ID token is wrong".to_owned(),
            Flaw::Other(why) => why,
        })
    }
}

/// Returns the claims of a token that is valid: signature, issuer, audience, times, nonce, subject, session.
///
/// # Errors
/// The problem with it.
pub(crate) fn verified(
    token: &str,
    key: &DecodingKey,
    algorithm: Algorithm,
    expected: Expected<'_>,
) -> Result<Claims, Flaw> {
    let claims = signed_claims(token, key, algorithm, expected, &["exp", "iss", "aud", "sub"])?;
    check_issue(&claims, expected, get_current_timestamp())?;
    check(&claims, expected)?;
    Ok(claims)
}

/// Returns the claims of a token whose signature, issuer, audience and times are valid, and that has the `required` ones.
pub(super) fn signed_claims(
    token: &str,
    key: &DecodingKey,
    algorithm: Algorithm,
    expected: Expected<'_>,
    required: &[&str],
) -> Result<Claims, Flaw> {
    install();
    let mut validation = Validation::new(algorithm);
    validation.leeway = CLOCK_SKEW_SECONDS;
    validation.validate_nbf = true;
    validation.set_issuer(&[expected.issuer]);
    validation.set_audience(&[expected.client_id]);
    validation.set_required_spec_claims(required);
    let decoded = decode::<Claims>(token, key, &validation).map_err(|error| match error.kind() {
        ErrorKind::InvalidSignature => Flaw::Signature,
        kind => Flaw::Other(meaning(kind, expected)),
    });
    Ok(decoded?.claims)
}

/// Checks by whom, for whom and when a token was issued, as far as the crate does not. Returns the time.
pub(super) fn check_issue(claims: &Claims, expected: Expected<'_>, now: u64) -> Result<f64, String> {
    // The crate would take a list of issuers, too.
    if claims.get("iss").and_then(Value::as_str) != Some(expected.issuer) {
        return Err(meaning(&ErrorKind::InvalidIssuer, expected));
    }
    let has_others = claims.get("aud").and_then(Value::as_array).is_some_and(|audience| audience.len() > 1);
    let azp = claims.get("azp");
    if azp.is_some_and(|azp| azp.as_str() != Some(expected.client_id)) || (has_others && azp.is_none()) {
        return Err("the ID token was issued to another client (azp)".to_owned());
    }
    let issued =
        claims.get("iat").and_then(Value::as_f64).ok_or("the ID token has no time of issue (iat)")?;
    // Seconds since 1970 are exact in a double for millions of years.
    #[expect(clippy::cast_precision_loss)]
    if issued > (now + CLOCK_SKEW_SECONDS) as f64 {
        return Err(format!(
            "the ID token was issued in the future, by more than {CLOCK_SKEW_SECONDS} s: compare the clocks of provider and server"
        ));
    }
    Ok(issued)
}

/// Returns a claim that is the id of a person, a session or a token, if there is one. It is in sessions and audit records.
pub(super) fn identifier(claims: &Claims, name: &str) -> Result<Option<String>, String> {
    let is_visible = |text: &str| !text.chars().any(is_invisible);
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if (1..=SUBJECT_BYTES_MAX).contains(&text.len()) && is_visible(text) => {
            Ok(Some(text.clone()))
        }
        Some(_) => Err(format!(
            "the claim {name} of the ID token does not have 1 to {SUBJECT_BYTES_MAX} bytes, all of visible characters"
        )),
    }
}

/// Checks nonce, subject and session.
fn check(claims: &Claims, expected: Expected<'_>) -> Result<(), String> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
    if !bool::from(text("nonce").as_bytes().ct_eq(expected.nonce.as_bytes())) {
        return Err("the ID token has another nonce than the one of this sign-in".to_owned());
    }
    identifier(claims, "sub")?.ok_or("the ID token has no claim sub")?;
    identifier(claims, "sid").map(|_| ())
}

/// Says what an error of the crate means.
fn meaning(error: &ErrorKind, expected: Expected<'_>) -> String {
    match error {
        ErrorKind::InvalidIssuer => format!("the ID token is not of the issuer {}", expected.issuer),
        ErrorKind::InvalidAudience => {
            format!("the ID token is not for the client {} (aud)", expected.client_id)
        }
        ErrorKind::ExpiredSignature => format!(
            "the ID token has expired, by more than {CLOCK_SKEW_SECONDS} s: compare the clocks of provider and server"
        ),
        ErrorKind::ImmatureSignature => format!(
            "the ID token is not valid yet, by more than {CLOCK_SKEW_SECONDS} s: compare the clocks of provider and server"
        ),
        ErrorKind::MissingRequiredClaim(name) => format!("the ID token has no claim {name}"),
        ErrorKind::InvalidClaimFormat(name) => format!("the claim {name} of the ID token has another type"),
        _ => "the ID token cannot be read, or its key cannot be used".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jsonwebtoken::jwk::Jwk;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
    use serde_json::json;

    const EXPECTED: Expected<'_> =
        Expected { issuer: "https://provider.example", client_id: "cairn", nonce: "n" };

    fn signed(header: &Value, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = URL_SAFE_NO_PAD.encode(sign(message.as_bytes()));
        format!("{message}.{signature}")
    }

    fn key(jwk: Value) -> DecodingKey {
        let jwk: Jwk = serde_json::from_value(jwk).expect("a key");
        DecodingKey::from_jwk(&jwk).expect("usable")
    }

    fn claims(changes: Value) -> Value {
        let now = get_current_timestamp();
        let mut claims = json!({
            "iss": "https://provider.example", "aud": "cairn", "sub": "1", "nonce": "n", "iat": now, "exp": now + 300,
        });
        for (name, value) in changes.as_object().expect("an object") {
            match value {
                Value::Null => drop(claims.as_object_mut().expect("an object").remove(name)),
                value => claims[name] = value.clone(),
            }
        }
        claims
    }

    fn result(changes: Value) -> Result<Claims, Flaw> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a seed");
        let x = URL_SAFE_NO_PAD.encode(pair.public_key());
        let key = key(json!({"kty": "OKP", "crv": "Ed25519", "x": x}));
        let token =
            signed(&json!({"alg": "EdDSA"}), &claims(changes), |message| pair.sign(message).as_ref().into());
        verified(&token, &key, Algorithm::EdDSA, EXPECTED)
    }

    #[test]
    fn a_valid_token_is_accepted_within_the_skew() {
        let now = get_current_timestamp();
        for changes in [
            json!({}),
            json!({"exp": now - 50}),
            json!({"iat": now + 50}),
            json!({"nbf": now + 50}),
            json!({"aud": ["cairn"]}),
            json!({"sid": "s"}),
            json!({"aud": ["cairn", "other"], "azp": "cairn"}),
        ] {
            assert_eq!(result(changes.clone()).expect("valid")["sub"], "1", "{changes}");
        }
    }

    #[test]
    fn hostile_tokens_are_refused_with_their_reason() {
        let now = get_current_timestamp();
        for (changes, reason) in [
            (json!({"iss": "https://other.example"}), "issuer"),
            (json!({"iss": ["https://provider.example", "https://other.example"]}), "issuer"),
            (json!({"iss": null}), "iss"),
            (json!({"aud": "other"}), "aud"),
            (json!({"aud": null}), "aud"),
            (json!({"aud": ["cairn", "other"]}), "azp"),
            (json!({"azp": "other"}), "azp"),
            (json!({"nonce": "other"}), "nonce"),
            (json!({"nonce": null}), "nonce"),
            (json!({"exp": now - 70}), "expired"),
            (json!({"exp": null}), "exp"),
            (json!({"exp": "x"}), "exp"),
            (json!({"iat": now + 70}), "future"),
            (json!({"iat": null}), "iat"),
            (json!({"nbf": now + 70}), "not valid yet"),
            (json!({"sub": null}), "sub"),
            (json!({"sub": ""}), "claim sub"),
            (json!({"sub": 1}), "claim sub"),
            (json!({"sub": "x".repeat(256)}), "claim sub"),
            (json!({"sub": "a\nb"}), "claim sub"),
            (json!({"sub": "a\u{202e}b"}), "claim sub"),
            (json!({"sid": ""}), "claim sid"),
            (json!({"sid": 1}), "claim sid"),
            (json!({"sid": "x".repeat(256)}), "claim sid"),
            (json!({"sid": "a\u{200b}b"}), "claim sid"),
        ] {
            let refused = result(changes.clone()).expect_err(&changes.to_string());
            assert!(matches!(&refused, Flaw::Other(why) if why.contains(reason)), "{changes}: {refused:?}");
        }
    }

    #[test]
    fn a_signature_of_another_key_is_refused() {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let make = || {
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
            EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).expect("a key")
        };
        let (own, other) = (make(), make());
        let point = own.public_key().as_ref();
        let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
        let key = key(json!({"kty": "EC", "crv": "P-256", "x": x, "y": y}));
        let token = |pair: &EcdsaKeyPair| {
            signed(&json!({"alg": "ES256"}), &claims(json!({})), |message| {
                pair.sign(&random, message).expect("signed").as_ref().into()
            })
        };
        assert!(verified(&token(&own), &key, Algorithm::ES256, EXPECTED).is_ok());
        let refused =
            |token: &str, algorithm| verified(token, &key, algorithm, EXPECTED).expect_err("refused");
        assert_eq!(refused(&token(&other), Algorithm::ES256), Flaw::Signature);
        // The head says another algorithm than the key's.
        assert!(matches!(refused(&token(&own), Algorithm::RS256), Flaw::Other(_)));
    }
}
