//! The provider: its metadata and keys, and the requests that make a person of a code. Everything here blocks.

mod client;
mod exchange;
mod kept;
mod metadata;

use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey};

use crate::error::SignInError;
use crate::limits::{KEYS_AGE_MIN, METADATA_AGE_MAX};
use crate::person::{Person, has_role_claim, is_complete};
use crate::settings::OpenIdSettings;
use crate::token::{Claims, Expected, Flaw, KeySet, Logout, WantedKey, verified, verified_logout};
pub(crate) use client::encoded;
use client::{Client, Transport};
pub(crate) use exchange::{Code, refused};
use kept::Kept;
use metadata::Metadata;

/// One provider, for all threads.
pub(crate) struct Provider {
    settings: Arc<OpenIdSettings>,
    client: Client,
    metadata: Kept<Metadata>,
    keys: Kept<KeySet>,
}

impl Provider {
    pub(crate) fn new(settings: Arc<OpenIdSettings>) -> Self {
        let client = Client::new(&settings.authorities, Transport::of(&settings.issuer));
        Self { settings, client, metadata: Kept::new(), keys: Kept::new() }
    }

    /// Returns the metadata, if they were read lately. Does not block.
    pub(crate) fn known_metadata(&self) -> Option<Arc<Metadata>> {
        self.metadata.known(METADATA_AGE_MAX)
    }

    /// Returns the metadata that were read last, however old they are. Does not block.
    pub(crate) fn last_metadata(&self) -> Option<Arc<Metadata>> {
        self.metadata.known(Duration::MAX)
    }

    /// Returns the metadata, and reads them if need be.
    ///
    /// # Errors
    /// `Unavailable`.
    pub(crate) fn metadata(&self) -> Result<Arc<Metadata>, SignInError> {
        self.metadata.newer_than(METADATA_AGE_MAX, || {
            Metadata::read(&self.client, &self.settings.issuer).map_err(|why| {
                let error = self.unavailable(&why);
                tracing::warn!(target: "service", %error, "people cannot sign in with OpenID");
                error
            })
        })
    }

    /// Exchanges a code for the claims of its person.
    ///
    /// # Errors
    /// All of [`SignInError`] but `Busy`.
    pub(crate) fn person(&self, code: &Code) -> Result<Person, SignInError> {
        let metadata = self.metadata()?;
        if metadata.names_itself() && !code.is_of_issuer {
            let missing =
                format!("the answer does not name its issuer (iss), as {} does", self.settings.name);
            return Err(SignInError::Invalid(missing));
        }
        let tokens = exchange::tokens(&self.client, &metadata, &self.settings, code)?;
        let claims = self.verified(&tokens.id_token, |key, algorithm| {
            verified(&tokens.id_token, key, algorithm, self.expected(&code.nonce))
        })?;
        if is_complete(&claims, &self.settings) {
            return Person::of(&claims, &Claims::new(), &self.settings);
        }
        let user_info = match exchange::user_info(&self.client, &metadata, &tokens, &claims) {
            // Only the name is missing.
            Err(error) if has_role_claim(&claims, &self.settings) => {
                tracing::warn!(target: "service", %error, "a person signs in without the claims of the user info endpoint");
                Claims::new()
            }
            answer => answer?,
        };
        Person::of(&claims, &user_info, &self.settings)
    }

    /// Verifies a logout token.
    ///
    /// # Errors
    /// `Invalid`, `Unavailable`.
    pub(crate) fn logout(&self, token: &str) -> Result<Logout, SignInError> {
        let check = |key: &DecodingKey, algorithm| verified_logout(token, key, algorithm, self.expected(""));
        self.verified(token, check).map_err(|error| match error {
            SignInError::Invalid(why) => SignInError::Invalid(why.replace("ID token", "logout token")),
            error => error,
        })
    }

    /// Verifies a token with the key that it names. If that is not known or does not fit, the provider may publish another one
    /// by now, under the same id or without one.
    fn verified<T>(
        &self,
        token: &str,
        check: impl Fn(&DecodingKey, Algorithm) -> Result<T, Flaw>,
    ) -> Result<T, SignInError> {
        let wanted = WantedKey::of(token).map_err(SignInError::Invalid)?;
        let metadata = self.metadata()?;
        if let Some(key) = self.keys.known(METADATA_AGE_MAX).and_then(|keys| keys.find(&wanted)) {
            match check(&key, wanted.algorithm) {
                Err(Flaw::Signature) => {}
                checked => return Ok(checked?),
            }
        }
        let key = self.new_keys(&metadata)?.find(&wanted).ok_or_else(|| unknown_key(&wanted))?;
        Ok(check(&key, wanted.algorithm)?)
    }

    fn expected<'e>(&'e self, nonce: &'e str) -> Expected<'e> {
        let OpenIdSettings { issuer, client_id, .. } = &*self.settings;
        Expected { issuer, client_id, nonce }
    }

    /// Returns the keys that the provider publishes now. It is not asked more often than [`KEYS_AGE_MIN`].
    fn new_keys(&self, metadata: &Metadata) -> Result<Arc<KeySet>, SignInError> {
        self.keys.newer_than(KEYS_AGE_MIN, || {
            let answer = self.client.get(&metadata.jwks_uri, None);
            answer.and_then(|answer| KeySet::parse(&answer)).map_err(|why| self.unavailable(&why))
        })
    }

    fn unavailable(&self, why: &str) -> SignInError {
        SignInError::Unavailable(format!("{} cannot be asked now: {why}", self.settings.name))
    }
}

fn unknown_key(wanted: &WantedKey) -> SignInError {
    let name = wanted.id.as_deref().map(|id| crate::text::harmless(id, crate::limits::QUOTED_BYTES_MAX));
    SignInError::Invalid(format!(
        "the ID token is signed with a key that the provider does not publish ({}); it is asked for its keys every {} s at most, \
         so try again later",
        name.as_deref().unwrap_or("without an id"),
        KEYS_AGE_MIN.as_secs()
    ))
}
