//! Requests to the provider: with time limits, bounded answers, and without redirects or proxies.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_http1::encode_strict;
use cairn_trust::{Authorities, tls_config};
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body, Error};
use zeroize::Zeroizing;

use crate::limits::{ANSWER_BYTES_MAX, ANSWER_HEAD_BYTES_MAX, REQUEST_TIME_MAX};

/// The user agent of our requests.
const USER_AGENT: &str = concat!("Cairn/", env!("CARGO_PKG_VERSION"));
/// Connections are kept for the requests of one sign-in.
const CONNECTIONS_IDLE_MAX: usize = 2;

/// The transport of requests to a provider: with TLS, or to the loopback interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transport {
    /// All of them.
    Tls,
    /// None: the provider is on this host.
    Loopback,
}

impl Transport {
    /// Returns what an issuer needs. The configuration allows `http` for loopback addresses only.
    pub(crate) fn of(issuer: &str) -> Self {
        if issuer.starts_with("http://") { Self::Loopback } else { Self::Tls }
    }

    pub(super) fn allows(self, url: &str) -> bool {
        url.starts_with("https://") || (self == Self::Loopback && url.starts_with("http://"))
    }
}

/// The HTTP client of a provider.
pub(crate) struct Client(Agent);

/// An answer of the provider.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Zeroizing<Vec<u8>>,
}

impl Client {
    pub(crate) fn new(authorities: &Authorities, transport: Transport) -> Self {
        let config = Agent::config_builder()
            .tls_config(tls_config(authorities))
            .https_only(transport == Transport::Tls)
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .user_agent(USER_AGENT)
            .accept("application/json")
            .timeout_global(Some(REQUEST_TIME_MAX))
            .max_response_header_size(ANSWER_HEAD_BYTES_MAX)
            .max_idle_connections(CONNECTIONS_IDLE_MAX)
            .max_idle_connections_per_host(CONNECTIONS_IDLE_MAX)
            .build();
        Self(config.into())
    }

    /// Returns the body of a JSON document, which is read with a bearer token or without.
    ///
    /// # Errors
    /// The failure, with the URL. The token is not in it.
    pub(crate) fn get(&self, url: &str, bearer: Option<&str>) -> Result<Zeroizing<Vec<u8>>, String> {
        let mut request = self.0.get(url);
        if let Some(token) = bearer {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let answer = read(url, request.call())?;
        match answer.status {
            StatusCode::OK => Ok(answer.body),
            status => Err(format!("{url} answered with HTTP status {}", status.as_u16())),
        }
    }

    /// Sends a form, and returns the answer whatever its status is. `credential` is a client with its secret, for HTTP Basic.
    ///
    /// # Errors
    /// The failure, with the URL. Nothing of the form is in it.
    pub(crate) fn post(
        &self,
        url: &str,
        form: &[(&str, &str)],
        credential: Option<(&str, &str)>,
    ) -> Result<Answer, String> {
        let mut request = self.0.post(url).header("content-type", "application/x-www-form-urlencoded");
        if let Some((id, secret)) = credential {
            // Both are encoded first (RFC 6749, section 2.3.1).
            let pair = Zeroizing::new(format!("{}:{}", encode_strict(id), encode_strict(secret)));
            let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
            request = request.header("authorization", value.as_str());
        }
        let body = Zeroizing::new(encoded(form));
        read(url, request.send(body.as_bytes()))
    }
}

/// Returns pairs as a query or a form.
pub(crate) fn encoded(pairs: &[(&str, &str)]) -> String {
    let encoded: Vec<_> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encode_strict(name), encode_strict(value)))
        .collect();
    encoded.join("&")
}

fn read(url: &str, result: Result<Response<Body>, Error>) -> Result<Answer, String> {
    let failed = |error: Error| match error {
        Error::Timeout(_) => format!("{url} did not answer within {} s", REQUEST_TIME_MAX.as_secs()),
        Error::BodyExceedsLimit(limit) => format!("the answer of {url} has more than {limit} bytes"),
        error => format!("{url}: {error}"),
    };
    let mut response = result.map_err(failed)?;
    let status = response.status();
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec().map_err(failed)?;
    Ok(Answer { status, body: Zeroizing::new(body) })
}
