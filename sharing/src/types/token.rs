//! Capability tokens: the secret in the URL of a link.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use std::{fmt, io};
use zeroize::Zeroizing;

/// Random bytes of a token.
pub(crate) const TOKEN_BYTES: usize = 32;
/// Characters of a token: base64url without padding (RFC 4648, section 5).
pub(crate) const TOKEN_CHARACTERS: usize = 43;

/// The token of a link: 256 random bits as 43 characters of base64url. `Debug` never shows it; it is zeroed on drop.
#[derive(Clone, PartialEq, Eq)]
pub struct CapabilityToken(Zeroizing<String>);

/// SHA-256 of a token's characters, by which its link is found. Tokens are random, so no salt is needed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TokenHash(pub(crate) [u8; 32]);

impl CapabilityToken {
    /// Generates a token.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub(crate) fn generate() -> io::Result<Self> {
        let mut random = Zeroizing::new([0; TOKEN_BYTES]);
        getrandom::fill(&mut *random).map_err(io::Error::other)?;
        Ok(Self(Zeroizing::new(URL_SAFE_NO_PAD.encode(*random))))
    }

    /// Parses the text of a token.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        TokenHash::of(text).map(|_| Self(Zeroizing::new(text.to_owned())))
    }

    /// Returns the characters.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the hash by which the link is found.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.0.as_bytes()).into())
    }
}

impl TokenHash {
    /// Returns the hash of the text of a token; `None` if no token has this form.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let has_form = text.len() == TOKEN_CHARACTERS && text.bytes().all(is_base64url);
        has_form.then(|| Self(Sha256::digest(text.as_bytes()).into()))
    }
}

impl fmt::Debug for CapabilityToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("redacted")
    }
}

#[cfg(test)]
mod tests {
    use super::{CapabilityToken, TokenHash};

    #[test]
    fn tokens_are_random_and_found_by_their_hash() {
        let token = CapabilityToken::generate().expect("random bytes");
        assert_ne!(token, CapabilityToken::generate().expect("random bytes"));
        assert_eq!(TokenHash::of(token.expose()), Some(token.hash()));
        assert_eq!(CapabilityToken::parse(token.expose()), Some(token.clone()));
        assert_eq!(format!("{token:?}"), "redacted");
        let text = token.expose();
        for bad in
            ["", &text[1..], &format!("{text}A"), &format!("{}.", &text[1..]), &format!("{}%", &text[1..])]
        {
            assert_eq!(TokenHash::of(bad), None, "{bad}");
        }
    }
}
