//! The client itself: configuration, one request, and what its errors mean.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cairn_sync::RwLock;
use cairn_trust::{Authorities, tls_config};
use ureq::config::Config;
use ureq::http::{HeaderName, HeaderValue, Request, Response, header};
use ureq::unversioned::transport::Connector;
use ureq::{Agent, Body, Error};

use super::attempt::{Attempt, Delivery, Failure, FailureKind, Sender};
use super::call::{self, Call};
use super::connection::{JudgedConnector, SharedTls};
use super::judging::JudgingResolver;
use super::probe::{Probe, Step};
use super::retry_after;
use crate::destination::{Resolver, TargetPolicy};
use crate::limits::{
    CONNECTION_IDLE_MAX, CONNECTIONS_IDLE_MAX, INPUT_BUFFER_BYTES, OUTPUT_BUFFER_BYTES,
    RESPONSE_BODY_BYTES_MAX, RESPONSE_BODY_WAIT, RESPONSE_HEAD_BYTES_MAX,
};

/// The user agent of deliveries.
const USER_AGENT: &str = concat!("Cairn-Webhook/", env!("CARGO_PKG_VERSION"));

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The policy on targets.
    pub policy: TargetPolicy,
    /// Time limit of an attempt, from the look-up to the end of the answer.
    pub request_timeout: Duration,
    /// The certificate authorities that are trusted.
    pub authorities: Authorities,
}

/// Makes attempts. Any number of threads may use it at a time.
pub struct Client {
    policy: Arc<TargetPolicy>,
    resolver: Arc<dyn Resolver>,
    request_timeout: Duration,
    config: Config,
    tls: SharedTls,
    /// ureq, with its connections.
    agent: RwLock<Agent>,
    /// Whether there was a request since the last look for idle connections.
    is_used: AtomicBool,
}

impl Client {
    /// Makes a client.
    #[must_use]
    pub fn new(settings: ClientSettings, resolver: Arc<dyn Resolver>) -> Self {
        let ClientSettings { policy, request_timeout, authorities } = settings;
        let config = config(&policy, request_timeout, &authorities);
        let (policy, tls) = (Arc::new(policy), SharedTls::default());
        let agent = RwLock::new(agent(&policy, &resolver, request_timeout, &config, &tls));
        Self { policy, resolver, request_timeout, config, tls, agent, is_used: AtomicBool::new(false) }
    }

    /// Makes one attempt over a connection of its own, and reports every step. Blocks as long as [`Sender::deliver`].
    #[must_use]
    pub fn probe(&self, delivery: &Delivery<'_>) -> Probe {
        let started = Instant::now();
        let (result, mut call) =
            self.request(delivery, Call::reporting(delivery.target), self.request_timeout);
        let attempt = self.attempt(delivery, result, &mut call, started);
        Probe { attempt, steps: call.reports.unwrap_or_default() }
    }

    /// Closes every connection and interrupts the attempts that are running. Further ones fail.
    pub fn shut_down(&self) {
        self.agent().shutdown();
    }

    /// Closes the kept connections if there was no request since the last call. To be called about once a minute.
    pub fn close_idle_connections(&self) {
        if !self.is_used.swap(false, Ordering::Relaxed) {
            let Self { policy, resolver, request_timeout, config, tls, .. } = self;
            let fresh = agent(policy, resolver, *request_timeout, config, tls);
            *self.agent.write() = fresh;
        }
    }

    /// A handle to ureq.
    fn agent(&self) -> Agent {
        self.agent.read().clone()
    }

    /// Sends the request of a call.
    fn request(
        &self,
        delivery: &Delivery<'_>,
        call: Call,
        time_limit: Duration,
    ) -> (Result<Response<Body>, Error>, Call) {
        self.is_used.store(true, Ordering::Relaxed);
        let agent = self.agent();
        call::run(call, || {
            self.judge_scheme(delivery)?;
            let request = post(delivery)?;
            let mut response = if time_limit == self.request_timeout {
                agent.run(request)?
            } else {
                let request = agent.configure_request(request).timeout_global(Some(time_limit)).build();
                agent.run(request)?
            };
            discard(response.body_mut());
            Ok(response)
        })
    }

    /// Judges the scheme, for which no look-up is needed.
    fn judge_scheme(&self, delivery: &Delivery<'_>) -> Result<(), Error> {
        self.policy.judge_scheme(delivery.target).map_err(|refused| {
            call::with(|call| {
                call.begin(Step::Check);
                call.end(false, || refused.to_string());
                call.failure = Some(Failure::new(FailureKind::Refused, refused.to_string()));
            });
            Error::BadUri(refused.to_string())
        })
    }

    /// Says what came of a request.
    fn attempt(
        &self,
        delivery: &Delivery<'_>,
        result: Result<Response<Body>, Error>,
        call: &mut Call,
        started: Instant,
    ) -> Attempt {
        let (http_status, error, retry_after) = match result {
            Ok(response) => {
                let status = response.status().as_u16();
                let error = status_failure(status);
                let retry_after = response.headers().get(header::RETRY_AFTER).filter(|_| error.is_some());
                let retry_after =
                    retry_after.and_then(|value| retry_after::parse(value.as_bytes(), delivery.attempted_at));
                call.end(error.is_none(), || format!("HTTP status {status}"));
                (Some(status), error, retry_after)
            }
            Err(error) => {
                let known = call.failure.take();
                let failure = known.unwrap_or_else(|| {
                    let failure = failure_of(error, call.step, self.request_timeout);
                    call.end(false, || failure.text.clone());
                    failure
                });
                (None, Some(failure), None)
            }
        };
        Attempt { http_status, error, retry_after, duration: started.elapsed() }
    }
}

