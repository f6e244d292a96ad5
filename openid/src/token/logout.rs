//! Verifies a logout token (OpenID Connect Back-Channel Logout 1.0, section 2.6).

use jsonwebtoken::{Algorithm, DecodingKey, get_current_timestamp};
use serde_json::Value;

use super::claims::{Claims, Expected, Flaw, check_issue, identifier, signed_claims};
use crate::limits::{CLOCK_SKEW_SECONDS, LOGOUT_AGE_SECONDS_MAX};

/// The member of `events` that makes a token a logout token.
const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// A logout by a provider: the sessions of a person, or one of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Logout {
    /// The person (`sub`).
    pub subject: Option<String>,
    /// The session at the provider (`sid`).
    pub session: Option<String>,
    /// The id of the token (`jti`), which counts once.
    pub id: String,
}

impl Logout {
    /// Returns whether it ends a session of a person. Without a name of the session, it ends all of the person. With one, also
    /// those of the person for which the provider has named none.
    #[must_use]
    pub fn ends(&self, subject: &str, session: Option<&str>) -> bool {
        let is_of_person = self.subject.as_deref().is_none_or(|own| own == subject);
        let is_it = match (self.session.as_deref(), session) {
            (Some(own), Some(session)) => own == session,
            (Some(_), None) => self.subject.is_some(),
            (None, _) => true,
        };
        is_of_person && is_it
    }
}

/// Returns what a token says that is valid: signature, issuer, audience, times, event, and no nonce, which would make an ID
/// token of it.
///
/// # Errors
/// The problem with it.
pub(crate) fn verified_logout(
    token: &str,
    key: &DecodingKey,
    algorithm: Algorithm,
    expected: Expected<'_>,
) -> Result<Logout, Flaw> {
    let claims = signed_claims(token, key, algorithm, expected, &["exp", "iss", "aud"])?;
    Ok(check(&claims, expected, get_current_timestamp())?)
}

fn check(claims: &Claims, expected: Expected<'_>, now: u64) -> Result<Logout, String> {
    let issued = check_issue(claims, expected, now)?;
    // Seconds since 1970 are exact in a double for millions of years.
    #[expect(clippy::cast_precision_loss)]
    if issued < now.saturating_sub(LOGOUT_AGE_SECONDS_MAX + CLOCK_SKEW_SECONDS) as f64 {
        return Err(format!("the ID token was issued more than {LOGOUT_AGE_SECONDS_MAX} s ago"));
    }
    if !claims.get("events").and_then(|events| events.get(EVENT)).is_some_and(Value::is_object) {
        return Err("the ID token is not about a logout (events)".to_owned());
    }
    if claims.contains_key("nonce") {
        return Err("the ID token has a nonce, which is of a sign-in".to_owned());
    }
    let (subject, session) = (identifier(claims, "sub")?, identifier(claims, "sid")?);
    if subject.is_none() && session.is_none() {
        return Err("the ID token names neither a person (sub) nor a session (sid)".to_owned());
    }
    let id = identifier(claims, "jti")?.ok_or("the ID token has no id (jti)")?;
    Ok(Logout { subject, session, id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const EXPECTED: Expected<'_> =
        Expected { issuer: "https://provider.example", client_id: "cairn", nonce: "" };
    const NOW: u64 = 1_800_000_000;

    fn result(changes: Value) -> Result<Logout, String> {
        let mut claims = json!({
            "iss": "https://provider.example", "aud": "cairn", "iat": NOW, "exp": NOW + 120, "jti": "j", "sub": "1",
            "sid": "s", "events": {EVENT: {}},
        });
        for (name, value) in changes.as_object().expect("an object") {
            match value {
                Value::Null => drop(claims.as_object_mut().expect("an object").remove(name)),
                value => claims[name] = value.clone(),
            }
        }
        check(claims.as_object().expect("an object"), EXPECTED, NOW)
    }

    #[test]
    fn a_person_or_a_session_is_named() {
        let text = |text: &str| Some(text.to_owned());
        for (changes, subject, session) in [
            (json!({}), text("1"), text("s")),
            (json!({"sid": null}), text("1"), None),
            (json!({"sub": null}), None, text("s")),
            (json!({"iat": NOW - LOGOUT_AGE_SECONDS_MAX, "aud": ["cairn"]}), text("1"), text("s")),
        ] {
            let expected = Logout { subject, session, id: "j".to_owned() };
            assert_eq!(result(changes.clone()), Ok(expected), "{changes}");
        }
    }

    #[test]
    fn hostile_tokens_are_refused_with_their_reason() {
        for (changes, reason) in [
            (json!({"sub": null, "sid": null}), "neither"),
            (json!({"sub": 1}), "claim sub"),
            (json!({"sid": ""}), "claim sid"),
            (json!({"sid": "a\nb"}), "claim sid"),
            (json!({"jti": null}), "jti"),
            (json!({"jti": "x".repeat(256)}), "jti"),
            (json!({"events": null}), "events"),
            (json!({"events": {}}), "events"),
            (json!({"events": {EVENT: true}}), "events"),
            (json!({"events": [EVENT]}), "events"),
            (json!({"nonce": "n"}), "nonce"),
            (json!({"iat": null}), "iat"),
            (json!({"iat": NOW + 61}), "future"),
            (json!({"iat": NOW - LOGOUT_AGE_SECONDS_MAX - 61}), "ago"),
            (json!({"iss": ["https://provider.example"]}), "issuer"),
            (json!({"aud": ["cairn", "other"]}), "azp"),
        ] {
            let refused = result(changes.clone()).expect_err(&changes.to_string());
            assert!(refused.contains(reason), "{changes}: {refused}");
        }
    }
}
