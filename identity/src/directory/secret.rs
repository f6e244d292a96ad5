//! Generates access keys, secret keys and management tokens from the system's randomness.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io;
use zeroize::Zeroizing;

/// Length of an access key in characters, as on AWS.
const ACCESS_KEY_CHARACTERS: usize = 20;
const ACCESS_KEY_ALPHABET: &[u8; 36] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// Length of a secret key in characters, as on AWS: 238 bits of entropy.
const SECRET_KEY_CHARACTERS: usize = 40;
/// Without `+` and `/`, which get garbled in configuration files and URLs of clients.
const SECRET_KEY_ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// Prefix of every management token, by which people and scanners for leaked secrets recognise one.
pub(super) const TOKEN_PREFIX: &str = "cairn_mt_";
const TOKEN_BYTES: usize = 32;

/// A secret that is shown once, in the response to its creation. `Debug` never shows it; it is zeroed on drop.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Returns the secret text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("redacted")
    }
}

/// Returns `count` characters of the alphabet, uniformly distributed.
fn random_text(alphabet: &[u8], count: usize) -> io::Result<Zeroizing<String>> {
    // Rejection sampling: bytes from `bound` on would make the first characters more likely.
    let bound = 256 - 256 % alphabet.len();
    // The text never grows beyond its capacity, so no copy of it is left behind.
    let (mut text, mut random) = (Zeroizing::new(String::with_capacity(count)), Zeroizing::new([0; 64]));
    while text.len() < count {
        getrandom::fill(&mut *random).map_err(io::Error::other)?;
        let accepted = random.iter().map(|&byte| usize::from(byte)).filter(|&byte| byte < bound);
        let missing = count - text.len();
        text.extend(accepted.take(missing).map(|byte| char::from(alphabet[byte % alphabet.len()])));
    }
    Ok(text)
}

/// Generates an access key.
pub(super) fn access_key() -> io::Result<String> {
    random_text(ACCESS_KEY_ALPHABET, ACCESS_KEY_CHARACTERS).map(|text| text.to_string())
}

/// Generates a secret key.
pub(super) fn secret_key() -> io::Result<Secret> {
    random_text(SECRET_KEY_ALPHABET, SECRET_KEY_CHARACTERS).map(Secret)
}

/// SHA-256 of a management token, which is stored instead of the token. Tokens have 256 bits of entropy, so no salt is needed.
pub(super) type TokenHash = [u8; 32];

/// Generates a management token.
pub(super) fn management_token() -> io::Result<Secret> {
    let mut random = Zeroizing::new([0; TOKEN_BYTES]);
    getrandom::fill(&mut *random).map_err(io::Error::other)?;
    let encoded = Zeroizing::new(URL_SAFE_NO_PAD.encode(*random));
    Ok(Secret(Zeroizing::new(format!("{TOKEN_PREFIX}{}", *encoded))))
}

/// Hashes a management token.
pub(super) fn hash_token(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::{access_key, hash_token, management_token, secret_key};

    #[test]
    fn keys_and_tokens_have_their_format_and_never_repeat() {
        let key = access_key().expect("random");
        assert!(
            key.len() == 20 && key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        );
        let secret = secret_key().expect("random");
        assert!(
            secret.expose().len() == 40 && secret.expose().bytes().all(|byte| byte.is_ascii_alphanumeric())
        );
        let token = management_token().expect("random");
        assert!(token.expose().starts_with("cairn_mt_") && token.expose().len() == 9 + 43);
        assert_ne!(key, access_key().expect("random"));
        assert_ne!(hash_token(token.expose()), hash_token(management_token().expect("random").expose()));
        assert_eq!(format!("{secret:?}{token:?}"), "redactedredacted");
    }
}
