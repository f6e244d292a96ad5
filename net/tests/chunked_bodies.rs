//! Request bodies with the chunked transfer coding, where a service accepts it.

use crate::support::{HttpClient, TestServer, pattern};
use std::net::Shutdown;

const HEAD: &str = "PUT /echo-chunked HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";

fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in body.chunks(size) {
        bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

#[test]
fn chunks_of_any_size_become_one_body_and_the_connection_is_kept() {
    let server = TestServer::start();
    let mut client = server.connect();
    let body: Vec<u8> = (0..300_000).map(pattern).collect();
    for size in [3, 1000, 9_993, 9_994, 16_384, 300_000] {
        client.send(HEAD).send(chunked(&body, size));
        assert!(client.answer().body == body, "{size}");
    }
    client.send(HEAD).send(chunked(b"", 1));
    assert_eq!(client.answer().text(), "");
    assert_eq!(client.get("/after").text(), "/after");
    assert!(server.exchanges(8)[0].starts_with("/echo-chunked 200 in=300000 "));
}

#[test]
fn a_pipelined_request_after_a_chunked_body_is_answered() {
    let server = TestServer::start();
    let mut client = server.connect();
    // Also byte by byte, so that every read of the server ends elsewhere.
    let bytes = [HEAD.as_bytes(), &chunked(b"hello", 2), b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n"].concat();
    client.send(&bytes);
    assert_eq!((client.answer().text(), client.answer().text()), ("hello", "/next"));
    for byte in bytes {
        client.send([byte]);
    }
    assert_eq!((client.answer().text(), client.answer().text()), ("hello", "/next"));
}

#[test]
fn a_client_that_waits_is_told_to_continue() {
    let server = TestServer::start();
    let mut client = server.connect();
    client.send(HEAD.replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n"));
    assert_eq!(client.head().status, 100);
    client.send(chunked(b"hello", 3));
    assert_eq!(client.answer().text(), "hello");
    assert_eq!(client.get("/after").text(), "/after");
}

#[test]
fn malformed_and_truncated_bodies_close_the_connection() {
    let server = TestServer::start();
    for (body, error) in [
        ("5\nhello\r\n0\r\n\r\n", "Malformed"),
        ("5\r\nhelloGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n", "Malformed"),
        ("-5\r\nhello\r\n", "Malformed"),
        ("5\r\nhel", "Incomplete"),
        ("5\r\nhello\r\n", "Incomplete"),
        ("5\r\nhello\r\n0\r\n", "Incomplete"),
    ] {
        let mut client: HttpClient = server.connect();
        client.send(HEAD).send(body);
        client.stream.shutdown(Shutdown::Write).expect("the connection is open");
        let answer = client.answer();
        assert!(answer.text().starts_with(error), "{body:?}: {}", answer.text());
        assert_eq!(answer.header("connection"), Some("close"), "{body:?}");
        assert!(client.is_closed(), "{body:?}");
    }
}
