//! Deadlines, limits, the drain, and the spread over executors, over real sockets. Deadlines are set short; no test
//! waits for the passing of time itself, only for what it brings.

mod common;

use std::collections::HashMap;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use cairn_net::Limits;
use common::{Client, PATIENCE, TestServer};

const SHORT: Duration = Duration::from_millis(300);

#[test]
fn a_head_that_does_not_end_is_answered_with_408() {
    let server = TestServer::with(Limits { head_timeout: SHORT, ..Limits::default() }, 1);
    let mut client = server.connect();
    let began = Instant::now();
    let mut feeder = client.stream.try_clone().unwrap();
    std::thread::spawn(move || {
        // A byte now and then must not buy time. Ends when the server has closed.
        while std::io::Write::write_all(&mut feeder, b"a").is_ok() && began.elapsed() < PATIENCE / 2 {
            std::thread::park_timeout(Duration::from_millis(20));
        }
    });
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("connection")), (408, Some("close")));
    assert!(began.elapsed() >= SHORT && began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let server = TestServer::with(Limits { idle_timeout: SHORT, ..Limits::default() }, 1);
    let mut fresh = server.connect();
    let mut used = server.connect();
    assert_eq!(used.get("/x").status, 200);
    assert!(fresh.rest().is_empty() && used.rest().is_empty());
}

#[test]
fn a_body_that_stalls_is_refused() {
    let server = TestServer::with(Limits { body_stall_timeout: SHORT, ..Limits::default() }, 1);
    let mut client = server.connect();
    client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf");
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("connection")), (408, Some("close")));
}

#[test]
fn a_client_that_stops_reading_is_cut_off() {
    let server = TestServer::with(Limits { write_stall_timeout: SHORT, ..Limits::default() }, 1);
    let mut client = server.connect();
    client.send("GET /stream?1000000000 HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(server.exchanges(1)[0].ends_with("DeadlinePassed"));
    assert!(client.rest().len() < 1_000_000_000);
}

#[test]
fn a_service_at_work_has_no_deadline() {
    let limits =
        Limits { head_timeout: SHORT, idle_timeout: SHORT, body_stall_timeout: SHORT, ..Limits::default() };
    let server = TestServer::with(limits, 1);
    assert_eq!(server.connect().get("/slow?1500").text(), "slow");
}

#[test]
fn connections_past_the_limit_get_503() {
    let server = TestServer::with(Limits { connections_max: 3, ..Limits::default() }, 2);
    let mut clients: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/x").status, 200);
    }
    let mut over = server.connect();
    assert_eq!(over.answer().status, 503);
    drop(clients);
    let until = Instant::now() + PATIENCE;
    while server.connect().get("/x").status != 200 {
        assert!(Instant::now() < until, "places are not given back");
    }
}

/// A connection past the limit was closed as soon as its 503 was sent, with its request unread or still on the way:
/// closing then resets the connection, and a client in the middle of its upload saw a broken pipe instead of the 503.
#[test]
fn a_client_past_the_limit_can_finish_sending_and_reads_why() {
    let server = TestServer::with(Limits { connections_max: 1, ..Limits::default() }, 1);
    let mut within = server.connect();
    assert_eq!(within.get("/x").status, 200);
    let mut over = server.connect();
    assert!(server.exchanges(2)[1].starts_with("- 503 "), "it is refused before it sends");
    over.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
    for _ in 0..100 {
        over.send(vec![b'x'; 10_000]);
    }
    assert_eq!(over.answer().status, 503);
    assert!(over.is_closed());
    drop(within);
}

/// An idle timeout that passed in the moment in which a request arrived was left standing: the request was served, and
/// the first wait for its body answered 408 at once.
#[test]
fn an_idle_timeout_that_meets_a_request_is_not_the_timeout_of_its_body() {
    let server = TestServer::with(Limits { idle_timeout: SHORT, ..Limits::default() }, 1);
    let mut blocking = server.connect();
    let mut idle: Vec<Client> = (0..8).map(|_| server.connect()).collect();
    for client in &mut idle {
        assert_eq!(client.get("/x").status, 200);
    }
    blocking.send("GET /block?1000 HTTP/1.1\r\nHost: h\r\n\r\n");
    server.wait_for_calls(9);
    for client in &mut idle {
        client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n");
    }
    assert_eq!(blocking.answer().text(), "blocked");
    for client in &mut idle {
        client.send("hello");
        assert_eq!(client.answer().text(), "hello");
    }
}

#[test]
fn few_connections_are_spread_evenly() {
    let server = TestServer::with(Limits::default(), 2);
    let mut clients: Vec<Client> = (0..16).map(|_| server.connect()).collect();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for client in &mut clients {
        *counts.entry(client.get("/executor").text().to_owned()).or_default() += 1;
    }
    assert!(counts.values().all(|count| (7..=9).contains(count)), "{counts:?}");
}

#[test]
fn a_drain_lets_requests_finish_and_closes_the_rest() {
    let mut server = TestServer::with(Limits::default(), 2);
    let mut idle: Vec<Client> = (0..8).map(|_| server.connect()).collect();
    for client in &mut idle {
        assert_eq!(client.get("/x").status, 200);
    }
    let mut busy = server.connect();
    busy.send("GET /slow?1500 HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut streaming = server.connect();
    streaming.send("GET /stream?50000000 HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(streaming.head().status, 200);
    server.wait_for_calls(10);
    server.drain.begin(PATIENCE);
    for client in &mut idle {
        assert!(client.is_closed());
    }
    let answer = busy.answer();
    assert_eq!((answer.text(), answer.header("connection")), ("slow", Some("close")));
    assert_eq!(streaming.rest().len(), 50_000_000);
    drop((busy, streaming));
    server.join();
    assert!(TcpStream::connect(server.address).is_err(), "the port is still open");
}

#[test]
fn the_grace_period_ends_a_drain() {
    let mut server = TestServer::start();
    let mut stuck = server.connect();
    stuck.send("GET /stream?1000000000 HTTP/1.1\r\nHost: h\r\n\r\n");
    stuck.head();
    let mut half = server.connect();
    half.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf");
    let began = Instant::now();
    server.drain.begin(SHORT);
    server.join();
    assert!(began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
}

#[test]
fn a_second_signal_ends_a_drain_at_once() {
    let mut server = TestServer::start();
    let mut stuck = server.connect();
    stuck.send("GET /slow?60000 HTTP/1.1\r\nHost: h\r\n\r\n");
    server.wait_for_calls(1);
    let began = Instant::now();
    server.drain.begin(Duration::from_secs(3600));
    server.drain.abort();
    server.join();
    assert!(began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
}
