//! Answers of receivers, and what they must not be able to cause.

use super::{LONG, OK, SHORT, deliver, failed, local_client, succeeded};
use crate::receiver::{Connection, Receiver};
use cairn_webhooks::client::FailureKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Writes until the other side is gone, at most `count` times. Returns how many bytes were written.
fn pour(connection: &mut dyn Connection, chunk: &[u8], count: usize) -> usize {
    (0..count).take_while(|_| connection.write_all(chunk).is_ok()).count() * chunk.len()
}

#[test]
fn a_delivery_carries_the_event_and_both_signatures() {
    let receiver = Receiver::answering(OK);
    let attempt = deliver(&local_client(LONG), &receiver.url());
    succeeded(&attempt);
    assert_eq!((attempt.http_status, attempt.retry_after), (Some(200), None));
    let request = receiver.requests().remove(0);
    assert_eq!(request.line, "POST /hook?a=b HTTP/1.1");
    assert_eq!(request.body, super::BODY);
    for (name, value) in [
        ("content-type", "application/json"),
        ("content-length", &super::BODY.len().to_string()),
        ("host", &format!("127.0.0.1:{}", receiver.port)),
        ("user-agent", concat!("Cairn-Webhook/", env!("CARGO_PKG_VERSION"))),
        ("x-service-event-id", super::EVENT_ID),
        ("x-service-event-type", "object.created"),
        ("x-service-event-time", "2026-01-01T00:00:00.000Z"),
        ("x-service-signature", "sha256=fce1453a5e9c7d9f8e65ddfbf24e09896fffdb7521c690ad178da659561e932e"),
        ("webhook-id", super::EVENT_ID),
        ("webhook-timestamp", "1767225600"),
        ("webhook-signature", "v1,lgQpzLOS8LlHrdpwZVkV+4tK00mUQsASrLFSuJWUUYs="),
    ] {
        assert_eq!(request.header(name), value, "{name}");
    }
    assert_eq!(request.headers.len(), 11, "nothing else: {:?}", request.headers);
}

#[test]
fn only_2xx_is_success() {
    for (status, is_success) in [
        (200, true),
        (201, true),
        (202, true),
        (204, true),
        (299, true),
        (400, false),
        (401, false),
        (404, false),
        (410, false),
        (500, false),
        (503, false),
        (600, false),
    ] {
        let receiver = Receiver::with(move |_, connection| {
            let length = if status == 204 { "" } else { "Content-Length: 0\r\n" };
            connection.write_all(format!("HTTP/1.1 {status} Text\r\n{length}\r\n").as_bytes()).is_ok()
        });
        let attempt = deliver(&local_client(LONG), &receiver.url());
        assert_eq!((attempt.http_status, attempt.succeeded()), (Some(status), is_success), "{attempt:?}");
        if !is_success {
            assert_eq!(
                failed(&attempt, FailureKind::Response),
                format!("the receiver answered with HTTP status {status}")
            );
        }
    }
}

#[test]
fn retry_after_is_read_from_failures() {
    for (answer, expected) in [
        ("HTTP/1.1 503 x\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", Some(7)),
        ("HTTP/1.1 429 x\r\nRetry-After: 86400\r\nContent-Length: 0\r\n\r\n", Some(3600)),
        // A minute after the attempt.
        (
            "HTTP/1.1 429 x\r\nRetry-After: Thu, 01 Jan 2026 00:01:00 GMT\r\nContent-Length: 0\r\n\r\n",
            Some(60),
        ),
        ("HTTP/1.1 429 x\r\nRetry-After: never\r\nContent-Length: 0\r\n\r\n", None),
        ("HTTP/1.1 200 x\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", None),
    ] {
        let attempt = deliver(&local_client(LONG), &Receiver::answering(answer).url());
        assert_eq!(attempt.retry_after, expected.map(Duration::from_secs), "{answer}");
    }
}

/// The status has arrived. A body without end must neither fill the memory nor hold the thread.
#[test]
fn bodies_are_discarded_and_bounded() {
    for head in ["Content-Length: 1000000000000", "Transfer-Encoding: chunked", "Connection: close"] {
        let written = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&written);
        let (sent, done) = std::sync::mpsc::channel();
        let receiver = Receiver::with(move |_, connection| {
            let _ = connection.write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes());
            let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
            counted.store(pour(connection, &chunk, 100_000), Ordering::Relaxed);
            let _ = sent.send(());
            false
        });
        let attempt = deliver(&local_client(LONG), &receiver.url());
        succeeded(&attempt);
        done.recv_timeout(LONG).expect("the connection is closed");
        // What fits into the buffers of two sockets.
        assert!(
            written.load(Ordering::Relaxed) < 64 << 20,
            "{head}: {} bytes were sent",
            written.load(Ordering::Relaxed)
        );
    }
}

