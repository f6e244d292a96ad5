//! Holds idle connections to measure the server's memory.
//!
//! One thread opens all connections, with `--touch` sends one small request on each, and holds them for `--duration`. With
//! `--server-pid` the result is in `server.resident`.

use std::io::{self, Read};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::failure::{Failure, LoadError, while_doing};
use crate::http::connection::{Connection, Sink};
use crate::http::request::Requests;
use crate::http::server::Stream;
use crate::measure::process::{Memory, resident_kib};
use crate::plan::Plan;

const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// The result of holding connections.
#[derive(Clone, Debug, Serialize)]
pub struct IdleReport {
    /// Connections that were opened (with `--touch`: on which a response was received).
    pub opened: usize,
    /// The number of them that the server had not closed at the end.
    pub still_open: usize,
    /// The time for which they were held.
    pub held_seconds: f64,
    /// Resident memory of the server before the first connection was opened.
    pub server_before_kib: Option<u64>,
    /// Resident memory of the server while all were open.
    pub server_held: Option<Memory>,
}

/// Opens and holds the connections of a plan.
///
/// # Errors
/// [`LoadError::Refused`] if a connection, or the request on it, fails.
pub fn idle(plan: &Plan) -> Result<IdleReport, LoadError> {
    let sample = || plan.server_pid.and_then(resident_kib);
    let server_before_kib = sample();
    let mut requests = Requests::new(&plan.target);
    let mut streams = Vec::with_capacity(plan.connections);
    for number in 0..plan.connections {
        let stream = open(plan, &mut requests).map_err(|failure| LoadError::Refused {
            doing: format!("opening connection {} of {}", number + 1, plan.connections),
            failure,
        })?;
        streams.push(stream);
    }
    let held = Instant::now();
    let duration = plan.duration.unwrap_or_default();
    let mut server_held = None;
    while held.elapsed() < duration {
        if let Some(kib) = sample() {
            server_held = Some(Memory::sample(server_held, kib));
        }
        rest(duration.saturating_sub(held.elapsed()).min(SAMPLE_INTERVAL));
    }
    let held_seconds = held.elapsed().as_secs_f64();
    let mut still_open = 0;
    for stream in &mut streams {
        still_open += usize::from(is_open(stream).map_err(while_doing("checking a held connection"))?);
    }
    Ok(IdleReport { opened: streams.len(), still_open, held_seconds, server_before_kib, server_held })
}

fn open(plan: &Plan, requests: &mut Requests) -> Result<Stream, Failure> {
    let mut connection = Connection::open(&plan.server, plan.timeout)?;
    if plan.touch {
        let query = [("list-type", "2"), ("max-keys", "1")];
        connection.send(requests.bucket("GET", &query).as_bytes(), None)?;
        let head = connection.read_head()?;
        connection.read_body(&head, &mut Sink::Discard)?;
        if head.status != 200 {
            return Err(Failure::Status(head.status, None));
        }
    }
    Ok(connection.into_stream())
}

/// Returns whether a connection is open: it has nothing to read, and neither end of stream nor an error.
fn is_open(stream: &mut Stream) -> io::Result<bool> {
    stream.socket().set_nonblocking(true)?;
    let state = stream.read(&mut [0]);
    Ok(matches!(state, Err(error) if error.kind() == io::ErrorKind::WouldBlock))
}

#[expect(clippy::disallowed_methods, reason = "the main thread of a tool, no executor")]
fn rest(duration: Duration) {
    thread::sleep(duration);
}
