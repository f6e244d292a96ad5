//! Measures deliveries per second to a receiver that keeps its connections.
//!
//! `cargo run --release -p cairn-webhooks --example delivery_rate -- [threads] [seconds] [host]`

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cairn_model::{Clock, SystemClock};
use cairn_trust::Authorities;
use cairn_webhooks::client::{Client, ClientSettings, Delivery, Sender};
use cairn_webhooks::destination::{SystemResolver, TargetPolicy, TargetUrl};
use cairn_webhooks::signature::{SigningSecret, SigningSecrets};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |index: usize, default| arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (threads, seconds) = (number(0, 8), number(1, 5));
    let host = arguments.get(2).map_or("127.0.0.1", String::as_str);

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = format!("http://{host}:{}/hook", listener.local_addr().expect("an address").port());
    thread::spawn(move || {
        listener.incoming().flatten().for_each(|stream| drop(thread::spawn(move || receive(stream))))
    });

    let target = TargetUrl::parse(&target).expect("a URL");
    let policy = TargetPolicy { allow_http: true, allow_private_networks: true, own_listeners: Vec::new() };
    let settings =
        ClientSettings { policy, request_timeout: Duration::from_secs(10), authorities: Authorities::Host };
    let client = Client::new(settings, Arc::new(SystemResolver::default()));
    let secret = SigningSecret::generate().expect("random bytes");
    let body = vec![b'x'; 400];
    let (count, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let attempt = client.deliver(&Delivery {
                        target: &target,
                        event_id: "0192f0c1-2345-7abc-8def-0123456789ab",
                        event_type: "object.created",
                        event_time: "2026-01-01T00:00:00.000Z",
                        attempted_at: SystemClock.now(),
                        body: &body,
                        secrets: SigningSecrets { current: &secret, previous: None },
                    });
                    assert!(attempt.succeeded(), "{attempt:?}");
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::park_timeout(Duration::from_secs(seconds));
        is_over.store(true, Ordering::Relaxed);
    });
    let (count, elapsed) = (count.load(Ordering::Relaxed), start.elapsed().as_secs_f64());
    let line = format!("{threads} threads: {count} deliveries in {elapsed:.1} s\n");
    std::io::stdout().write_all(line.as_bytes()).expect("written");
}

/// Answers every request, whose body has a fixed size.
fn receive(mut stream: TcpStream) {
    let (mut buffer, mut filled) = (vec![0; 16 << 10], 0);
    stream.set_nodelay(true).expect("a socket");
    while let Ok(count @ 1..) = stream.read(&mut buffer[filled..]) {
        filled += count;
        let head = buffer[..filled].windows(4).position(|window| window == b"\r\n\r\n");
        if head.is_some_and(|head| filled >= head + 4 + 400) {
            filled = 0;
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
                return;
            }
        }
    }
}
