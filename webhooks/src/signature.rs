//! Signing secrets of webhooks, and the two signatures of a delivery.
//!
//! A secret is `whsec_` followed by the Base64 of 32 random bytes. Every delivery carries two signatures, both HMAC-SHA256:
//!
//! | header | key | signed text | form |
//! |---|---|---|---|
//! | `x-service-signature` | the UTF-8 bytes of the whole secret | the body | `sha256=` and lower-case hex |
//! | `webhook-signature` | the decoded bytes of the secret | `{id}.{timestamp}.{body}` | `v1,` and Base64 |
//!
//! The second one is that of [Standard Webhooks](https://www.standardwebhooks.com), so that its libraries can check deliveries.
//! While a rotated secret is still valid, `webhook-signature` has one signature for each secret, separated by a space, and
//! `x-service-signature` is made with the new secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::{fmt, io};
use zeroize::Zeroizing;

/// The beginning of every secret.
const PREFIX: &str = "whsec_";
/// Random bytes of a generated secret: as many as SHA-256 returns.
const SECRET_BYTES: usize = 32;
/// Sizes that Standard Webhooks allows for a secret, in bytes.
const SECRET_BYTES_ALLOWED: std::ops::RangeInclusive<usize> = 24..=64;

/// The signing secret of a webhook. Zeroed when dropped; `Debug` does not show it.
#[derive(Clone)]
pub struct SigningSecret {
    text: Zeroizing<String>,
    decoded: Zeroizing<Vec<u8>>,
}

/// A text that is not a signing secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidSecret;

impl SigningSecret {
    /// Generates a secret.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub fn generate() -> io::Result<Self> {
        let mut decoded = Zeroizing::new(vec![0; SECRET_BYTES]);
        getrandom::fill(&mut decoded).map_err(io::Error::other)?;
        let encoded = Zeroizing::new(STANDARD.encode(&*decoded));
        Ok(Self { text: Zeroizing::new(format!("{PREFIX}{}", *encoded)), decoded })
    }

    /// Parses a secret in its text form.
    ///
    /// # Errors
    /// It does not begin with `whsec_`, or the rest is not the Base64 of 24 to 64 bytes.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let encoded = text.strip_prefix(PREFIX).ok_or(InvalidSecret)?;
        let decoded = Zeroizing::new(STANDARD.decode(encoded).map_err(|_| InvalidSecret)?);
        if !SECRET_BYTES_ALLOWED.contains(&decoded.len()) {
            return Err(InvalidSecret);
        }
        Ok(Self { text: Zeroizing::new(text.to_owned()), decoded })
    }

    /// Returns the text form, for the response that shows it once and for its encryption.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Returns the value of `x-service-signature` for a body.
    fn service_signature(&self, body: &[u8]) -> String {
        let code = hmac(self.text.as_bytes(), &[body]);
        format!("sha256={}", hex::encode(code))
    }

    /// Returns one signature of `webhook-signature`.
    fn standard_signature(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let code = hmac(&self.decoded, &[id.as_bytes(), b".", timestamp.as_bytes(), b".", body]);
        format!("v1,{}", STANDARD.encode(code))
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SigningSecret(redacted)")
    }
}

impl fmt::Display for InvalidSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a signing secret is {PREFIX} followed by the Base64 of 24 to 64 bytes")
    }
}

impl std::error::Error for InvalidSecret {}

/// The secrets that sign a delivery: the current one, and after a rotation the previous one until it expires.
#[derive(Clone, Copy, Debug)]
pub struct SigningSecrets<'a> {
    /// The current secret.
    pub current: &'a SigningSecret,
    /// The previous secret, while receivers may still check with it.
    pub previous: Option<&'a SigningSecret>,
}

/// The values of the headers that sign one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signatures {
    /// The value of `x-service-signature`.
    pub service: String,
    /// The value of `webhook-timestamp`.
    pub timestamp: String,
    /// The value of `webhook-signature`.
    pub standard: String,
}

