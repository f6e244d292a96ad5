//! Begins and finishes sign-ins.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use zeroize::Zeroizing;

use crate::error::SignInError;
use crate::limits::{CODE_BYTES_MAX, QUOTED_BYTES_MAX};
use crate::logouts::Logouts;
use crate::pending::{Pending, Taken};
use crate::person::Person;
use crate::provider::{Code, Provider, encoded, refused};
use crate::settings::OpenIdSettings;
use crate::tasks::{Origin, Tasks};
use crate::text::harmless;
use crate::token::Logout;

/// Sign-ins with one provider. Clones share them.
#[derive(Clone)]
pub struct SignIns(Arc<Shared>);

struct Shared {
    settings: Arc<OpenIdSettings>,
    provider: Provider,
    pending: Pending,
    logouts: Logouts,
    tasks: Tasks,
}

/// A sign-in that was begun.
pub struct Begun {
    /// The value of the cookie that binds it to its browser. It lasts for [`crate::SIGN_IN_TIME_MAX`].
    pub cookie: Zeroizing<String>,
    /// The URL of the provider, to which the browser goes.
    pub url: String,
}

/// A sign-in that was finished.
pub struct Finished {
    /// The person whom the provider has identified.
    pub person: Person,
    taken: Taken,
}

impl Finished {
    /// Returns the session that the browser had when it began the sign-in.
    #[must_use]
    pub fn earlier(&self) -> Option<&[u8; 32]> {
        self.taken.earlier.as_ref()
    }
}

/// The parameters with which the provider sends the browser back.
#[derive(Default)]
pub struct ProviderAnswer {
    /// `state`
    pub state: String,
    /// `code`
    pub code: Option<Zeroizing<String>>,
    /// `iss` (RFC 9207)
    pub issuer: Option<String>,
    /// `error`
    pub error: Option<String>,
    /// `error_description`
    pub error_description: Option<String>,
}

impl SignIns {
    /// Makes the sign-ins of a provider, which is not asked yet.
    #[must_use]
    pub fn new(settings: OpenIdSettings) -> Self {
        let settings = Arc::new(settings);
        let provider = Provider::new(Arc::clone(&settings));
        let (pending, logouts, tasks) = (Pending::default(), Logouts::default(), Tasks::default());
        Self(Arc::new(Shared { settings, provider, pending, logouts, tasks }))
    }

