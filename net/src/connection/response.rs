//! Sends a response: its head, then its body in whichever form it has.
//!
//! Invariants: the head and a body in memory leave in one system call when the socket has room. Exactly as many body
//! bytes follow as the head announced, or all chunks and the last chunk; otherwise the connection is cut. No bytes
//! follow the head of a response to HEAD, of a 204 or of a 304.

use std::io;
use std::panic::AssertUnwindSafe;

use cairn_http1::{BodyLength, ConnectionOption, HttpDate, Method, ResponseHead, StatusCode};
use cairn_model::u64_of;
use futures_lite::FutureExt;

use crate::limits::Limits;
use crate::service::interface::{BodySource, ExchangeOutcome, ResponseBody};
use crate::transport::timeouts::TransferTimeout;
use crate::transport::wire::{Wire, WireError};

/// The result of sending a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Body bytes that the socket took.
    pub(crate) bytes: u64,
    pub(crate) outcome: ExchangeOutcome,
}

/// The framing of a response: what the service did not decide.
pub(crate) struct ResponseFraming<'a> {
    /// The request's method; HEAD or GET for an invalid request.
    pub(crate) method: &'a Method,
    pub(crate) connection: ConnectionOption,
    /// Whether the client understands chunks: HTTP/1.1 clients do.
    pub(crate) takes_chunks: bool,
    pub(crate) date: HttpDate,
    pub(crate) limits: &'a Limits,
}

/// Sends one response. `buffer` is scratch space for the head.
pub(crate) async fn send(
    wire: &mut Wire,
    head: &ResponseHead,
    body: ResponseBody,
    framing: &ResponseFraming<'_>,
    buffer: &mut Vec<u8>,
) -> Sent {
    let bodiless = *framing.method == Method::HEAD
        || head.status == StatusCode::NO_CONTENT
        || head.status == StatusCode::NOT_MODIFIED;
    let length = announced_length(&body, bodiless, framing.takes_chunks);
    buffer.clear();
    head.write_to(buffer, &framing.date, framing.connection, length);
    let mut timeout = TransferTimeout::new(framing.limits.write_stall_timeout, framing.limits.rate_min);
    let (head_bytes, mut written) = (u64_of(buffer.len()), 0);
    let outcome = match body {
        ResponseBody::Full(bytes) if !bodiless => {
            outcome_of(wire.write(buffer, &bytes, &mut timeout, &mut written).await)
        }
        ResponseBody::Stream { length, mut source } if !bodiless => {
            // A source that panics is treated like one that fails: the connection is cut.
            let stream = stream_body(wire, buffer, length, source.as_mut(), &mut timeout, &mut written);
            AssertUnwindSafe(stream).catch_unwind().await.unwrap_or(ExchangeOutcome::BodyFailed)
        }
        ResponseBody::Chunked { mut source } if !bodiless => {
            let delimiter = if framing.takes_chunks { Delimiter::Chunks } else { Delimiter::Close };
            let chunks = chunked_body(wire, buffer, delimiter, source.as_mut(), &mut timeout, &mut written);
            AssertUnwindSafe(chunks).catch_unwind().await.unwrap_or(ExchangeOutcome::BodyFailed)
        }
        _ => outcome_of(wire.write(buffer, &[], &mut timeout, &mut written).await),
    };
    // Less than the head may have been written.
    Sent { bytes: written.saturating_sub(head_bytes), outcome }
}

/// Returns the length that the head announces. Without a body, it is the length of the response to GET, if that is
/// known (RFC 9110 section 8.6).
const fn announced_length(body: &ResponseBody, bodiless: bool, takes_chunks: bool) -> BodyLength {
    match body {
        ResponseBody::Empty | ResponseBody::Omitted { length: None } if bodiless => BodyLength::Omitted,
        ResponseBody::Omitted { length: Some(length) } if bodiless => BodyLength::Bytes(*length),
        // An omitted body where one is due is a fault of the service. Announcing its length and sending nothing would
        // make the client wait.
        ResponseBody::Empty | ResponseBody::Omitted { .. } => BodyLength::Bytes(0),
        ResponseBody::Full(bytes) => BodyLength::Bytes(u64_of(bytes.len())),
        ResponseBody::Stream { length, .. } => BodyLength::Bytes(*length),
        ResponseBody::Chunked { .. } if takes_chunks && !bodiless => BodyLength::Chunked,
        ResponseBody::Chunked { .. } => BodyLength::Omitted,
    }
}

