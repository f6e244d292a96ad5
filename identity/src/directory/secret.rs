//! What is told once: secret keys and management tokens, and the access keys beside them, all from the system's random source.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io;

/// Characters of an access key, as on AWS.
const ACCESS_KEY_CHARACTERS: usize = 20;
const ACCESS_KEY_ALPHABET: &[u8; 36] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// Characters of a secret key, as on AWS; 238 bits of chance.
const SECRET_KEY_CHARACTERS: usize = 40;
/// Without `+` and `/`, which clients' configuration files and URLs mangle.
const SECRET_KEY_ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// Begins every management token, so that people and scanners for leaked secrets know one when they see it.
pub(super) const TOKEN_PREFIX: &str = "cairn_mt_";
const TOKEN_BYTES: usize = 32;

/// A text that is shown to who asked for it, once. `Debug` never shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("redacted")
    }
}

/// Characters of an alphabet, each as likely as any other.
fn random_text(alphabet: &[u8], count: usize) -> io::Result<String> {
    // Bytes from here on are thrown away: they would make the first characters likelier.
    let bound = 256 - 256 % alphabet.len();
    let (mut text, mut random) = (String::with_capacity(count), [0; 64]);
    while text.len() < count {
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let wanted = random.iter().map(|&byte| usize::from(byte)).filter(|&byte| byte < bound);
        text.extend(wanted.take(count - text.len()).map(|byte| char::from(alphabet[byte % alphabet.len()])));
    }
    Ok(text)
}

/// A new access key.
pub(super) fn access_key() -> io::Result<String> {
    random_text(ACCESS_KEY_ALPHABET, ACCESS_KEY_CHARACTERS)
}

/// A new secret key.
pub(super) fn secret_key() -> io::Result<Secret> {
    random_text(SECRET_KEY_ALPHABET, SECRET_KEY_CHARACTERS).map(Secret)
}

/// SHA-256 of a management token: what is kept of it. Tokens have 256 bits of chance, so a hash without salt is enough.
pub(super) type TokenHash = [u8; 32];

/// A new management token.
pub(super) fn management_token() -> io::Result<Secret> {
    let mut random = [0; TOKEN_BYTES];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(Secret(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(random))))
}

/// The hash of a token.
pub(super) fn hash_token(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::{access_key, hash_token, management_token, secret_key};

    #[test]
    fn keys_and_tokens_have_their_forms_and_never_repeat() {
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
