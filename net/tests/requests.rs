//! Requests and responses: order, framing, bodies in both directions, and the effect of faults on a connection.

use std::time::Instant;

use crate::support::{TestServer, pattern, send_to_lingering};

#[test]
fn a_connection_is_kept_for_many_requests() {
    let server = TestServer::start();
    let mut client = server.connect();
    for round in 0..100 {
        let answer = client.get(&format!("/a/{round}"));
        assert_eq!((answer.status, answer.text()), (200, format!("/a/{round}").as_str()));
        assert!(answer.header("date").is_some_and(|date| date.ends_with(" GMT")));
        assert_eq!(answer.header("connection"), None);
    }
    drop(client);
    assert_eq!(server.exchanges(100)[99], "/a/99 200 in=0 out=5 Complete");
}

#[test]
fn request_ids_differ() {
    let server = TestServer::start();
    let mut client = server.connect();
    let ids: std::collections::HashSet<String> =
        (0..50).map(|_| client.get("/").header("x-request-id").unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 50);
    assert!(ids.iter().all(|id| id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = TestServer::start();
    let mut client = server.connect();
    let mut requests = Vec::new();
    for round in 0..200 {
        let body = "x".repeat(round);
        requests.extend_from_slice(
            format!("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: {round}\r\n\r\n{body}").as_bytes(),
        );
        requests.extend_from_slice(format!("GET /p/{round} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
    }
    let mut writer = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &requests).unwrap());
    for round in 0..200 {
        assert_eq!(client.answer().body.len(), round);
        assert_eq!(client.answer().text(), format!("/p/{round}"));
    }
    sending.join().unwrap();
}

#[test]
fn a_request_that_arrives_byte_by_byte_is_answered() {
    let server = TestServer::start();
    let mut client = server.connect();
    for byte in
        b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhelloGET /x HTTP/1.1\r\nHost: h\r\n\r\n"
    {
        client.send([*byte]);
    }
    assert_eq!(client.answer().text(), "hello");
    assert_eq!(client.answer().text(), "/x");
}

#[test]
fn large_bodies_pass_in_both_directions() {
    let server = TestServer::start();
    let mut client = server.connect();
    let body: Vec<u8> = (0..3_000_000).map(pattern).collect();
    client.send(format!("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len()));
    client.send(&body);
    assert!(client.answer().body == body);
    let answer = client.get("/stream?8000000");
    assert_eq!(answer.body.len(), 8_000_000);
    assert!(answer.body.iter().zip(0..).all(|(byte, position)| *byte == pattern(position)));
    assert_eq!(client.get("/after").text(), "/after");
    assert_eq!(client.get("/stream?0").body.len(), 0);
    assert_eq!(client.get("/stream?1").body, [0]);
}

#[test]
fn bodiless_responses_send_no_body() {
    let server = TestServer::start();
    let mut client = server.connect();
    for (path, length) in [
        ("/some", Some("5")),
        ("/stream?1000", Some("1000")),
        ("/omitted?12345", Some("12345")),
        ("/empty", None),
    ] {
        client.send(format!("HEAD {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        let head = client.head();
        assert_eq!((head.status, head.header("content-length")), (200, length), "{path}");
    }
    client.send("GET /204 HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.head().header("content-length"), None);
    client.send("GET /304 HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.head().header("content-length"), Some("7"));
    assert_eq!(client.get("/empty").header("content-length"), Some("0"));
    assert_eq!(client.get("/omitted?5").header("content-length"), Some("0"));
    assert_eq!(client.get("/after").text(), "/after");
}

#[test]
fn continue_is_sent_when_the_body_is_read() {
    let server = TestServer::start();
    let mut client = server.connect();
    client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    let interim = client.head();
    assert_eq!(interim.head, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(client.send("hello").answer().text(), "hello");
    client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello");
    assert_eq!(client.answer().status, 200, "a client that does not wait gets no interim answer");
    client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.answer().status, 200);
}

#[test]
fn a_refusal_is_sent_without_continue_and_closes() {
    let server = TestServer::start();
    let mut client = server.connect();
    client.send("PUT /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("connection")), (403, Some("close")));
    assert!(client.is_closed());
}

#[test]
fn a_small_unread_body_keeps_the_connection() {
    let server = TestServer::start();
    let mut client = server.connect();
    for length in [1, 10_000, 200_000] {
        client.send(format!("PUT /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n"));
        client.send(vec![b'x'; length]);
        assert_eq!(client.answer().status, 403);
    }
    assert_eq!(client.get("/after").text(), "/after");
}

#[test]
fn a_large_unread_body_closes_after_the_response_arrives() {
    let server = TestServer::start();
    let mut client = server.connect();
    let since = Instant::now();
    client.send("PUT /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n");
    send_to_lingering(&mut client, &vec![b'x'; 1_000_000], since);
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("connection")), (403, Some("close")));
    assert!(client.is_closed());
}

#[test]
fn version_client_and_service_decide_about_keep_alive() {
    let server = TestServer::start();
    let mut old = server.connect();
    let answer = old.send("GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").answer();
    assert_eq!(answer.header("connection"), Some("keep-alive"));
    let answer = old.send("GET /x HTTP/1.0\r\n\r\n").answer();
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(old.is_closed());
    let mut by_client = server.connect();
    by_client.send("GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert_eq!(by_client.answer().header("connection"), Some("close"));
    assert!(by_client.is_closed());
    let mut by_service = server.connect();
    assert_eq!(by_service.get("/close").header("connection"), Some("close"));
    assert!(by_service.is_closed());
}

#[test]
fn ambiguous_heads_are_answered_and_close_the_connection() {
    let server = TestServer::start();
    for (request, status) in [
        ("GET / HTTP/1.1\nHost: h\n\n", 400),
        ("GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (
            "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nA : b\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505),
    ] {
        let mut client = server.connect();
        client.send(request).send("GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n");
        let answer = client.answer();
        assert_eq!((answer.status, answer.header("connection")), (status, Some("close")), "{request:?}");
        assert!(client.is_closed(), "{request:?}");
    }
    let mut client = server.connect();
    client.send(format!("GET / HTTP/1.1\r\nHost: h\r\nA: {}\r\n\r\n", "x".repeat(40_000)));
    assert_eq!(client.answer().status, 431);
    assert!(server.exchanges(8).iter().all(|line| line.starts_with("- ")));
}

/// Every invalid request was answered as if it were a GET. A HEAD got a body, which its client takes for the beginning
/// of the next response.
#[test]
fn a_rejected_head_request_gets_no_body() {
    let server = TestServer::start();
    for (request, status) in [
        ("HEAD / HTTP/1.1\r\n\r\n".to_owned(), 400),
        (format!("HEAD / HTTP/1.1\r\nHost: h\r\nA: {}\r\n\r\n", "x".repeat(40_000)), 431),
    ] {
        let mut client = server.connect();
        client.send(request);
        assert_eq!(client.head().status, status);
        assert!(client.is_closed(), "bytes follow the head");
    }
}

#[test]
fn a_chunked_body_is_never_read_as_a_request() {
    let server = TestServer::start();
    let mut client = server.connect();
    client.send("PUT /chunked HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("connection")), (501, Some("close")));
    assert!(client.is_closed());
}

#[test]
fn a_panic_ends_only_its_own_connection() {
    let server = TestServer::start();
    let mut other = server.connect();
    assert_eq!(other.get("/x").status, 200);
    let mut client = server.connect();
    let answer = client.get("/panic");
    assert_eq!((answer.status, answer.header("connection"), answer.text()), (500, Some("close"), "Panic"));
    assert!(client.is_closed());
    assert_eq!(other.get("/x").status, 200);
}

#[test]
fn a_failing_response_body_cuts_the_connection() {
    let server = TestServer::start();
    for path in ["/broken", "/short"] {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(client.head().header("content-length"), Some("1000000"));
        assert!(client.rest().len() < 1_000_000, "{path}");
    }
    assert!(server.exchanges(2).iter().all(|line| line.ends_with("BodyFailed")));
}

#[test]
fn a_disconnected_client_is_noticed() {
    let server = TestServer::start();
    let mut client = server.connect();
    client.send("GET /stream?1000000000 HTTP/1.1\r\nHost: h\r\n\r\n");
    client.head();
    drop(client);
    assert!(server.exchanges(1)[0].ends_with("ClientDisconnected"), "{:?}", server.exchanges(1));
    let mut client = server.connect();
    client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf");
    drop(client);
    let log = server.exchanges(2);
    assert!(log[1].starts_with("/echo 400 in=4 "), "{log:?}");
}

#[test]
fn a_long_request_is_cancelled_when_its_client_disconnects() {
    let server = TestServer::start();
    let mut client = server.connect();
    client.send(b"GET /cancelled HTTP/1.1\r\nHost: x\r\n\r\n");
    server.wait_for_calls(1);
    assert_eq!(server.connect().get("/x").status, 200, "others are served while it waits");
    drop(client);
    let log = server.exchanges(2);
    assert!(log[1].starts_with("/cancelled 200"), "{log:?}");
}

/// One byte too many kept the work for a lost client running.
#[test]
fn a_client_that_sends_more_and_disconnects_is_noticed() {
    let server = TestServer::start();
    let mut client = server.connect();
    client.send(b"GET /cancelled HTTP/1.1\r\nHost: x\r\n\r\nG");
    server.wait_for_calls(1);
    drop(client);
    assert!(server.exchanges(1)[0].starts_with("/cancelled 200"));
}

/// The source of a slow response worked until its next piece could not be sent.
#[test]
fn a_body_that_waits_ends_when_its_client_disconnects() {
    let server = TestServer::start();
    let mut client = server.connect();
    client.send(b"GET /waiting HTTP/1.1\r\nHost: x\r\n\r\n");
    server.wait_for_calls(1);
    drop(client);
    assert!(server.exchanges(1)[0].ends_with("ClientDisconnected"));
}

#[test]
fn a_body_of_unknown_length_is_sent_in_chunks() {
    let server = TestServer::start();
    let mut client = server.connect();
    for bytes in [0, 1, 200_000] {
        client.send(format!("GET /chunks?{bytes} HTTP/1.1\r\nHost: h\r\n\r\n"));
        let (answer, sizes) = client.chunked_answer();
        assert_eq!(answer.body.len(), bytes);
        assert!(answer.body.iter().zip(0..).all(|(byte, position)| *byte == pattern(position)));
        assert_eq!(sizes.len(), bytes.div_ceil(66_000));
    }
    let head = client.send("HEAD /chunks?5 HTTP/1.1\r\nHost: h\r\n\r\n").head();
    assert_eq!((head.header("transfer-encoding"), head.header("content-length")), (None, None));
    assert_eq!(client.get("/after").text(), "/after");
}

/// An empty piece was sent as a chunk of size 0, which ends the body. The rest was taken for the next response.
#[test]
fn an_empty_piece_does_not_end_a_chunked_body() {
    let server = TestServer::start();
    let mut client = server.connect();
    let (answer, sizes) = client.send("GET /gaps HTTP/1.1\r\nHost: h\r\n\r\n").chunked_answer();
    assert_eq!((answer.text(), sizes), ("abcd", vec![3, 1]));
    assert_eq!(client.get("/after").text(), "/after");
}

#[test]
fn a_chunked_body_that_fails_has_no_last_chunk() {
    let server = TestServer::start();
    let mut client = server.connect();
    client.send("GET /broken-chunks HTTP/1.1\r\nHost: h\r\n\r\n").head();
    let rest = client.rest();
    assert!(rest.starts_with(b"3e8\r\n") && !rest.ends_with(b"0\r\n\r\n"), "{} bytes", rest.len());
    assert!(server.exchanges(1)[0].ends_with("BodyFailed"));
}

/// An HTTP/1.0 client reads chunk sizes as content.
#[test]
fn an_http_1_0_client_gets_no_chunks() {
    let server = TestServer::start();
    let mut client = server.connect();
    client.send("GET /chunks?3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let head = client.head();
    assert_eq!((head.header("transfer-encoding"), head.header("connection")), (None, Some("close")));
    assert_eq!(client.rest(), [0, 1, 2]);
}

#[test]
fn work_that_timed_out_can_be_waited_for_again() {
    let server = TestServer::start();
    assert_eq!(server.connect().get("/timeout?10").text(), "None None Some(7)");
}
