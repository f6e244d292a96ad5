//! One client's socket with the bytes that were read ahead: reads and writes that end when the connection's watch
//! says so.
//!
//! Owns the glommio stream. Reads go straight into the caller's slice; head reads go into a buffer shared by the whole
//! executor, so that an idle connection holds none.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_lite::io::{AsyncRead, AsyncWrite};
use glommio::net::TcpStream;
use socket2::SockRef;

use crate::ahead::Ahead;
use crate::deadline::{Pace, Phase, Signal, Watch};

/// Why a read or write ended without its bytes.
#[derive(Debug)]
pub(crate) enum WireError {
    /// The deadline of the wait has passed.
    Expired,
    /// The process stops.
    Aborted,
    /// The connection failed.
    Io(io::Error),
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    watch: Rc<Watch>,
    ahead: Ahead,
}

impl Wire {
    pub(crate) const fn new(stream: TcpStream, watch: Rc<Watch>) -> Self {
        Self { stream, watch, ahead: Ahead::new() }
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr().map_err(io::Error::from)
    }

    /// Bytes that have arrived and were not consumed.
    pub(crate) fn ahead(&self) -> &[u8] {
        self.ahead.bytes()
    }

    /// Takes the next `count` bytes of [`Wire::ahead`] away.
    pub(crate) fn consume(&mut self, count: usize) {
        self.ahead.consume(count);
    }

    /// Keeps bytes that were read from the socket for later.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        self.ahead.keep(bytes);
    }

    /// Reads from the socket, past [`Wire::ahead`]; 0 at its end. Ready also when the watch ends the wait.
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<Result<usize, WireError>> {
        match Pin::new(&mut self.stream).poll_read(context, out) {
            Poll::Ready(result) => Poll::Ready(result.map_err(WireError::Io)),
            Poll::Pending => self.poll_end_of_wait(context),
        }
    }

    fn poll_end_of_wait<T>(&self, context: &Context<'_>) -> Poll<Result<T, WireError>> {
        self.watch.poll_signal(context).map(|signal| match signal {
            Signal::Aborted => Err(WireError::Aborted),
            Signal::Expired | Signal::Quiet => Err(WireError::Expired),
        })
    }

    /// Reads body bytes: those read ahead first, then from the socket straight into `out`. 0 at the socket's end.
    pub(crate) async fn read(&mut self, out: &mut [u8], pace: &mut Pace) -> Result<usize, WireError> {
        let ahead = self.ahead();
        if !ahead.is_empty() {
            let count = ahead.len().min(out.len());
            out[..count].copy_from_slice(&ahead[..count]);
            self.consume(count);
            return Ok(count);
        }
        let mut began = None;
        let result = poll_fn(|context| {
            let polled = self.poll_read(context, out);
            if polled.is_pending() && began.is_none() {
                began = Some(self.begin_wait(pace));
            }
            polled
        })
        .await;
        self.end_wait(began, pace, *result.as_ref().unwrap_or(&0));
        if began.is_none() {
            // A client that sends faster than its bytes are used never makes us wait; the others want their turn.
            glommio::yield_if_needed().await;
        }
        result
    }

    /// Arms the watch for one wait of a paced transfer. Waits are timed by real instants: they are rare next to the
    /// transfers that need none.
    fn begin_wait(&self, pace: &Pace) -> Instant {
        let began = Instant::now();
        self.watch.arm(Phase::Waiting, began + pace.patience());
        began
    }

    fn end_wait(&self, began: Option<Instant>, pace: &mut Pace, bytes: usize) {
        self.watch.disarm();
        pace.note(began.map_or(Duration::ZERO, |began| began.elapsed()), bytes);
    }

    /// Writes `head` and then `body`, in one system call when the socket has room. Counts what the socket took in
    /// `written`, also when it fails.
    pub(crate) async fn write(
        &mut self,
        head: &[u8],
        body: &[u8],
        pace: &mut Pace,
        written: &mut u64,
    ) -> Result<(), WireError> {
        let total = head.len() + body.len();
        let mut sent = 0;
        if !head.is_empty() && !body.is_empty() {
            sent = self.try_send_both(head, body)?;
            *written += sent as u64;
        }
        while sent < total {
            let rest = if sent < head.len() { &head[sent..] } else { &body[sent - head.len()..] };
            let count = self.write_some(rest, pace).await?;
            sent += count;
            *written += count as u64;
        }
        Ok(())
    }

    async fn write_some(&mut self, bytes: &[u8], pace: &mut Pace) -> Result<usize, WireError> {
        let mut began = None;
        let result = poll_fn(|context| {
            let polled = match Pin::new(&mut self.stream).poll_write(context, bytes) {
                Poll::Ready(Ok(0)) => Poll::Ready(Err(io::Error::from(io::ErrorKind::WriteZero).into())),
                Poll::Ready(result) => Poll::Ready(result.map_err(WireError::Io)),
                Poll::Pending => self.poll_end_of_wait(context),
            };
            if polled.is_pending() && began.is_none() {
                began = Some(self.begin_wait(pace));
            }
            polled
        })
        .await;
        self.end_wait(began, pace, *result.as_ref().unwrap_or(&0));
        result
    }

    /// Sends from two slices without waiting; 0 when the socket has no room.
    fn try_send_both(&self, head: &[u8], body: &[u8]) -> Result<usize, WireError> {
        let parts = [IoSlice::new(head), IoSlice::new(body)];
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        match SockRef::from(&self.descriptor()).send_vectored_with_flags(&parts, flags) {
            Ok(count) => Ok(count),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(0)
            }
            Err(error) => Err(WireError::Io(error)),
        }
    }

    #[expect(unsafe_code, reason = "glommio's stream gives its descriptor only as a number")]
    fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the stream owns the descriptor and keeps it open for as long as it lives, which is longer than the
        // borrow of `self` that the result carries.
        unsafe { BorrowedFd::borrow_raw(self.stream.as_raw_fd()) }
    }

    /// Whether the client has closed its side or is gone. A client that has sent its next request already counts as there.
    pub(crate) fn is_closed_by_client(&self) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        match SockRef::from(&self.descriptor()).recv_with_flags(&mut byte, flags) {
            Ok(count) => count == 0,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }

    /// Caps what the kernel queues for this connection.
    pub(crate) fn limit_send_buffer(&self, bytes: usize) {
        // A socket that refuses works all the same.
        let _ = SockRef::from(&self.descriptor()).set_send_buffer_size(bytes);
    }

    /// Closes one or both directions. That the client has gone already is no failure.
    pub(crate) fn shut_down(&self, how: Shutdown) {
        let _ = SockRef::from(&self.descriptor()).shutdown(how);
    }
}
