//! Requests on both planes, the drain, the second signal, and the log.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::server::{PATIENCE, Server, Variables, production};

/// Sends one request on a new connection and reads the whole response.
fn ask(address: &str, request: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

#[test]
fn each_plane_responds_on_its_own_port() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&["serve"], &production(folder.path()));
    assert!(ask(&server.management, &get("/health")).ends_with("{\"status\":\"ok\"}"));
    assert!(ask(&server.management, &get("/ready")).starts_with("HTTP/1.1 200 "));
    assert!(ask(&server.management, &get("/api/v1/system/info")).starts_with("HTTP/1.1 401 "));
    let s3 = ask(&server.data, &get("/health"));
    assert!(s3.starts_with("HTTP/1.1 403 ") && s3.contains("<Code>AccessDenied</Code>"), "{s3}");

    let line = server.logged(|line| line["message"] == "request" && line["plane"] == "data");
    assert_eq!((&line["status"], &line["error_code"]), (&403.into(), &"AccessDenied".into()));
    assert!(line["latency_ms"].is_f64() && line["route"] == "/{bucket}", "{line}");
    let id = line["request_id"].as_str().unwrap();
    assert!(s3.contains(&format!("x-amz-request-id: {id}")), "the same id in the header and the log");
    assert_eq!(server.stop(), Some(0));
}

/// An incomplete request: its head without the blank line.
const HALF_HEAD: &[u8] = b"GET /health HTTP/1.1\r\nHost: localhost\r\n";

/// The variables of a server that waits long for the rest of a head, with as long a grace period. It has one executor, so
/// that a response on one connection comes after what was sent before on another one.
fn waiting_for_heads(data_dir: &Path) -> Variables {
    let mut variables = production(data_dir);
    for (name, value) in [
        ("SERVICE_SERVER_HEAD_TIMEOUT_SECONDS", "300"),
        ("SERVICE_SERVER_SHUTDOWN_GRACE_PERIOD_SECONDS", "300"),
        ("SERVICE_SERVER_EXECUTORS", "1"),
    ] {
        variables.insert(name, value.to_owned());
    }
    variables
}

#[test]
fn a_drain_finishes_requests_and_closes_idle_connections() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&["serve"], &waiting_for_heads(folder.path()));
    let mut idle = connect(&server.management);
    idle.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut first_byte = [0];
    idle.read_exact(&mut first_byte).unwrap();
    let mut in_flight = connect(&server.management);
    in_flight.write_all(HALF_HEAD).unwrap();
    // After a later response on another connection, these bytes have arrived, as far as a client can tell.
    ask(&server.management, &get("/health"));

    server.signal(Signal::TERM);
    server.logged(|line| line["message"] == "draining");
    let mut rest = String::new();
    idle.read_to_string(&mut rest).unwrap();
    in_flight.write_all(b"\r\n").unwrap();
    let mut answer = String::new();
    in_flight.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("Connection: close"), "{answer}");
    assert_eq!(server.wait(), Some(0));
}

/// Both planes shared one drain, so the management port was closed as soon as it began: no client could see that `/ready` was
/// 503, and monitors of `/health` mistook a drain for a crash.
#[test]
fn the_management_plane_responds_until_the_data_plane_has_finished() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&["serve"], &waiting_for_heads(folder.path()));
    let mut in_flight = connect(&server.data);
    in_flight.write_all(HALF_HEAD).unwrap();
    ask(&server.data, &get("/bucket"));
    assert!(ask(&server.management, &get("/ready")).starts_with("HTTP/1.1 200 "));

    server.signal(Signal::TERM);
    server.logged(|line| line["message"] == "draining");
    let until = Instant::now() + PATIENCE;
    while TcpStream::connect(&server.data).is_ok() {
        assert!(Instant::now() < until, "the data port stays open");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let ready = ask(&server.management, &get("/ready"));
    assert!(ready.starts_with("HTTP/1.1 503 ") && ready.contains("\"listeners\":\"not_ready\""), "{ready}");
    assert!(ask(&server.management, &get("/health")).starts_with("HTTP/1.1 200 "));

    in_flight.write_all(b"\r\n").unwrap();
    let mut answer = String::new();
    in_flight.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("Connection: close"), "{answer}");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn unfinished_requests_delay_the_end_by_the_grace_period() {
    let folder = tempfile::tempdir().unwrap();
    let mut variables = waiting_for_heads(folder.path());
    variables.insert("SERVICE_SERVER_SHUTDOWN_GRACE_PERIOD_SECONDS", "2".to_owned());
    let mut server = Server::start(&["serve"], &variables);
    let (mut data, mut management) = (connect(&server.data), connect(&server.management));
    for (stream, address) in [(&mut data, &server.data), (&mut management, &server.management)] {
        stream.write_all(HALF_HEAD).unwrap();
        ask(address, &get("/health"));
    }
    let began = Instant::now();
    server.signal(Signal::TERM);
    server.logged(|line| line["message"] == "draining");
    assert_eq!(server.wait(), Some(0));
    // Waiting for the heads would take 300 seconds.
    assert!(began.elapsed() >= Duration::from_secs(2) && began.elapsed() < Duration::from_secs(200));
}

#[test]
fn the_second_signal_ends_the_process_immediately() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&["serve"], &waiting_for_heads(folder.path()));
    let mut stream = connect(&server.management);
    stream.write_all(HALF_HEAD).unwrap();
    ask(&server.management, &get("/health"));
    server.signal(Signal::INT);
    server.logged(|line| line["message"] == "draining");
    let code = server.signal_until_it_ends();
    assert_eq!(code, Some(128 + 15), "requests in flight and the grace period do not delay it");
}

#[test]
fn a_store_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&["serve"], &production(folder.path()));
    server.signal(Signal::KILL);
    assert_eq!(server.wait(), None);
    assert_eq!(Server::start(&["serve"], &production(folder.path())).stop(), Some(0));
}

#[test]
fn dev_starts_again_with_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let mut variables = production(folder.path());
    for name in [
        "SERVICE_CREDENTIAL_MASTER_KEY",
        "SERVICE_ROOT_ACCESS_KEY",
        "SERVICE_ROOT_SECRET_KEY",
        "SERVICE_MANAGEMENT_SYSTEM_TOKEN",
    ] {
        variables.remove(name);
    }
    assert_eq!(Server::start(&["serve", "--dev"], &variables).stop(), Some(0));
    let secrets = folder.path().join("dev-secrets.toml");
    assert_eq!(std::fs::metadata(&secrets).unwrap().permissions().mode() & 0o777, 0o600);
    let before = std::fs::read_to_string(&secrets).unwrap();
    assert_eq!(Server::start(&["serve", "--dev"], &variables).stop(), Some(0));
    assert_eq!(std::fs::read_to_string(&secrets).unwrap(), before);
}
