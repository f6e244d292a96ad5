//! The published keys of a provider (JWK set, RFC 7517).

use jsonwebtoken::errors::Error;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, decode_header};
use serde::Deserialize;
use serde_json::Value;

use super::ring_verifier::ALGORITHMS;
use crate::limits::{KEYS_MAX, QUOTED_BYTES_MAX};
use crate::text::harmless;

/// The keys that may sign ID tokens.
pub(crate) struct KeySet(Vec<Jwk>);

/// The key that the head of a token names.
#[derive(Debug)]
pub(crate) struct WantedKey {
    pub(crate) id: Option<String>,
    pub(crate) algorithm: Algorithm,
}

impl WantedKey {
    /// Reads the head of a token.
    ///
    /// # Errors
    /// The problem with it.
    pub(crate) fn of(token: &str) -> Result<Self, String> {
        let unreadable = |error: Error| {
            // It quotes the token, which anybody may have sent.
            let error = harmless(&error.to_string(), QUOTED_BYTES_MAX);
            format!("the ID token cannot be read: {error}")
        };
        let header = decode_header(token).map_err(unreadable)?;
        if header.crit.is_some() {
            // RFC 7515, section 4.1.11: no extension is known here.
            return Err("the ID token needs an extension that is not known here (crit)".to_owned());
        }
        if !ALGORITHMS.contains(&header.alg) {
            return Err(format!("the ID token is signed with {:?}, which is not accepted", header.alg));
        }
        Ok(Self { id: header.kid, algorithm: header.alg })
    }
}

impl KeySet {
    /// Parses a key set. Keys of unknown kinds are left out, as RFC 7517 says.
    ///
    /// # Errors
    /// The problem with it.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<Value>,
        }
        let document: Document = serde_json::from_slice(json)
            .map_err(|error| harmless(&error.to_string(), QUOTED_BYTES_MAX))
            .map_err(|error| format!("the keys of the provider cannot be read: {error}"))?;
        let keys: Vec<Jwk> = document
            .keys
            .into_iter()
            .take(KEYS_MAX)
            .filter_map(|key| serde_json::from_value(key).ok())
            .collect();
        Ok(Self(keys))
    }

    /// Returns the key that a token names. Without a name, it must be the only one that fits.
    pub(crate) fn find(&self, wanted: &WantedKey) -> Option<DecodingKey> {
        let mut fitting = self.0.iter().filter(|key| {
            let is_named = wanted.id.is_none() || key.common.key_id == wanted.id;
            is_named && fits(key, wanted.algorithm)
        });
        let found = fitting.next()?;
        let is_only = fitting.next().is_none();
        is_only.then(|| DecodingKey::from_jwk(found).ok()).flatten()
    }
}

