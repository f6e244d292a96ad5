//! The body of a request, as the service reads it from the socket.
//!
//! Owns the framing: it never reads past the declared length, so the next request on the connection begins where this
//! one's body ends. Sends `100 Continue` before the first read that needs the client to go on.

use std::io;

use cairn_http1::{BodyFraming, RequestHead};

use crate::deadline::Pace;
use crate::drain::Drain;
use crate::limits::{CLIENT_LOOK, Limits};
use crate::wire::{Wire, WireError};

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Why a body could not be read to its end. The connection is closed after the response.
#[derive(Debug)]
pub enum BodyError {
    /// The connection was closed or reset before the declared length had arrived.
    Incomplete,
    /// The client made no progress, or too little, within the deadline.
    TimedOut,
    /// The connection failed in another way, the process stops, or the body has a framing that is not read here
    /// (`chunked`, [`io::ErrorKind::Unsupported`]).
    Io(io::Error),
}

impl std::fmt::Display for BodyError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Incomplete => formatter.write_str("the connection ended before the declared length"),
            Self::TimedOut => formatter.write_str("the body did not arrive in time"),
            Self::Io(error) => write!(formatter, "the body could not be read: {error}"),
        }
    }
}

impl std::error::Error for BodyError {}

/// Why nobody needs an answer any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Abandoned {
    /// The client has closed the connection.
    ClientGone,
    /// The process stops.
    Draining,
}

/// The request's body as it arrives from the socket.
#[derive(Debug)]
pub struct RequestBody<'c> {
    wire: &'c mut Wire,
    pace: Pace,
    remaining: u64,
    read: u64,
    chunked: bool,
    continue_is_owed: bool,
    failed: bool,
    timed_out: bool,
}

/// What is known of a body when the service is done with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyRest {
    /// Bytes of the declared length that were not read.
    pub(crate) remaining: u64,
    /// Bytes that were read.
    pub(crate) read: u64,
    /// Whether nobody knows where the next request begins: the body failed, is chunked, or may never come because the
    /// client waits for a `100 Continue`.
    pub(crate) framing_is_lost: bool,
    /// Whether the client's time was over before it had come.
    pub(crate) timed_out: bool,
}

impl<'c> RequestBody<'c> {
    pub(crate) fn new(wire: &'c mut Wire, head: &RequestHead, limits: &Limits) -> Self {
        let framing = head.framing();
        let remaining = if let BodyFraming::Length(length) = framing { length } else { 0 };
        Self {
            wire,
            pace: Pace::new(limits.body_stall_timeout, limits.rate_min),
            remaining,
            read: 0,
            chunked: framing == BodyFraming::Chunked,
            // Also for an empty body: a client that still waits when the final answer comes may take it for the answer to
            // its next request, as the botocore in AWS CLI 1.46 does. Owing the 100 closes the connection behind it.
            continue_is_owed: head.expects_continue() && framing != BodyFraming::None,
            failed: false,
            timed_out: false,
        }
    }

    /// Bytes of the declared length that have not been read yet.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Reads up to `out.len()` bytes straight from the socket into `out`; 0 only when nothing remains (or `out` is
    /// empty). The first call sends `100 Continue` when the client waits for it: check all that can be checked before.
    ///
    /// # Errors
    /// [`BodyError`]; every later call fails too.
    pub async fn read(&mut self, out: &mut [u8]) -> Result<usize, BodyError> {
        if self.chunked {
            return Err(BodyError::Io(io::Error::from(io::ErrorKind::Unsupported)));
        }
        let wanted = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(out.len());
        if wanted == 0 {
            return Ok(0);
        }
        if self.failed {
            return Err(BodyError::Incomplete);
        }
        let result = self.read_from_wire(&mut out[..wanted]).await;
        match result {
            Ok(count) => {
                self.remaining -= count as u64;
                self.read += count as u64;
                Ok(count)
            }
            Err(error) => {
                self.failed = true;
                self.timed_out = matches!(error, BodyError::TimedOut);
                Err(error)
            }
        }
    }

    async fn read_from_wire(&mut self, out: &mut [u8]) -> Result<usize, BodyError> {
        if self.continue_is_owed {
            self.continue_is_owed = false;
            // A client that has sent part of the body does not wait (RFC 9110 section 10.1.1).
            if self.wire.ahead().is_empty() {
                let mut pace = self.pace;
                self.wire.write(CONTINUE, &[], &mut pace, &mut 0).await.map_err(body_error)?;
            }
        }
        match self.wire.read(out, &mut self.pace).await {
            Ok(0) => Err(BodyError::Incomplete),
            Ok(count) => Ok(count),
            Err(error) => Err(body_error(error)),
        }
    }

    /// Waits until nobody needs the answer any more: the client has closed the connection, or `drain` has begun. For
    /// requests that take long; to be raced with the work. A client that only closes its sending side counts as gone.
    pub async fn abandoned(&self, drain: &Drain) -> Abandoned {
        loop {
            if drain.is_begun() {
                return Abandoned::Draining;
            }
            if self.wire.is_closed_by_client() {
                return Abandoned::ClientGone;
            }
            glommio::timer::sleep(CLIENT_LOOK).await;
        }
    }

    /// Ends the wait of a read whose future was dropped.
    pub(crate) fn end_wait(&self) {
        self.wire.watch().disarm();
    }

    pub(crate) const fn into_rest(self) -> BodyRest {
        BodyRest {
            remaining: self.remaining,
            read: self.read,
            framing_is_lost: self.failed || self.chunked || self.continue_is_owed,
            timed_out: self.timed_out,
        }
    }
}

fn body_error(error: WireError) -> BodyError {
    match error {
        WireError::Expired => BodyError::TimedOut,
        WireError::Aborted => BodyError::Io(io::Error::other("the process stops")),
        WireError::Io(error)
            if matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted
            ) =>
        {
            BodyError::Incomplete
        }
        WireError::Io(error) => BodyError::Io(error),
    }
}
