//! The management plane as the command-line client sees it.

use std::time::Duration;

use serde_json::Value;
use ureq::Agent;

use crate::output::plain;

/// Where a server on this host listens.
pub(crate) const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:7601";
/// Holds the token.
const TOKEN_VARIABLE: &str = "SERVICE_MANAGEMENT_TOKEN";
/// Status of an answer that holds what was asked for.
const DONE: u16 = 200;
/// No answer within this time is no answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer read.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// Longest answer of a route that lists findings: a thousand of them with keys of 1 KiB, escaped.
const LONG_ANSWER_BYTES_MAX: u64 = 64 << 20;

/// A server's management plane.
pub(crate) struct Endpoint {
    base: String,
    agent: Agent,
    token: Option<String>,
}

/// An answer: its status and its JSON, if it is any.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Endpoint {
    /// Checks the address and takes the token from the environment.
    pub(crate) fn new(address: &str) -> Result<Self, String> {
        let base = address.trim_end_matches('/');
        if !base.starts_with("http://") {
            return Err("--endpoint must begin with http:// (this build has no TLS)".to_owned());
        }
        let token = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        let config = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            // The token goes to the server named and to nobody else.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self { base: base.to_owned(), agent: config.into(), token })
    }

    /// As [`Self::new`], for routes that nobody may use without a token.
    pub(crate) fn with_token(address: &str) -> Result<Self, String> {
        let endpoint = Self::new(address)?;
        if endpoint.has_token() {
            Ok(endpoint)
        } else {
            Err(format!("{TOKEN_VARIABLE} must hold a management token"))
        }
    }

    /// Whether there is a token to show.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Gets a path, with the token if there is one and the route wants it.
    pub(crate) fn get(&self, path: &str, credential: Credential) -> Result<Answer, String> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        if let (Credential::Token, Some(token)) = (credential, &self.token) {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.answer(request.call(), ANSWER_BYTES_MAX)
    }

    /// Gets a path, with the token, and waits for as long as the answer takes.
    pub(crate) fn get_patiently(&self, path: &str) -> Result<Answer, String> {
        let request = self.agent.get(format!("{}{path}", self.base)).config().timeout_global(None).build();
        let request = request.header("authorization", self.bearer());
        self.answer(request.call(), LONG_ANSWER_BYTES_MAX)
    }

    /// Posts JSON to a path, with the token, and waits for as long as the answer takes.
    pub(crate) fn post_patiently(&self, path: &str, json: &str) -> Result<Answer, String> {
        let request = self.agent.post(format!("{}{path}", self.base)).config().timeout_global(None).build();
        let request =
            request.header("authorization", self.bearer()).header("content-type", "application/json");
        self.answer(request.send(json), LONG_ANSWER_BYTES_MAX)
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token.as_deref().unwrap_or_default())
    }

    fn answer(
        &self,
        called: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
        bytes_max: u64,
    ) -> Result<Answer, String> {
        let mut response = called.map_err(|error| format!("{} cannot be reached: {error}", self.base))?;
        let status = response.status().as_u16();
        let text = response
            .body_mut()
            .with_config()
            .limit(bytes_max)
            .read_to_string()
            .map_err(|error| format!("the answer of {} could not be read: {error}", self.base))?;
        Ok(Answer { status, body: serde_json::from_str(&text).unwrap_or(Value::Null) })
    }
}

/// What a request shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Credential {
    /// Nothing: the route is public.
    None,
    /// The token.
    Token,
}

impl Answer {
    /// What was asked for, or the refusal, fit for the terminal.
    pub(crate) fn body(self) -> Result<Value, String> {
        if self.status == DONE { Ok(self.body) } else { Err(plain(&self.refusal())) }
    }

    /// The server's own words for a refusal.
    pub(crate) fn refusal(&self) -> String {
        let text = |name: &str| self.body["error"][name].as_str();
        match (text("code"), text("message")) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            _ => format!("the answer was HTTP {}", self.status),
        }
    }
}
