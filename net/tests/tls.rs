//! A port with TLS, as clients see it.
//!
//! The tests cover both versions, plain HTTP, invalid TLS, replaced certificates, resumed sessions and the ends of
//! connections. The client is rustls on a blocking socket.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use crate::support::{HttpClient, PATIENCE, TestServer, patient, pattern};
use cairn_net::{CertificateAndKey, HandshakeThreads, Limits, Tls};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};

type TlsClient = HttpClient<StreamOwned<ClientConnection, TcpStream>>;

const BOTH: [&rustls::SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// Makes a self-signed certificate for localhost: the certificate for a client, and with its key for a server.
fn make_certificate() -> (CertificateDer<'static>, CertificateAndKey) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = made.signing_key.serialize_pem();
    let with_key = CertificateAndKey::from_pem(made.cert.pem().as_bytes(), key.as_bytes()).unwrap();
    (made.cert.der().clone(), with_key)
}

/// Starts a server with TLS. Also returns the handle to its certificate, and that certificate.
fn serve(limits: Limits) -> (TestServer, Tls, CertificateDer<'static>) {
    let (certificate, with_key) = make_certificate();
    let tls = Tls::new(&with_key, &HandshakeThreads::start(1).unwrap()).unwrap();
    (TestServer::with_tls(limits, &tls), tls, certificate)
}

fn client_config(
    certificate: &CertificateDer<'static>,
    version: &'static rustls::SupportedProtocolVersion,
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

fn try_connect(server: &TestServer, config: &Arc<ClientConfig>) -> std::io::Result<TlsClient> {
    let mut socket = server.connect().stream;
    let mut connection = ClientConnection::new(Arc::clone(config), "localhost".try_into().unwrap()).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    Ok(HttpClient::over(StreamOwned::new(connection, socket)))
}

fn connect(server: &TestServer, config: &Arc<ClientConfig>) -> TlsClient {
    try_connect(server, config).unwrap()
}

#[test]
fn requests_and_bodies_of_all_sizes_pass_unchanged() {
    let (server, _, certificate) = serve(patient());
    for version in BOTH {
        let mut client = connect(&server, &Arc::new(client_config(&certificate, version)));
        assert_eq!(client.get("/a").text(), "/a");
        for length in [0_usize, 1, 16_383, 16_384, 16_385, 70_000, 3_000_000] {
            let body: Vec<u8> = (0..length as u64).map(pattern).collect();
            client.send(format!("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n"));
            assert!(client.send(&body).answer().body == body, "{length} bytes");
            let streamed = client.get(&format!("/stream?{length}"));
            assert!(streamed.body == body, "{length} bytes streamed");
        }
        // Many requests in one record, and one request in many records.
        client.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\nGET /3 HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!([1, 2, 3].map(|_| client.answer().body), [&b"/1"[..], b"/2", b"/3"]);
        for byte in b"GET /slowly HTTP/1.1\r\nHost: h\r\n\r\n" {
            client.send([*byte]);
        }
        assert_eq!(client.answer().text(), "/slowly");
    }
}

#[test]
fn a_client_that_pauses_reading_gets_every_byte() {
    let (server, _, certificate) = serve(patient());
    let mut client = connect(&server, &Arc::new(client_config(&certificate, &TLS13)));
    client.send("GET /stream?20000000 HTTP/1.1\r\nHost: h\r\n\r\n");
    // By the time the server has answered these, it has filled all buffers of the first connection.
    let mut other = connect(&server, &Arc::new(client_config(&certificate, &TLS13)));
    for _ in 0..50 {
        assert_eq!(other.get("/other").text(), "/other");
    }
    let answer = client.answer();
    assert!(answer.body.iter().copied().eq((0..20_000_000).map(pattern)));
}

#[test]
fn plain_http_gets_a_400_in_plain_http() {
    let (server, _, _) = serve(patient());
    for request in
        ["GET / HTTP/1.1\r\nHost: h\r\n\r\n", "PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"]
    {
        let mut client = server.connect();
        let answer = client.send(request).answer();
        assert_eq!((answer.status, answer.text()), (400, "PlainHttp"));
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(client.is_closed());
    }
}

#[test]
fn invalid_tls_ends_only_its_own_connection() {
    let (server, _, certificate) = serve(patient());
    for invalid in [
        &b"\x00\x00\x00"[..],
        b"ssh-2.0\r\n",
        b"\x80\x2e\x01\x00\x02",
        b"\x16\x03\x01\x00\x05\xff\xff\xff\xff\xff",
        b"\x16\x03\x01\xff\xff\x01\x00",
        b"\x16\x03\x01\x00\x00",
        b"\x15\x03\x01\x00\x02\x01\x00",
    ] {
        let mut client = server.connect();
        client.send(invalid);
        let mut answer = Vec::new();
        // An alert or nothing, then the end.
        client.stream.read_to_end(&mut answer).unwrap();
        assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");
    }
    let mut client = connect(&server, &Arc::new(client_config(&certificate, &TLS13)));
    assert_eq!(client.get("/still").text(), "/still");
}

#[test]
fn only_http_1_1_is_negotiated() {
    let (server, _, certificate) = serve(patient());
    let offering = |protocols: &[&[u8]]| {
        let mut config = client_config(&certificate, &TLS13);
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        try_connect(&server, &Arc::new(config))
    };
    let client = offering(&[b"h2", b"http/1.1"]).unwrap();
    assert_eq!(client.stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    let refused = offering(&[b"h2"]).err().unwrap();
    assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");
}

#[test]
fn sessions_are_resumed_until_the_certificate_changes() {
    let (server, tls, certificate) = serve(patient());
    for version in BOTH {
        let config = Arc::new(client_config(&certificate, version));
        let kind = || {
            let mut client = connect(&server, &config);
            // The ticket comes with the first response.
            assert_eq!(client.get("/").status, 200);
            client.stream.conn.handshake_kind()
        };
        assert_eq!(kind(), Some(HandshakeKind::Full));
        assert_eq!(kind(), Some(HandshakeKind::Resumed));
    }
    let config = Arc::new(client_config(&certificate, &TLS13));
    assert_eq!(connect(&server, &config).get("/").status, 200);
    let (_, other) = make_certificate();
    tls.replace(&other).unwrap();
    assert!(
        try_connect(&server, &config).is_err(),
        "an old session must not be resumed under a new certificate"
    );
}

#[test]
fn open_connections_survive_a_new_certificate() {
    let (server, tls, certificate) = serve(patient());
    let old = Arc::new(client_config(&certificate, &TLS13));
    let mut open = connect(&server, &old);
    assert_eq!(open.get("/before").text(), "/before");
    let (new_certificate, with_key) = make_certificate();
    tls.replace(&with_key).unwrap();
    assert_eq!(open.get("/after").text(), "/after");
    assert!(try_connect(&server, &old).is_err());
    let mut fresh = connect(&server, &Arc::new(client_config(&new_certificate, &TLS13)));
    assert_eq!(fresh.get("/new").text(), "/new");
}

#[test]
fn a_close_notify_ends_a_complete_response() {
    let (server, _, certificate) = serve(patient());
    for version in BOTH {
        let mut client = connect(&server, &Arc::new(client_config(&certificate, version)));
        client.send("GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        assert_eq!(client.answer().text(), "/x");
        // Without a close_notify this would be an error.
        assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
    }
}

/// Every end of a connection sent close_notify, also after a truncated response. One without a length then looked
/// complete.
#[test]
fn a_truncated_response_has_no_close_notify() {
    let (server, _, certificate) = serve(patient());
    for version in BOTH {
        let mut client = connect(&server, &Arc::new(client_config(&certificate, version)));
        client.send("GET /broken-chunks HTTP/1.0\r\nHost: h\r\n\r\n");
        let mut answer = Vec::new();
        let error = client.stream.read_to_end(&mut answer).unwrap_err();
        assert!(answer.len() > 1000, "the bytes before the failure arrive");
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn a_modified_record_ends_the_connection() {
    let (server, _, certificate) = serve(patient());
    let mut client = connect(&server, &Arc::new(client_config(&certificate, &TLS13)));
    client.stream.conn.writer().write_all(b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let mut record = Vec::new();
    while client.stream.conn.wants_write() {
        client.stream.conn.write_tls(&mut record).unwrap();
    }
    let last = record.len() - 1;
    record[last] ^= 1;
    client.stream.sock.write_all(&record).unwrap();
    assert!(client.stream.read(&mut [0]).is_err(), "an alert");
    assert!(!server.log.lock().iter().any(|line| line.starts_with("/x")));
}

#[test]
fn a_stalled_handshake_is_ended() {
    let limits = Limits { head_timeout: Duration::from_millis(300), ..patient() };
    let (server, _, _) = serve(limits);
    for begun in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01"] {
        let mut client = server.connect();
        // On a busy machine it ended already, and what is sent then resets it.
        let _ = client.stream.write_all(begun);
        assert!(client.rest().is_empty());
    }
}

#[test]
fn a_request_whose_client_closed_is_cancelled() {
    let (server, _, certificate) = serve(patient());
    let mut client = connect(&server, &Arc::new(client_config(&certificate, &TLS13)));
    client.send("GET /cancelled HTTP/1.1\r\nHost: h\r\n\r\n");
    server.wait_for_calls(1);
    client.stream.conn.send_close_notify();
    client.stream.flush().unwrap();
    client.stream.sock.shutdown(Shutdown::Write).unwrap();
    assert!(server.exchanges(1)[0].starts_with("/cancelled 200"));
}

#[test]
fn a_drain_ends_idle_sessions_with_close_notify() {
    let (mut server, _, certificate) = serve(patient());
    let mut client = connect(&server, &Arc::new(client_config(&certificate, &TLS13)));
    assert_eq!(client.get("/x").status, 200);
    let silent = server.connect();
    server.drain.begin(PATIENCE);
    assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
    server.join();
    drop(silent);
}
