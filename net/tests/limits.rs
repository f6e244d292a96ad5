//! Timeouts, limits, the drain and the balance over executors.
//!
//! Timeouts are short. No test sleeps for a fixed time; each waits for the effect of a timeout.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::support::{HttpClient, PATIENCE, TestServer, patient, send_to_lingering};
use cairn_fixtures::Answer;
use cairn_net::Limits;

/// Longer than a request takes on most machines. On a busy one, a test that needs a request in time repeats it.
const SHORT: Duration = Duration::from_secs(1);

/// Sends bytes and reads an answer. `None` if the server has closed the connection.
fn ask(client: &mut HttpClient, bytes: &str) -> Option<Answer> {
    client.stream.write_all(bytes.as_bytes()).ok()?;
    let is_answered = client.stream.peek(&mut [0]).is_ok_and(|count| count > 0);
    is_answered.then(|| client.answer())
}

/// Connects and asks. A connection that was closed before the request was sent, because it was idle, is replaced.
fn answered(server: &TestServer, target: &str) -> (HttpClient, Answer) {
    let until = Instant::now() + PATIENCE;
    loop {
        let mut client = server.connect();
        if let Some(answer) = ask(&mut client, &format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n")) {
            return (client, answer);
        }
        assert!(Instant::now() < until, "every connection is closed without an answer");
    }
}

#[test]
fn an_endless_head_is_answered_with_408() {
    let server = TestServer::with(Limits { head_timeout: SHORT, ..patient() }, 1);
    let mut client = server.connect();
    let mut feeder = client.stream.try_clone().unwrap();
    std::thread::spawn(move || {
        // A byte now and then must not extend the timeout. Ends when the server has closed.
        while feeder.write_all(b"a").is_ok() {
            std::thread::park_timeout(Duration::from_millis(20));
        }
    });
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("connection")), (408, Some("close")));
}

#[test]
fn an_idle_connection_is_closed_without_a_response() {
    let server = TestServer::with(Limits { idle_timeout: SHORT, ..patient() }, 1);
    let mut fresh = server.connect();
    let (mut used, answer) = answered(&server, "/x");
    assert_eq!(answer.status, 200);
    assert!(fresh.rest().is_empty() && used.rest().is_empty());
}

#[test]
fn a_stalled_body_is_answered_with_408() {
    let server = TestServer::with(Limits { body_stall_timeout: SHORT, ..patient() }, 1);
    let mut client = server.connect();
    client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf");
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("connection")), (408, Some("close")));
}

/// Visitors of links need no account. Those who read their responses slowly filled the listener, and signed requests were
/// refused for minutes.
#[test]
fn slow_readers_without_a_signature_leave_room_for_others() {
    const FLOOD: usize = 20;
    const OPEN_MAX: usize = 4;
    let limits = Limits { connections_max: 2 * OPEN_MAX, unsigned_max: OPEN_MAX, ..patient() };
    let server = TestServer::with(limits, 2);
    let visit = "GET /visit?1000000000 HTTP/1.1\r\nHost: h\r\n\r\n";
    let mut visitor = server.connect_from("127.0.0.2");
    visitor.send(visit);
    let mut flood = Vec::new();
    for number in 0..FLOOD {
        let mut slow = server.connect();
        slow.send(visit);
        flood.push(slow);
        server.wait_for_calls(2 + 2 * number);
        assert_eq!(server.connect().get("/x").status, 200, "{number}");
    }
    // The flood has replaced its own: the visitor, who is one of four, still gets what was asked for.
    let mut bytes = vec![0; 64 << 20];
    visitor.stream.read_exact(&mut bytes).expect("the response goes on");
    let ended = FLOOD + 1 - OPEN_MAX;
    let log = server.exchanges(ended + FLOOD);
    assert_eq!(log.iter().filter(|line| line.ends_with("DeadlinePassed")).count(), ended);
    assert_eq!(server.unsigned_ended(), u64::try_from(ended).unwrap());
}

