//! Sending a response: its head, then its body in whatever form it has.
//!
//! Invariants: a head and a body that is in memory leave in one system call when the socket has room; exactly as many
//! body bytes follow as the head announced, or all chunks and the last one, or the connection is cut; nothing follows where nothing may (HEAD, 204,
//! 304).

use std::panic::AssertUnwindSafe;

use cairn_http1::{BodyLength, ConnectionOption, HttpDate, Method, ResponseHead, StatusCode};
use futures_lite::FutureExt;

use crate::deadline::Pace;
use crate::limits::Limits;
use crate::service::{BodySource, Outcome, ResponseBody};
use crate::wire::{Wire, WireError};

/// What was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Body bytes that the socket took.
    pub(crate) bytes: u64,
    pub(crate) outcome: Outcome,
}

/// How a response goes out, beside what the service decided.
pub(crate) struct Manner<'a> {
    /// The request's method; HEAD or GET for what answers no readable request.
    pub(crate) method: &'a Method,
    pub(crate) connection: ConnectionOption,
    /// Whether the client knows chunks: those of HTTP/1.1 do.
    pub(crate) takes_chunks: bool,
    pub(crate) date: HttpDate,
    pub(crate) limits: &'a Limits,
}

/// Sends one response. `buffer` is scratch space for the head.
pub(crate) async fn send(
    wire: &mut Wire,
    head: &ResponseHead,
    body: ResponseBody,
    manner: &Manner<'_>,
    buffer: &mut Vec<u8>,
) -> Sent {
    let bodiless = *manner.method == Method::HEAD
        || head.status == StatusCode::NO_CONTENT
        || head.status == StatusCode::NOT_MODIFIED;
    let length = announced_length(&body, bodiless, manner.takes_chunks);
    buffer.clear();
    head.write_to(buffer, &manner.date, manner.connection, length);
    let mut pace = Pace::new(manner.limits.write_stall_timeout, manner.limits.rate_min);
    let (head_bytes, mut written) = (buffer.len(), 0);
    let outcome = match body {
        ResponseBody::Full(bytes) if !bodiless => {
            outcome_of(wire.write(buffer, &bytes, &mut pace, &mut written).await)
        }
        ResponseBody::Stream { length, mut source } if !bodiless => {
            // A source that panics has broken its promise like one that fails: the connection is cut, no more.
            let stream = stream_body(wire, buffer, length, source.as_mut(), &mut pace, &mut written);
            AssertUnwindSafe(stream).catch_unwind().await.unwrap_or(Outcome::BodyFailed)
        }
        ResponseBody::Chunked { mut source } if !bodiless => {
            let framing = if manner.takes_chunks { Framing::Chunks } else { Framing::None };
            let chunks = chunked_body(wire, buffer, framing, source.as_mut(), &mut pace, &mut written);
            AssertUnwindSafe(chunks).catch_unwind().await.unwrap_or(Outcome::BodyFailed)
        }
        _ => outcome_of(wire.write(buffer, &[], &mut pace, &mut written).await),
    };
    Sent { bytes: written.saturating_sub(head_bytes as u64), outcome }
}

/// What the head says of the body. In an answer without one it is what a GET would have had, if that is known
/// (RFC 9110 section 8.6).
const fn announced_length(body: &ResponseBody, bodiless: bool, takes_chunks: bool) -> BodyLength {
    match body {
        ResponseBody::Empty | ResponseBody::Omitted { length: None } if bodiless => BodyLength::Unsaid,
        ResponseBody::Omitted { length: Some(length) } if bodiless => BodyLength::Bytes(*length),
        // Announcing a length and sending nothing would make the client wait: the service is wrong, the wire is not.
        ResponseBody::Empty | ResponseBody::Omitted { .. } => BodyLength::Bytes(0),
        ResponseBody::Full(bytes) => BodyLength::Bytes(bytes.len() as u64),
        ResponseBody::Stream { length, .. } => BodyLength::Bytes(*length),
        ResponseBody::Chunked { .. } if takes_chunks && !bodiless => BodyLength::Chunked,
        ResponseBody::Chunked { .. } => BodyLength::Unsaid,
    }
}

/// Writes the head with the first chunk, then chunk by chunk as they come.
async fn stream_body(
    wire: &mut Wire,
    head: &[u8],
    length: u64,
    source: &mut dyn BodySource,
    pace: &mut Pace,
    written: &mut u64,
) -> Outcome {
    let mut unsent_head = head;
    let mut remaining = length;
    while remaining > 0 {
        let chunk = match source.next().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => {
                tracing::error!(target: "service", missing_bytes = remaining, "a response body ended early");
                return Outcome::BodyFailed;
            }
            // The source has said why, where it knows what was read.
            Err(_) => return Outcome::BodyFailed,
        };
        let bytes = (*chunk).as_ref();
        let wanted = usize::try_from(remaining).unwrap_or(usize::MAX).min(bytes.len());
        if wanted < bytes.len() {
            tracing::error!(target: "service", "a response body is longer than announced");
            return Outcome::BodyFailed;
        }
        if let Err(error) = wire.write(unsent_head, bytes, pace, written).await {
            return outcome_of(Err(error));
        }
        unsent_head = &[];
        remaining -= wanted as u64;
        glommio::yield_if_needed().await;
    }
    if unsent_head.is_empty() {
        return Outcome::Complete;
    }
    outcome_of(wire.write(unsent_head, &[], pace, written).await)
}

/// How the pieces of a body of unknown length are told apart from what follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// As chunks (RFC 9112 section 7.1).
    Chunks,
    /// Not at all: the body ends with the connection.
    None,
}

/// Writes the head (`buffer`) with the first piece, then piece by piece as they come. A client that waits sees each at once.
async fn chunked_body(
    wire: &mut Wire,
    buffer: &mut Vec<u8>,
    framing: Framing,
    source: &mut dyn BodySource,
    pace: &mut Pace,
    written: &mut u64,
) -> Outcome {
    let mut is_first = true;
    loop {
        // The source has said why it fails, where it knows what was done.
        let Ok(piece) = source.next().await else { return Outcome::BodyFailed };
        let bytes = piece.as_ref().map_or(&[][..], |piece| (**piece).as_ref());
        if piece.is_some() && bytes.is_empty() {
            // As a chunk it would be the last one.
            glommio::yield_if_needed().await;
            continue;
        }
        if framing == Framing::Chunks {
            // The end of the last chunk and the size of this one; a size of 0 ends the body.
            let end = if is_first { "" } else { "\r\n" };
            buffer.extend_from_slice(format!("{end}{:x}\r\n", bytes.len()).as_bytes());
            if piece.is_none() {
                buffer.extend_from_slice(b"\r\n");
            }
        }
        if let Err(error) = wire.write(buffer, bytes, pace, written).await {
            return outcome_of(Err(error));
        }
        if piece.is_none() {
            return Outcome::Complete;
        }
        buffer.clear();
        is_first = false;
        glommio::yield_if_needed().await;
    }
}

fn outcome_of(result: Result<(), WireError>) -> Outcome {
    match result {
        Ok(()) => Outcome::Complete,
        Err(WireError::Expired | WireError::Aborted) => Outcome::DeadlinePassed,
        Err(WireError::Io(_)) => Outcome::ClientGone,
    }
}