impl Sender for Client {
    fn deliver(&self, delivery: &Delivery<'_>) -> Attempt {
        let started = Instant::now();
        let (mut result, mut call) = self.request(delivery, Call::new(delivery.target), self.request_timeout);
        // A receiver may close a kept connection while we send on it. That says nothing about the receiver.
        let left = self.request_timeout.saturating_sub(started.elapsed());
        if !call.has_connected
            && matches!(result, Err(Error::Io(_)))
            && !call.judged.is_empty()
            && !left.is_zero()
        {
            (result, call) = self.request(delivery, Call::with_new_connection(delivery.target), left);
        }
        self.attempt(delivery, result, &mut call, started)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Client").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// Makes ureq's part, without connections.
fn agent(
    policy: &Arc<TargetPolicy>,
    resolver: &Arc<dyn Resolver>,
    time_limit: Duration,
    config: &Config,
    tls: &SharedTls,
) -> Agent {
    let resolver = JudgingResolver { resolver: Arc::clone(resolver), policy: Arc::clone(policy), time_limit };
    Agent::with_parts(config.clone(), JudgedConnector.chain(tls.clone()), resolver)
}

/// The configuration of ureq. What it would do by default and must not do is switched off here.
fn config(policy: &TargetPolicy, request_timeout: Duration, authorities: &Authorities) -> Config {
    Agent::config_builder()
        .tls_config(tls_config(authorities))
        .https_only(!policy.allow_http)
        // It would be taken from the environment, and the judged address would be the proxy's to connect to.
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(USER_AGENT)
        .accept("")
        .accept_encoding("")
        .timeout_global(Some(request_timeout))
        .timeout_recv_body(Some(RESPONSE_BODY_WAIT))
        .max_response_header_size(RESPONSE_HEAD_BYTES_MAX)
        .input_buffer_size(INPUT_BUFFER_BYTES)
        .output_buffer_size(OUTPUT_BUFFER_BYTES)
        .max_idle_connections(CONNECTIONS_IDLE_MAX)
        .max_idle_connections_per_host(CONNECTIONS_IDLE_MAX)
        .max_idle_age(CONNECTION_IDLE_MAX)
        .build()
}

/// Makes the request of a delivery, with both signatures.
fn post<'a>(delivery: &Delivery<'a>) -> Result<Request<&'a [u8]>, Error> {
    let Delivery { target, event_id, event_type, event_time, attempted_at, body, secrets } = *delivery;
    let signatures = secrets.sign(event_id, attempted_at.seconds(), body);
    let mut request = Request::post(target.uri.clone()).body(body)?;
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in [
        ("x-service-event-id", event_id),
        ("x-service-event-type", event_type),
        ("x-service-event-time", event_time),
        ("x-service-signature", &signatures.service),
        ("webhook-id", event_id),
        ("webhook-timestamp", &signatures.timestamp),
        ("webhook-signature", &signatures.standard),
    ] {
        let value = HeaderValue::from_str(value).map_err(|error| Error::Http(error.into()))?;
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(request)
}

/// Reads the body of an answer up to its limit, so that the connection can be used again. If that fails, it is closed.
fn discard(body: &mut Body) {
    let mut reader = body.with_config().limit(RESPONSE_BODY_BYTES_MAX).reader();
    let mut discarded = [0; 4096];
    while matches!(reader.read(&mut discarded), Ok(1..)) {}
}

/// Returns the reason why a status is a failure. `None` for 2xx.
fn status_failure(status: u16) -> Option<Failure> {
    let text = match status {
        200..=299 => return None,
        300..=399 => format!("the receiver answered with HTTP status {status}; redirects are not followed"),
        _ => format!("the receiver answered with HTTP status {status}"),
    };
    Some(Failure::new(FailureKind::Response, text))
}

/// Says what an error of ureq means, from the step at which it happened.
fn failure_of(error: Error, step: Step, request_timeout: Duration) -> Failure {
    let new = |kind, text: String| Failure::new(kind, text);
    match error {
        Error::Timeout(_) => {
            let doing = match step {
                Step::Resolve | Step::Check => "while the host name was looked up",
                Step::Connect => "while connecting",
                Step::Tls => "during the TLS handshake",
                Step::Response => "while waiting for the answer",
            };
            new(
                FailureKind::Timeout,
                format!("the time limit of {} passed {doing}", Seconds(request_timeout)),
            )
        }
        Error::LargeResponseHeader(..) => new(
            FailureKind::Response,
            format!("the head of the answer is larger than {RESPONSE_HEAD_BYTES_MAX} bytes"),
        ),
        Error::Protocol(error) => {
            new(FailureKind::Response, format!("the answer is not valid HTTP/1.1: {error}"))
        }
        // What ureq says after its end. A socket that is not connected has failed in an earlier step.
        Error::Io(error) if step == Step::Response && error.kind() == ErrorKind::NotConnected => {
            new(FailureKind::Connect, "the server stopped before the answer".to_owned())
        }
        Error::Io(error) if step == Step::Tls => {
            new(FailureKind::Tls, format!("the TLS handshake failed: {error}"))
        }
        Error::Io(error) if step == Step::Connect => {
            new(FailureKind::Connect, format!("no connection: {error}"))
        }
        Error::Io(error) => {
            new(FailureKind::Connect, format!("the connection broke before the answer: {error}"))
        }
        Error::ConnectionFailed => new(FailureKind::Connect, "no connection could be made".to_owned()),
        error if step == Step::Tls => new(FailureKind::Tls, format!("the TLS handshake failed: {error}")),
        error if step == Step::Response => new(FailureKind::Response, format!("the request failed: {error}")),
        error => new(FailureKind::Connect, format!("the request failed: {error}")),
    }
}

/// A duration in seconds, with decimals only where there are any.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} s", self.0.as_secs_f64())
    }
}
