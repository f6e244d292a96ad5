//! Key pairs that a client chooses for a credential.
//!
//! An application that moves here can then keep its keys.

use super::error::DirectoryError;
use super::secret::Secret;
use cairn_model::Timestamp;

/// Shortest access key, in characters. Other services have keys as short as this.
const ACCESS_KEY_CHARACTERS_MIN: usize = 3;
/// Longest access key, in characters. The configuration allows root's as many.
const ACCESS_KEY_CHARACTERS_MAX: usize = 128;
/// Shortest secret key, in characters. Other services have keys as short as this.
const SECRET_KEY_CHARACTERS_MIN: usize = 8;
/// Longest secret key, in characters.
const SECRET_KEY_CHARACTERS_MAX: usize = 128;

/// A valid access key and secret key. `Debug` never shows the secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenCredential {
    pub(super) access_key: String,
    pub(super) secret_key: Secret,
    /// The time when it stops working, if ever.
    pub(super) expires_at: Option<Timestamp>,
}

impl GivenCredential {
    /// Validates both keys. The secret is zeroed when it is dropped.
    ///
    /// # Errors
    /// [`DirectoryError::Invalid`], which never contains a key.
    pub fn new(access_key: String, secret_key: String) -> Result<Self, DirectoryError> {
        let secret_key = Secret::from(secret_key);
        let has_length = |text: &str, min, max| (min..=max).contains(&text.len());
        if !has_length(&access_key, ACCESS_KEY_CHARACTERS_MIN, ACCESS_KEY_CHARACTERS_MAX)
            || !access_key.bytes().all(is_of_access_key)
        {
            return Err(DirectoryError::Invalid(format!(
                "access_key must have {ACCESS_KEY_CHARACTERS_MIN} to {ACCESS_KEY_CHARACTERS_MAX} characters: \
                 letters and digits of ASCII, and . _ - + = / @"
            )));
        }
        if !has_length(secret_key.expose(), SECRET_KEY_CHARACTERS_MIN, SECRET_KEY_CHARACTERS_MAX)
            || !secret_key.expose().bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err(DirectoryError::Invalid(format!(
                "secret_key must have {SECRET_KEY_CHARACTERS_MIN} to {SECRET_KEY_CHARACTERS_MAX} printable \
                 characters of ASCII, and no spaces"
            )));
        }
        Ok(Self { access_key, secret_key, expires_at: None })
    }

    /// Makes the credential stop working at a time, which must be in the future when it is created.
    #[must_use]
    pub fn expiring(self, expires_at: Option<Timestamp>) -> Self {
        Self { expires_at, ..self }
    }
}

/// Returns whether an access key may contain this byte. None of these needs escaping in headers, JSON or XML; `/` is why
/// credential scopes are read from the end.
const fn is_of_access_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+' | b'=' | b'/' | b'@')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_valid(access_key: &str, secret_key: &str) -> bool {
        GivenCredential::new(access_key.to_owned(), secret_key.to_owned()).is_ok()
    }

    #[test]
    fn keys_have_limits_of_length_and_characters() {
        let (secret, long) = ("8letters", "x".repeat(128));
        for access_key in ["abc", "my.app+key=1/2@x", "AZaz09._-+=/@", &long] {
            assert!(is_valid(access_key, secret), "{access_key}");
        }
        for access_key in
            ["", "ab", "a b", "a,b", "a:b", "a;b", "a~b", "a%b", "a\nb", "abé", &format!("{long}x")]
        {
            assert!(!is_valid(access_key, secret), "{access_key:?}");
        }
        for secret_key in [secret, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", &long] {
            assert!(is_valid("abc", secret_key), "{secret_key}");
        }
        for secret_key in
            ["", "7letter", "8 letters", "8letters\n", "\t8letters", "8létters", &format!("{long}x")]
        {
            assert!(!is_valid("abc", secret_key), "{secret_key:?}");
        }
    }

    #[test]
    fn neither_errors_nor_debug_output_show_a_secret() {
        let given = GivenCredential::new("abc".to_owned(), "hush-hush".to_owned());
        let refused = GivenCredential::new("abc".to_owned(), "hush hush".to_owned());
        assert!(given.is_ok() && refused.is_err());
        assert!(!format!("{given:?}{refused:?}").contains("hush"));
    }
}
