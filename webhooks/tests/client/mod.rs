//! The client against real receivers.

mod answers;
mod connections;
mod environment;
mod probes;
mod targets;
mod tls;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use cairn_model::Timestamp;
use cairn_sync::Mutex;
use cairn_trust::Authorities;
use cairn_webhooks::client::{Attempt, Client, ClientSettings, Delivery, FailureKind, Probe, Sender};
use cairn_webhooks::destination::{LookupError, Resolver, TargetPolicy, TargetUrl};
use cairn_webhooks::signature::{SigningSecret, SigningSecrets};

/// The test vector of the documentation.
pub(crate) const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
pub(crate) const EVENT_ID: &str = "0192f0c1-2345-7abc-8def-0123456789ab";
pub(crate) const BODY: &[u8] = br#"{"id":"0192f0c1-2345-7abc-8def-0123456789ab","type":"object.created"}"#;
/// `Ok` with an empty body.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Long enough for a machine that is busy.
pub(crate) const LONG: Duration = Duration::from_secs(120);
/// A limit that five tests wait for, all at the same time. On a busy machine, the steps before the one that is late take less.
pub(crate) const SHORT: Duration = Duration::from_secs(5);

/// Plain HTTP and private addresses are allowed: the receivers of tests are on this host.
pub(crate) fn local() -> TargetPolicy {
    TargetPolicy { allow_http: true, allow_private_networks: true, own_listeners: Vec::new() }
}

/// Returns the policy that is the default, with plain HTTP allowed.
pub(crate) fn public() -> TargetPolicy {
    TargetPolicy { allow_http: true, ..TargetPolicy::default() }
}

/// A client whose look-ups are answered by a test.
pub(crate) fn client(policy: TargetPolicy, request_timeout: Duration, answers: &Arc<Answers>) -> Client {
    let settings = ClientSettings { policy, request_timeout, authorities: Authorities::Only(Vec::new()) };
    Client::new(settings, Arc::clone(answers) as Arc<dyn Resolver>)
}

/// A client for literal addresses of this host.
pub(crate) fn local_client(request_timeout: Duration) -> Client {
    client(local(), request_timeout, &Answers::none())
}

pub(crate) fn deliver(client: &Client, url: &str) -> Attempt {
    with_delivery(url, |delivery| client.deliver(delivery))
}

pub(crate) fn probe(client: &Client, url: &str) -> Probe {
    with_delivery(url, |delivery| client.probe(delivery))
}

fn with_delivery<R>(url: &str, send: impl FnOnce(&Delivery<'_>) -> R) -> R {
    let (target, secret) =
        (TargetUrl::parse(url).expect("a URL"), SigningSecret::parse(SECRET).expect("a secret"));
    send(&Delivery {
        target: &target,
        event_id: EVENT_ID,
        event_type: "object.created",
        event_time: "2026-01-01T00:00:00.000Z",
        attempted_at: Timestamp(1_767_225_600_999),
        body: BODY,
        secrets: SigningSecrets { current: &secret, previous: None },
    })
}

/// Asserts that an attempt failed at something, and returns what it says.
#[track_caller]
pub(crate) fn failed(attempt: &Attempt, kind: FailureKind) -> &str {
    let failure = attempt.error.as_ref().unwrap_or_else(|| panic!("succeeded: {attempt:?}"));
    assert_eq!(failure.kind, kind, "{}", failure.text);
    assert!(failure.text.len() <= 256);
    &failure.text
}

#[track_caller]
pub(crate) fn succeeded(attempt: &Attempt) {
    assert!(
        attempt.succeeded() && attempt.http_status.is_some_and(|status| status / 100 == 2),
        "{attempt:?}"
    );
}

/// A resolver that gives the answers of a test, one after the other. The last one is given from then on.
#[derive(Default)]
pub(crate) struct Answers {
    answers: Mutex<VecDeque<Result<Vec<IpAddr>, LookupError>>>,
    asked: Mutex<Vec<String>>,
}

impl Answers {
    /// For tests without host names: every look-up is an error.
    pub(crate) fn none() -> Arc<Self> {
        Self::errors([LookupError::Failed("no look-up was expected".to_owned())])
    }

    pub(crate) fn addresses<const N: usize>(answers: [&[&str]; N]) -> Arc<Self> {
        let parsed =
            answers.map(|list| Ok(list.iter().map(|text| text.parse().expect("an address")).collect()));
        Arc::new(Self { answers: Mutex::new(parsed.into()), ..Self::default() })
    }

    pub(crate) fn errors<const N: usize>(errors: [LookupError; N]) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(errors.map(Err).into()), ..Self::default() })
    }

    /// The names that were looked up.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

impl Resolver for Answers {
    fn resolve(&self, name: &str, _: Duration) -> Result<Vec<IpAddr>, LookupError> {
        self.asked.lock().push(name.to_owned());
        let mut answers = self.answers.lock();
        let answer = answers.front().cloned().expect("an answer");
        if answers.len() > 1 {
            answers.pop_front();
        }
        answer
    }
}
