//! Damaged blocks: no client receives a wrong byte, and none takes a part of an object for all of it.

use crate::common::{Call, Server, UNIT_BYTES, content, find};
use cairn_sync::Mutex;
use std::fmt::Debug;
use std::os::unix::fs::FileExt;
use std::sync::Once;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The unit that has its own check.
const BLOCK_BYTES: usize = 64 * 1024;

/// The lines that the S3 planes of all servers in this process logged.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Lines;

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "service::s3"
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        LINES.lock().push(line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!("{}={value:?} ", field.name()));
    }
}

fn capture_lines() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Lines).unwrap());
}

fn lines_of(request_id: &str) -> Vec<String> {
    LINES.lock().iter().filter(|line| line.contains(request_id)).cloned().collect()
}

/// Starts a server that stores `body` under `/photos/a`, with one bit of the byte `at` flipped on disk.
fn with_damage(body: &[u8], at: usize) -> Server {
    let server = Server::with_bucket("photos");
    server.client().send(Call::new("PUT", "/photos/a").body(body)).expect(200);
    // After a restart the server has no block in its cache.
    server.restarted(|store| {
        let unit = at / UNIT_BYTES * UNIT_BYTES;
        let (volume, offset) = find(store, &body[unit..unit + UNIT_BYTES]);
        volume.write_all_at(&[body[at] ^ 1], offset + (at - unit) as u64).unwrap();
        volume.sync_all().unwrap();
    })
}

/// The log had no line for such a request: the cause was dropped where the engine's error became the client's.
#[test]
fn damage_in_the_first_block_is_a_500_with_a_logged_cause() {
    capture_lines();
    let body = content(1, 3 * BLOCK_BYTES);
    let server = with_damage(&body, BLOCK_BYTES / 2);
    let mut client = server.client();
    let refused = client.send(Call::new("GET", "/photos/a")).refused(500, "InternalError");
    assert_eq!(refused.element("Key").as_deref(), Some("a"));
    assert_eq!(refused.element("BucketName").as_deref(), Some("photos"));
    assert!(!refused.text().contains("block"), "{}", refused.text());

    let lines = lines_of(refused.header("x-amz-request-id").unwrap());
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("block 0"), "{lines:?}");

    // The connection, the object's metadata and the rest of the store still work.
    let head = client.send(Call::new("HEAD", "/photos/a")).expect(200);
    assert_eq!(head.header("content-length"), Some(&*body.len().to_string()));
    client.send(Call::new("PUT", "/photos/a").body(body.clone())).expect(200);
    assert!(client.send(Call::new("GET", "/photos/a")).expect(200).body == body);
    let missing = client.send(Call::new("GET", "/photos/none")).refused(404, "NoSuchKey");
    assert_eq!(lines_of(missing.header("x-amz-request-id").unwrap()), [""; 0]);
}

/// The head has been sent when the damage is found. A response that ended regularly would be taken for the object.
#[test]
fn damage_in_a_later_block_cuts_the_connection() {
    let body = content(2, 16 * BLOCK_BYTES);
    let damaged = 12 * BLOCK_BYTES + 5;
    let server = with_damage(&body, damaged);
    let mut client = server.client();
    let request = client.signed(&Call::new("GET", "/photos/a"));
    let cut = client.raw(request).cut_answer().expect(200);
    assert_eq!(cut.header("content-length"), Some(&*body.len().to_string()));
    assert!(cut.body.len() <= 12 * BLOCK_BYTES, "{} bytes came", cut.body.len());
    assert!(body.starts_with(&cut.body), "wrong bytes came");

    // A range of undamaged blocks is served. One that starts with the damage is refused.
    let range = |first: usize, last: usize| {
        Call::new("GET", "/photos/a").header("range", format!("bytes={first}-{last}"))
    };
    let mut client = server.client();
    let sound = client.send(range(100, 8 * BLOCK_BYTES)).expect(206);
    assert!(sound.body == body[100..=8 * BLOCK_BYTES]);
    client.send(range(damaged + 1, damaged + 2)).refused(500, "InternalError");
}
