//! The published keys of a provider (JWK set, RFC 7517).

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, decode_header};
use serde::Deserialize;
use serde_json::Value;

use super::ring_verifier::ALGORITHMS;
use crate::limits::KEYS_MAX;

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
        let header = decode_header(token).map_err(|error| format!("the ID token cannot be read: {error}"))?;
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
    is_for_signatures && is_for_it && is_of_kind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(id: Option<&str>, algorithm: Algorithm) -> WantedKey {
        WantedKey { id: id.map(str::to_owned), algorithm }
    }

    #[test]
    fn a_key_fits_by_name_use_and_kind() {
        let json = br#"{"keys": [
            {"kty": "RSA", "kid": "r", "use": "sig", "alg": "RS256", "n": "AQAB", "e": "AQAB"},
            {"kty": "RSA", "kid": "e", "use": "enc", "n": "AQAB", "e": "AQAB"},
            {"kty": "EC", "kid": "c", "crv": "P-256", "x": "AQ", "y": "AQ"},
            {"kty": "oct", "kid": "s", "k": "AQAB"},
            {"kty": "new", "kid": "n"}
        ]}"#;
        let keys = KeySet::parse(json).expect("parses");
        for (id, algorithm, is_found) in [
            (Some("r"), Algorithm::RS256, true),
            (None, Algorithm::RS256, true),
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
}