impl SigningSecrets<'_> {
    /// Signs a body that is sent at a time in seconds since the Unix epoch. The id must not contain a dot.
    #[must_use]
    pub fn sign(&self, event_id: &str, timestamp_seconds: u64, body: &[u8]) -> Signatures {
        debug_assert!(!event_id.contains('.'), "the dot separates the parts of the signed text");
        let timestamp = timestamp_seconds.to_string();
        let mut standard = self.current.standard_signature(event_id, &timestamp, body);
        if let Some(previous) = self.previous {
            standard.push(' ');
            standard.push_str(&previous.standard_signature(event_id, &timestamp, body));
        }
        Signatures { service: self.current.service_signature(body), timestamp, standard }
    }
}

/// Returns the HMAC-SHA256 of the parts, one after the other.
fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac: Hmac<Sha256> = Hmac::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::{InvalidSecret, SigningSecret, SigningSecrets};

    /// The test vector of docs/webhook-signatures. The values were computed with Python:
    ///
    /// ```python
    /// import base64, hashlib, hmac
    /// secret = "whsec_" + base64.b64encode(bytes(range(32))).decode()
    /// body = b'{"id":"0192f0c1-2345-7abc-8def-0123456789ab","type":"object.created"}'
    /// print(hmac.new(secret.encode(), body, hashlib.sha256).hexdigest())
    /// signed = b"0192f0c1-2345-7abc-8def-0123456789ab.1767225600." + body
    /// print(base64.b64encode(hmac.new(bytes(range(32)), signed, hashlib.sha256).digest()).decode())
    /// ```
    const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const EVENT_ID: &str = "0192f0c1-2345-7abc-8def-0123456789ab";
    const BODY: &[u8] = br#"{"id":"0192f0c1-2345-7abc-8def-0123456789ab","type":"object.created"}"#;

    #[test]
    fn signatures_are_those_that_receivers_compute() {
        let secret = SigningSecret::parse(SECRET).expect("a secret");
        let signed = SigningSecrets { current: &secret, previous: None }.sign(EVENT_ID, 1_767_225_600, BODY);
        assert_eq!(signed.service, "sha256=fce1453a5e9c7d9f8e65ddfbf24e09896fffdb7521c690ad178da659561e932e");
        assert_eq!(signed.timestamp, "1767225600");
        assert_eq!(signed.standard, "v1,lgQpzLOS8LlHrdpwZVkV+4tK00mUQsASrLFSuJWUUYs=");
    }

    #[test]
    fn the_example_of_standard_webhooks_is_reproduced() {
        // https://github.com/standard-webhooks/standard-webhooks, tests of the reference libraries.
        let secret = SigningSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
        let secrets = SigningSecrets { current: &secret, previous: None };
        let signed = secrets.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed.standard, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_rotation_signs_with_both_secrets_and_the_service_header_with_the_new_one() {
        let old = SigningSecret::parse(SECRET).expect("a secret");
        let new = SigningSecret::generate().expect("random bytes");
        let both = SigningSecrets { current: &new, previous: Some(&old) }.sign(EVENT_ID, 7, BODY);
        let [only_old, only_new] = [&old, &new]
            .map(|secret| SigningSecrets { current: secret, previous: None }.sign(EVENT_ID, 7, BODY));
        assert_eq!(both.standard, format!("{} {}", only_new.standard, only_old.standard));
        assert_eq!(both.service, only_new.service);
        assert_ne!(both.service, only_old.service);
    }

    #[test]
    fn generated_secrets_have_their_form_and_differ() {
        let [one, other] = [(); 2].map(|()| SigningSecret::generate().expect("random bytes"));
        assert_ne!(one.expose(), other.expose());
        assert_eq!(one.expose().len(), "whsec_".len() + 44);
        let parsed = SigningSecret::parse(one.expose()).expect("its own text form");
        assert_eq!((parsed.expose(), parsed.decoded.len()), (one.expose(), 32));
    }

    #[test]
    fn other_texts_are_not_secrets() {
        for text in [
            "",
            "whsec_",
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
            "whsec_AAEC",
            "whsec_!!!!",
            "WHSEC_AAEC",
        ] {
            assert_eq!(SigningSecret::parse(text).map(|_| ()), Err(InvalidSecret), "{text}");
        }
        let long = format!("whsec_{}", "AAAA".repeat(22));
        assert_eq!(SigningSecret::parse(&long).map(|_| ()), Err(InvalidSecret));
    }

    #[test]
    fn debug_output_does_not_show_the_secret() {
        let secret = SigningSecret::parse(SECRET).expect("a secret");
        assert!(!format!("{secret:?}").contains("AAEC"));
    }
}