/// Writes the head with the first piece, then one piece after another.
async fn stream_body(
    wire: &mut Wire,
    head: &[u8],
    length: u64,
    source: &mut dyn BodySource,
    timeout: &mut TransferTimeout,
    written: &mut u64,
) -> ExchangeOutcome {
    let mut unsent_head = head;
    let mut remaining = length;
    while remaining > 0 {
        let piece = match source.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => {
                tracing::error!(target: "service", missing_bytes = remaining, "a response body ended early");
                return ExchangeOutcome::BodyFailed;
            }
            // The source has logged the reason, with its context.
            Err(_) => return ExchangeOutcome::BodyFailed,
        };
        let bytes = (*piece).as_ref();
        let count = u64_of(bytes.len());
        if count > remaining {
            tracing::error!(target: "service", "a response body is longer than announced");
            return ExchangeOutcome::BodyFailed;
        }
        if let Err(error) = wire.write(unsent_head, bytes, timeout, written).await {
            return outcome_of(Err(error));
        }
        unsent_head = &[];
        remaining -= count;
        glommio::yield_if_needed().await;
    }
    if unsent_head.is_empty() {
        return ExchangeOutcome::Complete;
    }
    outcome_of(wire.write(unsent_head, &[], timeout, written).await)
}

/// The delimiter of a body of unknown length.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delimiter {
    /// The last chunk (RFC 9112 section 7.1).
    Chunks,
    /// The close of the connection.
    Close,
}

/// Writes the head (`buffer`) with the first piece, then one piece after another. Each is sent at once.
async fn chunked_body(
    wire: &mut Wire,
    buffer: &mut Vec<u8>,
    delimiter: Delimiter,
    source: &mut dyn BodySource,
    timeout: &mut TransferTimeout,
    written: &mut u64,
) -> ExchangeOutcome {
    let mut is_first = true;
    loop {
        // A source that has to wait must not work for a client that has disconnected. One that is ready costs nothing.
        let disconnected = async {
            wire.wait_hung_up().await;
            Err(io::Error::from(io::ErrorKind::ConnectionReset))
        };
        let piece = match futures_lite::future::or(source.next(), disconnected).await {
            Ok(piece) => piece,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                return ExchangeOutcome::ClientDisconnected;
            }
            // The source has logged the reason, with its context.
            Err(_) => return ExchangeOutcome::BodyFailed,
        };
        let bytes = piece.as_ref().map_or(&[][..], |piece| (**piece).as_ref());
        if piece.is_some() && bytes.is_empty() {
            // An empty chunk would be the last one.
            glommio::yield_if_needed().await;
            continue;
        }
        if delimiter == Delimiter::Chunks {
            // The end of the previous chunk and the size of this one. Size 0 ends the body.
            let end = if is_first { "" } else { "\r\n" };
            buffer.extend_from_slice(format!("{end}{:x}\r\n", bytes.len()).as_bytes());
            if piece.is_none() {
                buffer.extend_from_slice(b"\r\n");
            }
        }
        if let Err(error) = wire.write(buffer, bytes, timeout, written).await {
            return outcome_of(Err(error));
        }
        if piece.is_none() {
            return ExchangeOutcome::Complete;
        }
        buffer.clear();
        is_first = false;
        glommio::yield_if_needed().await;
    }
}

fn outcome_of(result: Result<(), WireError>) -> ExchangeOutcome {
    match result {
        Ok(()) => ExchangeOutcome::Complete,
        Err(WireError::TimedOut | WireError::Aborted) => ExchangeOutcome::DeadlinePassed,
        Err(WireError::Io(_)) => ExchangeOutcome::ClientDisconnected,
    }
}