#[test]
fn a_body_that_does_not_end_does_not_hold_a_delivery() {
    let receiver = Receiver::with(|_, connection| {
        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx");
        // Until the client closes the connection.
        connection.read(&mut [0]).is_ok_and(|count| count > 0)
    });
    let attempt = deliver(&local_client(LONG), &receiver.url());
    succeeded(&attempt);
    assert!(attempt.duration < LONG / 2, "{:?}", attempt.duration);
}

/// One byte at a time keeps every single read short.
#[test]
fn a_slow_answer_times_out_at_the_limit_of_the_request() {
    let receiver = Receiver::with(|_, connection| {
        let never_ending = "HTTP/1.1 200 OK\r\nX: ".bytes().chain(std::iter::repeat(b'x'));
        for byte in never_ending {
            // A read that always times out is a pause that ends when the client is gone.
            std::thread::park_timeout(Duration::from_millis(20));
            if connection.write_all(&[byte]).is_err() {
                return false;
            }
        }
        true
    });
    let attempt = deliver(&local_client(SHORT), &receiver.url());
    assert_eq!(
        failed(&attempt, FailureKind::Timeout),
        "the time limit of 5 s passed while waiting for the answer"
    );
    assert!(attempt.duration >= SHORT, "{:?}", attempt.duration);
    assert_eq!(receiver.wait_for_request().len(), 1, "an attempt is one request");
}

#[test]
fn silence_times_out() {
    let receiver = Receiver::with(|_, connection| connection.read(&mut [0]).is_ok_and(|count| count > 0));
    let attempt = deliver(&local_client(SHORT), &receiver.url());
    failed(&attempt, FailureKind::Timeout);
    assert!(attempt.duration >= SHORT, "{:?}", attempt.duration);
    assert_eq!((attempt.http_status, receiver.wait_for_request().len()), (None, 1));
}

#[test]
fn huge_heads_are_refused() {
    let large = format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(20_000));
    let receiver = Receiver::with(move |_, connection| connection.write_all(large.as_bytes()).is_ok());
    let attempt = deliver(&local_client(LONG), &receiver.url());
    assert_eq!(failed(&attempt, FailureKind::Response), "the head of the answer is larger than 16384 bytes");

    let endless = Receiver::with(|_, connection| {
        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\n");
        pour(connection, b"A: b\r\n", 10_000_000);
        false
    });
    failed(&deliver(&local_client(LONG), &endless.url()), FailureKind::Response);

    // Heads below the limit are fine, wherever they are divided.
    let fits = format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(16_000));
    let receiver = Receiver::with(move |_, connection| {
        fits.as_bytes().chunks(999).all(|part| connection.write_all(part).is_ok())
    });
    succeeded(&deliver(&local_client(LONG), &receiver.url()));
}

#[test]
fn what_is_not_http_is_a_failure() {
    for answer in [
        "220 mail.example ESMTP\r\n",
        "SSH-2.0-OpenSSH_9.9\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 OK\r\n\r\n",
        "\0\0\0\0\r\n\r\n",
    ] {
        let receiver = Receiver::with(move |_, connection| {
            let _ = connection.write_all(answer.as_bytes());
            false
        });
        let attempt = deliver(&local_client(LONG), &receiver.url());
        assert!(attempt.http_status.is_none() && !attempt.succeeded(), "{answer:?}: {attempt:?}");
    }
}

/// Two answers to one request: the second must not become the answer to the next one.
#[test]
fn an_answer_that_nobody_asked_for_is_not_used() {
    let receiver = Receiver::answering(
        "HTTP/1.1 500 First\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 Second\r\nContent-Length: 0\r\n\r\n",
    );
    let client = local_client(LONG);
    for _ in 0..3 {
        assert_eq!(deliver(&client, &receiver.url()).http_status, Some(500));
    }
    assert_eq!(receiver.connections(), 3);
}

#[test]
fn interim_answers_are_skipped() {
    let receiver =
        Receiver::answering("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    succeeded(&deliver(&local_client(LONG), &receiver.url()));
}

/// Each one makes progress, so that no single read is long.
#[test]
fn interim_answers_without_end_time_out() {
    let receiver = Receiver::with(|_, connection| {
        while connection.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_ok() {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        false
    });
    let attempt = deliver(&local_client(SHORT), &receiver.url());
    assert!(!attempt.succeeded(), "{attempt:?}");
}

/// The body's form is not ours to judge, but a connection whose end of the body is not known is not used again.
#[test]
fn a_body_that_cannot_be_read_is_not_a_failure() {
    let extension = "x".repeat(100_000);
    let answer =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;{extension}\r\nhello\r\n0\r\n\r\n");
    let receiver = Receiver::with(move |_, connection| connection.write_all(answer.as_bytes()).is_ok());
    let client = local_client(LONG);
    for _ in 0..2 {
        succeeded(&deliver(&client, &receiver.url()));
    }
    assert_eq!(receiver.connections(), 2);
}
