//! Measures the whole way of an event: queue on disk, signed request, outcome on disk.
//!
//! `cargo run --release -p cairn-webhooks --example queue_rate -- [events] [webhooks] [folder]`
//!
//! First the rate with all events at once, then the latency from the announcement of an event to its request, one at a time.

use cairn_engine::{
    EngineError, EventId, EventPage, EventQuery, EventType, ObjectOfEvent, StorageEvent, Tick,
};
use cairn_model::{AgeLimit, Clock, SystemClock, VersionName};
use cairn_sync::{Condvar, Mutex};
use cairn_webhooks::destination::TargetPolicy;
use cairn_webhooks::{EventSource, NewWebhook, WebhookOptions, Webhooks};
use futures_lite::future::block_on;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Events in memory, in place of a store.
#[derive(Default)]
struct Events {
    state: Mutex<(Vec<StorageEvent>, u64, u64)>,
    changed: Condvar,
}

impl Events {
    fn next_tick(last: &mut u64) -> Tick {
        *last = Tick::first_at(SystemClock.now()).0.max(*last + 1);
        Tick(*last)
    }

    fn push(&self, count: usize) {
        let mut state = self.state.lock();
        for number in 0..count {
            let object = ObjectOfEvent {
                key: format!("folder/object-{number:08}"),
                version: Some(VersionName::Null),
                size: 1 << 20,
                is_delete_marker: false,
                etag: None,
                content_type: Some("application/octet-stream".to_owned()),
            };
            let id = EventId::new(Self::next_tick(&mut state.2), &[1; 16]);
            state.0.push(StorageEvent {
                id,
                kind: EventType::ObjectCreated,
                bucket: "bucket".to_owned(),
                object: Some(object),
                principal: "account".to_owned(),
                request_id: "019b76da-a87b-7abc-8707-070707070707".to_owned(),
                lifecycle_rule: None,
            });
        }
        state.1 += 1;
        self.changed.notify_all();
    }
}

impl EventSource for Events {
    fn events(&self, query: &EventQuery) -> Result<EventPage, EngineError> {
        let mut state = self.state.lock();
        let end = Self::next_tick(&mut state.2).min(query.until);
        let first = state.0.partition_point(|event| event.id.tick() < query.from);
        let last = state.0.partition_point(|event| event.id.tick() < end).max(first);
        let cut = last.min(first + query.limit);
        let is_truncated = cut < last;
        let examined = if is_truncated { state.0[cut].id.tick() } else { end };
        Ok(EventPage { events: state.0[first..cut].to_vec(), examined, is_truncated })
    }

    fn generation(&self) -> u64 {
        self.state.lock().1
    }

    fn wait(&self, seen: u64, limit: Duration) {
        let state = self.state.lock();
        drop(self.changed.wait_timeout_while(state, limit, |state| state.1 == seen));
    }

    fn wake(&self) {
        self.push(0);
    }

    fn tick(&self) -> Tick {
        Self::next_tick(&mut self.state.lock().2)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize| {
        arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (events, webhooks) = (number(0, 20_000), number(1, 1));
    let folder = tempfile::tempdir_in(arguments.get(2).map_or(".", String::as_str)).expect("a folder");
    std::fs::write(folder.path().join("unmade"), "").expect("the folder can be written");

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (received, arrivals) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let received = received.clone();
            std::thread::spawn(move || receive(stream, &received));
        }
    });

    let source = Arc::new(Events::default());
    let handle = open(folder.path().to_owned(), &source);
    for number in 0..webhooks {
        let new = NewWebhook {
            target_url: format!("http://127.0.0.1:{port}/{number}"),
            event_types: vec![EventType::ObjectCreated],
            bucket_filter: None,
            object_prefix_filter: None,
            enabled: true,
        };
        block_on(handle.create(new)).expect("created");
    }

    let start = Instant::now();
    source.push(events);
    let wait = Duration::from_secs(60);
    for _ in 0..events * webhooks {
        arrivals.recv_timeout(wait).expect("all deliveries arrive");
    }
    let seconds = start.elapsed().as_secs_f64();
    let all = u32::try_from(events * webhooks).unwrap_or(u32::MAX);
    let rate = f64::from(all) / seconds;
    print(&format!("{events} events for {webhooks} webhooks: {seconds:.2} s, {rate:.0} deliveries/s"));

    let mut latencies: Vec<Duration> = (0..500)
        .map(|_| {
            let begin = Instant::now();
            source.push(1);
            (0..webhooks).for_each(|_| arrivals.recv_timeout(wait).expect("it arrives"));
            begin.elapsed()
        })
        .collect();
    latencies.sort();
    print(&format!("announcement to request: p50 {:?}, p99 {:?}", latencies[250], latencies[495]));
    handle.close(wait);
}

fn print(line: &str) {
    std::io::stdout().write_all(format!("{line}\n").as_bytes()).expect("written");
}

fn open(folder: PathBuf, source: &Arc<Events>) -> Arc<Webhooks> {
    let options = WebhookOptions {
        folder,
        store: [1; 16],
        master_key: Zeroizing::new(vec![7; 32]),
        clock: Arc::new(SystemClock),
        policy: TargetPolicy { allow_http: true, allow_private_networks: true, own_listeners: Vec::new() },
        request_timeout: Duration::from_secs(10),
        maximum_attempts: 6,
        poll_interval: Duration::from_secs(2),
        concurrency_per_target: 8,
        age: AgeLimit { age_max: Duration::from_secs(86_400), clock: Arc::new(SystemClock) },
    };
    Webhooks::open(options, Arc::clone(source) as Arc<dyn EventSource>).expect("opens")
}

/// Answers every request with 200.
fn receive(mut stream: TcpStream, received: &Sender<()>) {
    let (mut buffer, mut filled) = (vec![0; 16 << 10], 0);
    stream.set_nodelay(true).expect("a socket");
    while let Ok(count @ 1..) = stream.read(&mut buffer[filled..]) {
        filled += count;
        let Some(head) = buffer[..filled].windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        if filled >= head + 4 + body_length(&buffer[..head]) {
            filled = 0;
            let is_over = received.send(()).is_err();
            if is_over || stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
                return;
            }
        }
    }
}

/// Returns the value of `content-length`.
fn body_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_lowercase();
    let value = head.split("content-length:").nth(1).and_then(|rest| rest.lines().next());
    value.and_then(|text| text.trim().parse().ok()).expect("a length")
}