/// The body of an unsigned request that never arrives holds its connection just like a response that is not read.
#[test]
fn unsigned_requests_that_send_slowly_make_room_too() {
    let limits = Limits { unsigned_max: 1, body_stall_timeout: 2 * PATIENCE, ..patient() };
    let server = TestServer::with(limits, 1);
    let mut slow = server.connect();
    slow.send("PUT /visit-echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nx");
    server.wait_for_calls(1);
    assert_eq!(server.connect().get("/visit?10").text().len(), 10);
    let answered = slow.rest();
    assert!(
        answered.is_empty() || answered.starts_with(b"HTTP/1.1 400 "),
        "it ended long before its timeout"
    );
    assert_eq!(server.unsigned_ended(), 1);
}

#[test]
fn a_client_that_stops_reading_is_disconnected() {
    let server = TestServer::with(Limits { write_stall_timeout: SHORT, ..patient() }, 1);
    let mut client = server.connect();
    client.send("GET /stream?1000000000 HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(server.exchanges(1)[0].ends_with("DeadlinePassed"));
    assert!(client.rest().len() < 1_000_000_000);
}

#[test]
fn a_working_service_has_no_timeout() {
    let limits = Limits { head_timeout: SHORT, idle_timeout: SHORT, body_stall_timeout: SHORT, ..patient() };
    let server = TestServer::with(limits, 1);
    assert_eq!(answered(&server, "/slow?1500").1.text(), "slow");
}

#[test]
fn connections_beyond_the_limit_get_503_while_all_others_are_busy() {
    let server = TestServer::with(Limits { connections_max: 3, ..patient() }, 2);
    let mut clients: Vec<HttpClient> = (0..3).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n");
    }
    server.wait_for_calls(3);
    // Each executor learns four times a second that no connection is idle on the other.
    let until = Instant::now() + PATIENCE;
    while server.connect().get("/x").status != 503 {
        assert!(Instant::now() < until, "the limit does not hold");
    }
    for client in &mut clients {
        client.send("body");
        assert_eq!(client.answer().text(), "body", "a request in progress was ended");
    }
    drop(clients);
    // Until each executor has seen the ends of its connections.
    let until = Instant::now() + PATIENCE;
    while server.connect().get("/x").status != 200 {
        assert!(Instant::now() < until, "idle and closed connections are in the way");
    }
}

/// Silent connections up to the limit locked everybody out until their idle timeout had passed, and could be renewed.
///
/// An executor knows which connection of another one has been idle longest when that one has said so, which it does four
/// times a second. On a busy machine it was later than the three quarters of a second for which this test opened
/// connections, and the first ones stayed open.
#[test]
fn a_new_connection_takes_the_place_of_the_one_idle_longest() {
    const CONNECTIONS: usize = 8;
    for executors in [1, 2] {
        let limits =
            Limits { connections_max: CONNECTIONS, first_request_timeout: 2 * PATIENCE, ..patient() };
        let server = TestServer::with(limits, executors);
        let mut busy = server.connect();
        busy.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n");
        server.wait_for_calls(1);
        let mut silent: VecDeque<HttpClient> = (1..CONNECTIONS).map(|_| server.connect()).collect();
        server.wait_for_connections(CONNECTIONS);
        let until = Instant::now() + PATIENCE;
        while silent.len() < 4 * CONNECTIONS || silent.iter().take(CONNECTIONS - 1).any(is_open) {
            assert!(Instant::now() < until, "those that were idle longest stay open");
            let mut client = server.connect();
            assert_eq!(client.get("/x").status, 200, "locked out");
            server.wait_for_connections(CONNECTIONS);
            silent.push_back(client);
        }
        assert_eq!(silent.back_mut().expect("the last one").get("/x").status, 200);
        busy.send("body");
        assert_eq!(busy.answer().text(), "body", "a request in progress was ended");
    }
}

