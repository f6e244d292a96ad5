//! Connections that are kept, and those that cannot be made.

use super::{Answers, LONG, OK, client, deliver, failed, local, local_client, succeeded};
use crate::receiver::Receiver;
use cairn_webhooks::client::FailureKind;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A port that nobody listens at.
fn unused_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

#[test]
fn attempts_share_a_connection() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let client = local_client(LONG);
    for _ in 0..50 {
        succeeded(&deliver(&client, &receiver.url()));
    }
    assert_eq!((receiver.connections(), receiver.requests().len()), (1, 50));
}

#[test]
fn failed_attempts_keep_their_connection_as_well() {
    let receiver =
        Receiver::answering("HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbusy\r\n0\r\n\r\n");
    let client = local_client(LONG);
    for _ in 0..5 {
        failed(&deliver(&client, &receiver.url()), FailureKind::Response);
    }
    assert_eq!(receiver.connections(), 1);
}

#[test]
fn connections_that_the_receiver_closes_are_not_used_again() {
    let receiver = Receiver::with(|_, connection| {
        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        false
    });
    let client = local_client(LONG);
    for _ in 0..5 {
        succeeded(&deliver(&client, &receiver.url()));
    }
    assert_eq!((receiver.connections(), receiver.requests().len()), (5, 5));
}

/// A receiver that closes a kept connection just as we send over it has not refused the delivery.
#[test]
fn a_kept_connection_that_breaks_is_replaced_within_the_attempt() {
    // Every second request of a connection is read but not answered.
    let count = Arc::new(AtomicUsize::new(0));
    let receiver = Receiver::with(move |_, connection| {
        count.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) && connection.write_all(OK.as_bytes()).is_ok()
    });
    let client = local_client(LONG);
    succeeded(&deliver(&client, &receiver.url()));
    succeeded(&deliver(&client, &receiver.url()));
    assert_eq!((receiver.connections(), receiver.requests().len()), (2, 3));
}

/// A new connection that breaks is the receiver's fault, and the request is not repeated within the attempt.
#[test]
fn a_new_connection_that_breaks_is_a_failure() {
    let receiver = Receiver::with(|_, _| false);
    let attempt = deliver(&local_client(LONG), &receiver.url());
    assert!(failed(&attempt, FailureKind::Connect).starts_with("the connection broke before the answer"));
    assert_eq!((receiver.connections(), receiver.requests().len()), (1, 1));
}

/// The address was judged for an earlier attempt only.
#[test]
fn a_kept_connection_is_not_used_once_its_address_left_the_answer() {
    let receiver = Receiver::answering(OK);
    let answers =
        Answers::addresses([&["127.0.0.1"], &["127.0.0.2"], &["127.0.0.3", "127.0.0.2"], &["127.0.0.1"]]);
    let client = client(local(), LONG, &answers);
    let url = format!("http://moving.test:{}/", receiver.port);
    for _ in 0..4 {
        succeeded(&deliver(&client, &url));
    }
    let used: Vec<_> =
        receiver.requests().iter().map(|request| (request.to.to_string(), request.connection)).collect();
    let expected = [("127.0.0.1", 1), ("127.0.0.2", 2), ("127.0.0.2", 2), ("127.0.0.1", 3)];
    assert_eq!(used, expected.map(|(to, connection)| (to.to_owned(), connection)));
}

/// Dual-stack hosts: the first address may be unreachable.
#[test]
fn the_next_address_is_tried() {
    let receiver = Receiver::answering(OK);
    // The receiver listens on IPv4 only.
    let answers = Answers::addresses([&["::1", "127.0.0.1"]]);
    succeeded(&deliver(&client(local(), LONG, &answers), &format!("http://dual.test:{}/", receiver.port)));
    assert_eq!(receiver.connections(), 1);
}

#[test]
fn a_port_that_nobody_listens_at_is_named() {
    let port = unused_port();
    let attempt = deliver(&local_client(LONG), &format!("http://127.0.0.1:{port}/"));
    let text = failed(&attempt, FailureKind::Connect);
    assert!(text.contains(&format!("127.0.0.1:{port}")) && text.contains("refused"), "{text}");
}

#[test]
fn many_threads_share_the_client() {
    let receiver = Receiver::answering(OK);
    let client = local_client(LONG);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| (0..50).for_each(|_| succeeded(&deliver(&client, &receiver.url()))));
        }
    });
    assert_eq!(receiver.requests().len(), 800);
    assert!(receiver.connections() <= 16, "{}", receiver.connections());
}

#[test]
fn unused_connections_are_closed_on_request() {
    let receiver = Receiver::answering(OK);
    let client = local_client(LONG);
    succeeded(&deliver(&client, &receiver.url()));
    client.close_idle_connections();
    succeeded(&deliver(&client, &receiver.url()));
    assert_eq!(receiver.connections(), 1, "it was used since the last call");
    client.close_idle_connections();
    client.close_idle_connections();
    succeeded(&deliver(&client, &receiver.url()));
    assert_eq!(receiver.connections(), 2);
}

#[test]
fn the_end_of_the_client_interrupts_attempts() {
    let (arrived, waiting) = std::sync::mpsc::channel();
    let receiver = Receiver::with(move |_, connection| {
        let _ = arrived.send(());
        connection.read(&mut [0]).is_ok_and(|count| count > 0)
    });
    let client = local_client(LONG);
    thread::scope(|scope| {
        let attempt = scope.spawn(|| deliver(&client, &receiver.url()));
        waiting.recv_timeout(LONG).expect("the request arrives");
        client.shut_down();
        let attempt = attempt.join().expect("no panic");
        assert!(!attempt.succeeded() && attempt.duration < LONG, "{attempt:?}");
    });
    failed(&deliver(&client, &receiver.url()), FailureKind::Connect);
    assert_eq!(receiver.connections(), 1);
}