/// Returns whether a key may be used with an algorithm.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let is_for_signatures =
        key.common.public_key_use.as_ref().is_none_or(|purpose| *purpose == PublicKeyUse::Signature);
    let may_verify = key
        .common
        .key_operations
        .as_ref()
        .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    let is_for_it = key.common.key_algorithm.is_none_or(|named| named == KeyAlgorithm::from(algorithm));
    let is_of_kind = match (&key.algorithm, algorithm) {
        (AlgorithmParameters::EllipticCurve(key), Algorithm::ES256) => key.curve == EllipticCurve::P256,
        (AlgorithmParameters::EllipticCurve(key), Algorithm::ES384) => key.curve == EllipticCurve::P384,
        (AlgorithmParameters::OctetKeyPair(key), Algorithm::EdDSA) => key.curve == EllipticCurve::Ed25519,
        (
            AlgorithmParameters::RSA(_),
            Algorithm::RS256
            | Algorithm::RS384
            | Algorithm::RS512
            | Algorithm::PS256
            | Algorithm::PS384
            | Algorithm::PS512,
        ) => true,
        _ => false,
    };
    is_for_signatures && may_verify && is_for_it && is_of_kind
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    fn wanted(id: Option<&str>, algorithm: Algorithm) -> WantedKey {
        WantedKey { id: id.map(str::to_owned), algorithm }
    }

    #[test]
    fn a_key_fits_by_name_use_and_kind() {
        let json = br#"{"keys": [
            {"kty": "RSA", "kid": "r", "use": "sig", "alg": "RS256", "n": "AQAB", "e": "AQAB"},
            {"kty": "RSA", "kid": "e", "use": "enc", "n": "AQAB", "e": "AQAB"},
            {"kty": "EC", "kid": "c", "crv": "P-256", "x": "AQ", "y": "AQ"},
            {"kty": "RSA", "kid": "v", "key_ops": ["verify"], "n": "AQAB", "e": "AQAB"},
            {"kty": "RSA", "kid": "o", "key_ops": ["encrypt"], "n": "AQAB", "e": "AQAB"},
            {"kty": "oct", "kid": "s", "k": "AQAB"},
            {"kty": "new", "kid": "n"}
        ]}"#;
        let keys = KeySet::parse(json).expect("parses");
        for (id, algorithm, is_found) in [
            (Some("r"), Algorithm::RS256, true),
            (Some("v"), Algorithm::RS256, true),
            (Some("o"), Algorithm::RS256, false),
            (None, Algorithm::ES256, true),
            (Some("r"), Algorithm::RS512, false),
            (Some("e"), Algorithm::RS256, false),
            (Some("c"), Algorithm::ES256, true),
            (Some("c"), Algorithm::ES384, false),
            (Some("c"), Algorithm::RS256, false),
            (Some("s"), Algorithm::HS256, false),
            (Some("x"), Algorithm::RS256, false),
        ] {
            assert_eq!(keys.find(&wanted(id, algorithm)).is_some(), is_found, "{id:?} {algorithm:?}");
        }
        assert!(KeySet::parse(b"{}").is_err() && KeySet::parse(b"[").is_err());
    }

    #[test]
    fn without_a_name_only_one_key_may_fit() {
        let two = br#"{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}, {"kty": "RSA", "n": "AQAC", "e": "AQAB"}]}"#;
        assert!(KeySet::parse(two).expect("parses").find(&wanted(None, Algorithm::RS256)).is_none());
    }

    #[test]
    fn symmetric_and_missing_signatures_are_refused() {
        // {"alg":"HS256"}, {"alg":"none"}
        for token in ["eyJhbGciOiJIUzI1NiJ9.e30.AA", "eyJhbGciOiJub25lIn0.e30.", "", "a.b", "....", "é.é.é"]
        {
            assert!(WantedKey::of(token).is_err(), "{token}");
        }
    }

    /// RFC 7515, section 4.1.11.
    #[test]
    fn critical_extensions_are_refused() {
        for (header, is_read) in [
            (r#"{"alg": "RS256"}"#, true),
            (r#"{"alg": "RS256", "crit": ["b64"], "b64": false}"#, false),
            (r#"{"alg": "RS256", "crit": []}"#, false),
            (r#"{"alg": "RS256", "crit": "b64"}"#, false),
        ] {
            let token = format!("{}.e30.AA", URL_SAFE_NO_PAD.encode(header));
            assert_eq!(WantedKey::of(&token).is_ok(), is_read, "{header}");
        }
    }

    /// The message is shown, and is in the audit trail.
    #[test]
    fn a_header_cannot_write_into_messages() {
        let header = format!(r#"{{"alg": "a\u202eb\u001b{}"}}"#, "x".repeat(1000));
        let token = format!("{}.e30.AA", URL_SAFE_NO_PAD.encode(header));
        let refused = WantedKey::of(&token).expect_err("not an algorithm");
        assert!(refused.contains("a\u{fffd}b\u{fffd}x") && refused.len() < 300, "{refused}");
    }
}
