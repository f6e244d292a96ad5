//! The body of a request, read from the connection.
//!
//! It owns the framing: it never reads past the end of the body, so the next request begins where this body ends. It
//! sends `100 Continue` before the first read that has to wait for the client.

use std::io;

use cairn_http1::{BodyFraming, ChunkedDecoder, ChunkedError, RequestHead};
use cairn_model::{u64_of, usize_of};

use crate::drain::Drain;
use crate::limits::{DISCONNECT_CHECK_INTERVAL, Limits};
use crate::transport::timeouts::TransferTimeout;
use crate::transport::wire::{Wire, WireError};

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The error of a body that could not be read to its end. The connection is closed after the response.
#[derive(Debug)]
pub enum BodyError {
    /// The connection was closed or reset before the declared length had arrived.
    Incomplete,
    /// The client exceeded the stall timeout or was slower than the minimum rate.
    TimedOut,
    /// The chunked transfer coding is malformed.
    Malformed(ChunkedError),
    /// The process is stopping, and its grace period is over.
    Stopping,
    /// The connection failed in another way, or nobody has asked for a body with the chunked transfer
    /// coding ([`io::ErrorKind::Unsupported`], see [`RequestBody::accept_chunked`]).
    Io(io::Error),
}

impl std::fmt::Display for BodyError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Incomplete => formatter.write_str("the connection ended before the declared length"),
            Self::TimedOut => formatter.write_str("the body did not arrive in time"),
            Self::Malformed(error) => error.fmt(formatter),
            Self::Stopping => formatter.write_str("the process is stopping"),
            Self::Io(error) => write!(formatter, "the body could not be read: {error}"),
        }
    }
}

impl std::error::Error for BodyError {}

/// The reason why the response to a request is no longer needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CancelReason {
    /// The client has closed the connection.
    ClientDisconnected,
    /// The process is stopping.
    Draining,
}

/// The transfer coding of a body.
#[derive(Debug)]
enum Coding {
    /// None: the body has a declared length, or there is none.
    Identity,
    /// Chunked, and nobody has asked for it.
    Refused,
    /// Chunked.
    Chunked(ChunkedDecoder),
}

/// The body of a request, read from its connection.
#[derive(Debug)]
pub struct RequestBody<'c> {
    wire: &'c mut Wire,
    timeout: TransferTimeout,
    /// Bytes of the declared length that were not read.
    remaining: u64,
    read: u64,
    coding: Coding,
    /// Whether the client waits for a `100 Continue` that has not been sent.
    continue_pending: bool,
    failed: bool,
    timed_out: bool,
}

/// The state of a body after the service has finished.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyState {
    /// Bytes of the declared length that were not read.
    pub(crate) remaining: u64,
    /// Bytes that were read.
    pub(crate) read: u64,
    /// Whether the start of the next request is unknown: the body failed, is chunked and was not read to its end, or may
    /// never come because the client waits for a `100 Continue`.
    pub(crate) framing_is_lost: bool,
    /// Whether the body did not arrive in time.
    pub(crate) timed_out: bool,
}

impl<'c> RequestBody<'c> {
    pub(crate) fn new(wire: &'c mut Wire, head: &RequestHead, limits: &Limits) -> Self {
        let framing = head.framing();
        let remaining = if let BodyFraming::Length(length) = framing { length } else { 0 };
        Self {
            wire,
            timeout: TransferTimeout::new(limits.body_stall_timeout, limits.rate_min),
            remaining,
            read: 0,
            coding: if framing == BodyFraming::Chunked { Coding::Refused } else { Coding::Identity },
            // Also for an empty body. A client that still waits when the final response comes may take it for the
            // response to its next request, as the botocore in AWS CLI 1.46 does. A pending 100 closes the connection
            // afterwards.
            continue_pending: head.expects_continue() && framing != BodyFraming::None,
            failed: false,
            timed_out: false,
        }
    }

    /// Returns how many bytes of the declared length have not been read yet. 0 for a body with the chunked transfer
    /// coding, which declares none.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Accepts the chunked transfer coding, if the body has it. Otherwise reads of such a body fail. Call it only where the
    /// content has a limit of its own.
    pub fn accept_chunked(&mut self) {
        if matches!(self.coding, Coding::Refused) {
            self.coding = Coding::Chunked(ChunkedDecoder::new());
        }
    }

    /// Returns whether the body has the chunked transfer coding, and it was accepted.
    #[must_use]
    pub const fn is_chunked(&self) -> bool {
        matches!(self.coding, Coding::Chunked(_))
    }