    /// Asks for the metadata of the provider, so that the log says at the start what is wrong. Does not wait.
    pub fn prepare(&self) {
        let shared = Arc::clone(&self.0);
        // What fails is in the log, and is tried again with the first sign-in.
        let origin = Origin::SignIn(Ipv4Addr::UNSPECIFIED.into());
        drop(self.0.tasks.submit(origin, Box::new(move || drop(shared.provider.metadata()))));
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &OpenIdSettings {
        &self.0.settings
    }

    /// Begins a sign-in of a browser. `earlier` names the session that the browser has, and is in [`Finished`] again.
    ///
    /// # Errors
    /// `Unavailable`, `Busy`.
    pub async fn begin(&self, client: IpAddr, earlier: Option<[u8; 32]>) -> Result<Begun, SignInError> {
        let metadata = match self.0.provider.known_metadata() {
            Some(metadata) => metadata,
            None => {
                let shared = Arc::clone(&self.0);
                self.0.tasks.run(Origin::sign_in(client), move || shared.provider.metadata()).await?
            }
        };
        let new = self.0.pending.begin(client, earlier, Instant::now()).map_err(|error| {
            SignInError::Unavailable(format!("the operating system has no random bytes: {error}"))
        })?;
        let redirect_uri = self.0.settings.redirect_uri();
        let query = encoded(&[
            ("response_type", "code"),
            ("client_id", &self.0.settings.client_id),
            ("redirect_uri", &redirect_uri),
            ("scope", &self.0.settings.scopes),
            ("state", &new.state),
            ("nonce", &new.nonce),
            ("code_challenge", &new.challenge),
            ("code_challenge_method", "S256"),
        ]);
        Ok(Begun { cookie: new.cookie, url: with_query(&metadata.authorization_endpoint, &query) })
    }

    /// Finishes one of the sign-ins that a browser has begun; `cookies` are those of all of them. Why it failed is kept for
    /// [`Self::failure`], unless the sign-in is not known.
    ///
    /// # Errors
    /// All of [`SignInError`].
    pub async fn finish(
        &self,
        cookies: impl IntoIterator<Item = &str>,
        answer: ProviderAnswer,
    ) -> Result<Finished, SignInError> {
        let now = Instant::now();
        let mut taken =
            cookies.into_iter().filter_map(|cookie| self.0.pending.take(cookie, &answer.state, now));
        let taken = taken.next().ok_or(SignInError::Unknown)?;
        match self.person(&taken, answer).await {
            Ok(person) => Ok(Finished { person, taken }),
            Err(error) => {
                self.0.pending.fail(&taken, error.clone());
                Err(error)
            }
        }
    }

    async fn person(&self, taken: &Taken, answer: ProviderAnswer) -> Result<Person, SignInError> {
        let OpenIdSettings { name, issuer, .. } = &*self.0.settings;
        if let Some(other) = answer.issuer.as_ref().filter(|other| *other != issuer) {
            let other = harmless(other, QUOTED_BYTES_MAX);
            return Err(SignInError::Invalid(format!("the answer is of {other} instead of {issuer} (iss)")));
        }
        if let Some(error) = &answer.error {
            return Err(refused(name, error, answer.error_description.as_deref()));
        }
        let code = answer.code.filter(|code| (1..=CODE_BYTES_MAX).contains(&code.len()));
        let code = code
            .ok_or_else(|| SignInError::Invalid("the answer has neither a code nor an error".to_owned()))?;
        let is_of_issuer = answer.issuer.is_some();
        let code = Code { code, nonce: taken.nonce.clone(), verifier: taken.verifier.clone(), is_of_issuer };
        let shared = Arc::clone(&self.0);
        self.0.tasks.run(Origin::sign_in(taken.client), move || shared.provider.person(&code)).await
    }

    /// Verifies a logout token of the provider (Back-Channel Logout). [`Self::use_up`] comes before anything is ended.
    ///
    /// # Errors
    /// `Invalid`, `Unavailable`, `Busy`.
    pub async fn verify_logout(&self, client: IpAddr, token: String) -> Result<Logout, SignInError> {
        let shared = Arc::clone(&self.0);
        self.0.tasks.run(Origin::logout(client), move || shared.provider.logout(&token)).await
    }

    /// Uses a logout, which counts once.
    ///
    /// # Errors
    /// `Invalid` if it was used before, `Busy`.
    pub fn use_up(&self, logout: &Logout) -> Result<(), SignInError> {
        self.0.logouts.use_up(logout, Instant::now())
    }

    /// Checks that the provider has not ended the session of a person since the sign-in was begun. The session here must be
    /// there before: then a logout that comes now either finds it, or is found.
    ///
    /// # Errors
    /// `Person`, which is kept for [`Self::failure`].
    pub fn check_logouts(&self, finished: &Finished) -> Result<(), SignInError> {
        let Finished { person: Person { subject, session, .. }, taken } = finished;
        if !self.0.logouts.have_ended(subject, session.as_deref(), taken.begun) {
            return Ok(());
        }
        let why = format!("{} has ended your session meanwhile; sign in again", self.0.settings.name);
        let error = SignInError::Person { why, subject: subject.clone() };
        self.0.pending.fail(taken, error.clone());
        Err(error)
    }

    /// Returns whether the sign-in of this cookie is to be finished, or its failure to be told.
    #[must_use]
    pub fn knows(&self, cookie: &str) -> bool {
        self.0.pending.knows(cookie, Instant::now())
    }

    /// Returns why the sign-in of a browser has failed, once.
    #[must_use]
    pub fn failure(&self, cookie: &str) -> Option<SignInError> {
        self.0.pending.failure(cookie, Instant::now())
    }

    /// Returns where a browser goes to end the session at the provider, if the provider has such a page.
    #[must_use]
    pub fn sign_out_url(&self) -> Option<String> {
        let metadata = self.0.provider.last_metadata()?;
        let endpoint = metadata.end_session_endpoint.as_ref()?;
        let back = format!("{}/", self.0.settings.console_url);
        let query = encoded(&[
            ("client_id", self.0.settings.client_id.as_str()),
            ("post_logout_redirect_uri", &back),
        ]);
        Some(with_query(endpoint, &query))
    }
}

/// Adds a query to a URL, which may have one.
fn with_query(url: &str, query: &str) -> String {
    format!("{url}{}{query}", if url.contains('?') { '&' } else { '?' })
}

impl fmt::Debug for SignIns {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("SignIns").field(&self.0.settings).finish()
    }
}
