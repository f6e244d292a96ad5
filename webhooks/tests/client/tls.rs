//! TLS: certificates are checked against the host of the URL.

use super::{Answers, LONG, OK, SHORT, client, deliver, failed, local, probe, succeeded};
use crate::receiver::Receiver;
use cairn_trust::Authorities;
use cairn_webhooks::client::{Client, ClientSettings, FailureKind};
use cairn_webhooks::destination::Resolver;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::TcpListener;
use std::sync::Arc;

/// A certificate authority of a test.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: Vec<u8>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().expect("a key");
        let der = params.self_signed(&key).expect("a certificate").der().to_vec();
        Self { issuer: Issuer::new(params, key), der }
    }

    /// The configuration of a server with a certificate for a name, which is valid until the end of a year.
    fn server(&self, name: &str, last_year: i32) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(last_year, 12, 31);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a pair");
        Arc::new(config)
    }

    /// A client that trusts this authority, for names that lead to this host.
    fn client(&self) -> Client {
        let settings = ClientSettings {
            policy: local(),
            request_timeout: LONG,
            authorities: Authorities::Only(vec![self.der.clone()]),
        };
        let answers: Arc<dyn Resolver> = Answers::addresses([&["127.0.0.1"]]);
        Client::new(settings, answers)
    }
}

fn https(receiver: &Receiver, name: &str) -> String {
    format!("https://{name}:{}/hook", receiver.port)
}

fn answering(config: Arc<ServerConfig>) -> Receiver {
    Receiver::with_tls(config, |_, connection| {
        connection.write_all(OK.as_bytes()).and_then(|()| connection.flush()).is_ok()
    })
}

#[test]
fn deliveries_over_tls_share_a_connection_and_the_dot_is_not_part_of_the_name() {
    let authority = Authority::new();
    let receiver = answering(authority.server("receiver.test", 2099));
    let client = authority.client();
    for name in ["receiver.test", "RECEIVER.test.", "receiver.test"] {
        succeeded(&deliver(&client, &https(&receiver, name)));
    }
    assert_eq!((receiver.connections(), receiver.requests().len()), (1, 3));
    assert_eq!(receiver.requests()[1].header("host"), format!("receiver.test:{}", receiver.port));
}

#[test]
fn certificates_that_are_not_valid_for_the_host_are_refused() {
    let authority = Authority::new();
    let client = authority.client();
    for (config, reason) in [
        (authority.server("other.test", 2099), "not valid for name"),
        (authority.server("receiver.test", 2001), "expired"),
        // Another authority that calls itself the same.
        (Authority::new().server("receiver.test", 2099), "BadSignature"),
    ] {
        let receiver = answering(config);
        let attempt = deliver(&client, &https(&receiver, "receiver.test"));
        let text = failed(&attempt, FailureKind::Tls);
        assert!(text.starts_with("the TLS handshake failed") && text.contains(reason), "{text}");
        assert_eq!(receiver.requests().len(), 0, "nothing of the event was sent");
    }
}

/// The certificate of one address must be for that address.
#[test]
fn literal_addresses_need_a_certificate_for_the_address() {
    let authority = Authority::new();
    let client = authority.client();
    let receiver = answering(authority.server("127.0.0.1", 2099));
    succeeded(&deliver(&client, &https(&receiver, "127.0.0.1")));
    succeeded(&deliver(&client, &https(&receiver, "2130706433")));
    failed(&deliver(&client, &https(&receiver, "127.0.0.2")), FailureKind::Tls);
}

#[test]
fn a_receiver_without_tls_is_not_delivered_to_over_https() {
    let receiver = Receiver::answering(OK);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let plain = std::thread::spawn(move || {
        use std::io::Write;
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("written");
        stream
    });
    let client = Authority::new().client();
    failed(&deliver(&client, &format!("https://receiver.test:{port}/")), FailureKind::Tls);
    drop(plain.join());
    assert_eq!(receiver.requests().len(), 0);
}

#[test]
fn a_handshake_that_stalls_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let client = client(local(), SHORT, &Answers::addresses([&["127.0.0.1"]]));
    let attempt = deliver(&client, &format!("https://receiver.test:{port}/"));
    assert_eq!(
        failed(&attempt, FailureKind::Timeout),
        "the time limit of 5 s passed during the TLS handshake"
    );
    assert!(attempt.duration >= SHORT);
}

#[test]
fn the_handshake_is_a_step_of_the_report() {
    let authority = Authority::new();
    let receiver = answering(authority.server("receiver.test", 2099));
    let client = authority.client();
    let report = probe(&client, &https(&receiver, "receiver.test"));
    let steps: Vec<_> = report.steps.iter().map(|step| (step.step.name(), step.ok)).collect();
    assert_eq!(steps, ["resolve", "check", "connect", "tls", "response"].map(|name| (name, true)));
    assert_eq!(report.steps[3].detail, "the certificate is valid for receiver.test");

    let report = probe(&client, &https(&receiver, "other.test"));
    let last = report.steps.last().expect("a step");
    assert!(last.step.name() == "tls" && !last.ok && last.detail.contains("not valid for name"), "{last:?}");
}