    /// Reads up to `out.len()` bytes straight from the socket into `out`. Returns 0 only when nothing remains or `out`
    /// is empty. The first call sends `100 Continue` when the client waits for it, so check everything that can be
    /// checked before.
    ///
    /// # Errors
    /// [`BodyError`]; every later call fails too.
    pub async fn read(&mut self, out: &mut [u8]) -> Result<usize, BodyError> {
        let is_complete = match &self.coding {
            Coding::Identity => self.remaining == 0,
            Coding::Chunked(decoder) => decoder.is_done(),
            Coding::Refused => return Err(BodyError::Io(io::Error::from(io::ErrorKind::Unsupported))),
        };
        if is_complete || out.is_empty() {
            return Ok(0);
        }
        if self.failed {
            return Err(BodyError::Incomplete);
        }
        let result = match self.coding {
            Coding::Chunked(_) => self.read_chunked(out).await,
            _ => self.read_declared(out).await,
        };
        match &result {
            Ok(count) => self.read += u64_of(*count),
            Err(error) => {
                self.failed = true;
                self.timed_out = matches!(error, BodyError::TimedOut);
            }
        }
        result
    }

    async fn read_declared(&mut self, out: &mut [u8]) -> Result<usize, BodyError> {
        let wanted = usize_of(self.remaining).min(out.len());
        let count = self.read_from_wire(&mut out[..wanted]).await?;
        assert!(count <= wanted, "a read never passes the declared length");
        self.remaining -= u64_of(count);
        Ok(count)
    }

    /// Reads until there is content, or the body is complete. The framing passes through `out` and is removed from it.
    async fn read_chunked(&mut self, out: &mut [u8]) -> Result<usize, BodyError> {
        loop {
            let Coding::Chunked(decoder) = &self.coding else { unreachable!("the coding is chunked") };
            // Never more than certainly belongs to this body: the next request may follow.
            let certain = usize::try_from(decoder.bytes_at_least()).unwrap_or(usize::MAX);
            if certain == 0 {
                return Ok(0);
            }
            let wanted = certain.min(out.len());
            let count = self.read_from_wire(&mut out[..wanted]).await?;
            let Coding::Chunked(decoder) = &mut self.coding else { unreachable!("the coding is chunked") };
            let decoded = decoder.decode(&mut out[..count]).map_err(BodyError::Malformed)?;
            assert_eq!(decoded.consumed, count, "a read never passes the end of the body");
            if decoded.content > 0 {
                return Ok(decoded.content);
            }
        }
    }

    /// Reads at least one byte. The client's end is an error.
    async fn read_from_wire(&mut self, out: &mut [u8]) -> Result<usize, BodyError> {
        if self.continue_pending {
            self.continue_pending = false;
            // A client that has sent part of the body does not wait (RFC 9110 section 10.1.1).
            if self.wire.buffered().is_empty() {
                let mut timeout = self.timeout;
                self.wire.write(CONTINUE, &[], &mut timeout, &mut 0).await.map_err(body_error)?;
            }
        }
        match self.wire.read(out, &mut self.timeout).await {
            Ok(0) => Err(BodyError::Incomplete),
            Ok(count) => Ok(count),
            Err(error) => Err(body_error(error)),
        }
    }

    /// Waits until the response is no longer needed: the client has disconnected, or `drain` has begun. Long requests race
    /// it with their work.
    pub async fn cancelled(&self, drain: &Drain) -> CancelReason {
        let draining = async {
            while !drain.is_begun() {
                glommio::timer::sleep(DISCONNECT_CHECK_INTERVAL).await;
            }
            CancelReason::Draining
        };
        let disconnected = async {
            self.disconnected().await;
            CancelReason::ClientDisconnected
        };
        futures_lite::future::or(draining, disconnected).await
    }

    /// Waits until the client has disconnected. A client that closes only its sending side counts as disconnected, and so
    /// does one that has sent more before: otherwise one byte too many would keep the work for a lost client running.
    pub async fn disconnected(&self) {
        self.wire.wait_hung_up().await;
    }

    /// Gives up the rest of the body. Later reads fail, and the connection is closed after the response.
    pub const fn abandon(&mut self) {
        self.failed = true;
    }

    /// Disarms the timeout of a read whose future was dropped.
    pub(crate) fn end_wait(&self) {
        self.wire.timeout().disarm();
    }

    pub(crate) fn into_state(self) -> BodyState {
        let rest_is_unknown = match &self.coding {
            Coding::Identity => false,
            Coding::Refused => true,
            Coding::Chunked(decoder) => !decoder.is_done(),
        };
        BodyState {
            remaining: self.remaining,
            read: self.read,
            framing_is_lost: self.failed || rest_is_unknown || self.continue_pending,
            timed_out: self.timed_out,
        }
    }
}

fn body_error(error: WireError) -> BodyError {
    match error {
        WireError::TimedOut => BodyError::TimedOut,
        WireError::Aborted => BodyError::Stopping,
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