/// Returns whether the server has not closed a connection on which nothing is received.
fn is_open(client: &HttpClient) -> bool {
    client.stream.set_nonblocking(true).expect("sets");
    let found = client.stream.peek(&mut [0]);
    client.stream.set_nonblocking(false).expect("sets");
    found.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn a_new_connection_has_less_time_for_its_first_request() {
    let server = TestServer::with(Limits { first_request_timeout: SHORT, ..patient() }, 1);
    let (mut used, answer) = answered(&server, "/x");
    assert_eq!(answer.status, 200);
    let mut silent = server.connect();
    assert!(silent.rest().is_empty());
    assert_eq!(used.get("/x").status, 200, "only the first request has this limit");
}

#[test]
fn connections_of_one_client_are_limited() {
    let limits = Limits { connections_per_client_max: Some(2), ..patient() };
    let server = TestServer::with(limits, 2);
    let mut clients: Vec<HttpClient> = (0..2).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/x").status, 200);
    }
    assert_eq!(
        server.connect().answer().status,
        503,
        "idle connections of the same client are not closed for it"
    );
    let mut elsewhere = server.connect_from("127.0.0.2");
    assert_eq!(elsewhere.get("/x").status, 200);
    clients.pop();
    let until = Instant::now() + PATIENCE;
    while server.connect().get("/x").status != 200 {
        assert!(Instant::now() < until, "closed connections are still counted");
    }
}

/// A connection beyond the limit was closed as soon as its 503 was sent, with its request unread or still on the way.
/// That resets the connection, and a client in the middle of its upload saw a broken pipe instead of the 503.
#[test]
fn a_client_beyond_the_limit_can_finish_sending_and_reads_503() {
    let server = TestServer::with(Limits { connections_max: 1, ..patient() }, 1);
    let mut allowed = server.connect();
    allowed.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n");
    server.wait_for_calls(1);
    let since = Instant::now();
    let mut over = server.connect();
    assert!(server.exchanges(1)[0].starts_with("- 503 "), "it is rejected before it sends");
    send_to_lingering(&mut over, b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n", since);
    for _ in 0..100 {
        send_to_lingering(&mut over, &[b'x'; 10_000], since);
    }
    assert_eq!(over.answer().status, 503);
    assert!(over.is_closed());
    drop(allowed);
}

/// An idle timeout that passed in the moment in which a request arrived was not cleared: the request was served, and
/// the first wait for its body answered 408 at once.
#[test]
fn an_idle_timeout_does_not_end_the_body_of_a_new_request() {
    let server = TestServer::with(Limits { idle_timeout: SHORT, ..patient() }, 1);
    let until = Instant::now() + PATIENCE;
    while send_while_blocked(&server).is_none() {
        assert!(Instant::now() < until, "no connection stays open");
    }
}

/// Sends requests while the executor is blocked for longer than the idle timeout, and then their bodies. `None` if the requests
/// were not there in time, because the machine is busy.
fn send_while_blocked(server: &TestServer) -> Option<()> {
    let mut idle: Vec<HttpClient> = (0..8).map(|_| answered(server, "/x").0).collect();
    let calls = server.begun.load(Ordering::Relaxed);
    let mut blocking = server.connect();
    blocking.stream.write_all(b"GET /block?3000 HTTP/1.1\r\nHost: h\r\n\r\n").ok()?;
    while server.begun.load(Ordering::Relaxed) == calls {
        is_open(&blocking).then_some(())?;
    }
    for client in &mut idle {
        client.stream.write_all(b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n").ok()?;
    }
    is_open(&blocking).then_some(())?;
    assert_eq!(blocking.answer().text(), "blocked");
    for client in &mut idle {
        assert_eq!(ask(client, "hello")?.text(), "hello");
    }
    Some(())
}

#[test]
fn few_connections_are_balanced_over_executors() {
    let server = TestServer::with(patient(), 2);
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut clients: Vec<HttpClient> = Vec::new();
    let mut wanted = 16;
    // An executor that has not begun yet takes no connection from the other one. What it missed is made up for later.
    while clients.len() < wanted {
        let mut client = server.connect();
        *counts.entry(client.get("/executor").text().to_owned()).or_default() += 1;
        clients.push(client);
        if counts.len() < 2 {
            wanted = wanted.max(2 * clients.len() + 16);
        }
    }
    let (least, most) = (counts.values().min(), counts.values().max());
    let (least, most) = (least.expect("both have some"), most.expect("both have some"));
    assert!(counts.len() == 2 && *most <= least + least / 8 + 1, "{counts:?}");
}

#[test]
fn a_drain_finishes_requests_and_closes_idle_connections() {
    let mut server = TestServer::with(patient(), 2);
    let mut idle: Vec<HttpClient> = (0..8).map(|_| server.connect()).collect();
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
fn a_drain_ends_with_its_grace_period() {
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
