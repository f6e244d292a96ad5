//! The byte stream of one client's connection, with or without TLS.
//!
//! Reads and writes end when the connection's timeout says so. Without TLS, body reads go straight into the caller's
//! slice. Head reads go into a buffer that all connections of an executor share, so an idle connection holds none.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use cairn_model::u64_of;

use crate::limits::DISCONNECT_CHECK_INTERVAL;
use crate::transport::read_buffer::ReadBuffer;
use crate::transport::socket::Socket;
use crate::transport::timeouts::{TimeoutHandle, TransferTimeout, WaitEnd, WaitKind};
use crate::transport::tls::session::{Session, poll_send, send_without_waiting};

/// The error of a read or write.
#[derive(Debug)]
pub(crate) enum WireError {
    /// The timeout has passed.
    TimedOut,
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

/// The connection of one client.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: Socket,
    /// Present once a TLS handshake has finished.
    session: Option<Box<Session>>,
    timeout: Rc<TimeoutHandle>,
    read_buffer: ReadBuffer,
    /// The counter of the bytes of an unsigned request's response.
    progress: Option<Arc<AtomicU64>>,
}

impl Wire {
    pub(crate) const fn new(socket: Socket, timeout: Rc<TimeoutHandle>) -> Self {
        Self { socket, session: None, timeout, read_buffer: ReadBuffer::new(), progress: None }
    }

    pub(crate) fn timeout(&self) -> &Rc<TimeoutHandle> {
        &self.timeout
    }

    /// Counts the bytes that are handed to the socket from now on in `progress` too.
    pub(crate) fn count_in(&mut self, progress: Option<Arc<AtomicU64>>) {
        self.progress = progress;
    }

    fn note_written(&self, count: usize, written: &mut u64) {
        *written += u64_of(count);
        if let Some(progress) = &self.progress {
            progress.fetch_add(u64_of(count), Ordering::Relaxed);
        }
    }

    /// Returns whether what is sent now is encrypted.
    pub(crate) const fn is_encrypted(&self) -> bool {
        self.session.is_some()
    }

    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_address()
    }

    /// Returns the bytes that have been read and not yet consumed.
    pub(crate) fn buffered(&self) -> &[u8] {
        self.read_buffer.bytes()
    }

    /// Consumes the first `count` bytes of [`Wire::buffered`].
    pub(crate) fn consume(&mut self, count: usize) {
        self.read_buffer.consume(count);
    }

    /// Appends bytes that were read from the socket to [`Wire::buffered`].
    pub(crate) fn buffer(&mut self, bytes: &[u8]) {
        self.read_buffer.append(bytes);
    }

    /// Sends and receives through a TLS session from now on. The session takes over the bytes of [`Wire::buffered`].
    pub(crate) fn start_tls(&mut self, mut session: Box<Session>) {
        session.append_ciphertext(self.read_buffer.bytes());
        self.read_buffer = ReadBuffer::new();
        self.session = Some(session);
    }

    /// Reads from the client, past [`Wire::buffered`]. Returns 0 at its end. Also ready when the timeout ends the wait.
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<Result<usize, WireError>> {
        let polled = match &mut self.session {
            None => self.socket.poll_read(context, out),
            Some(session) => session.poll_read(&mut self.socket, context, out),
        };
        self.or_wait_end(polled, context)
    }

    /// Returns what was polled, or the end of the wait while that is pending.
    fn or_wait_end(
        &self,
        polled: Poll<io::Result<usize>>,
        context: &Context<'_>,
    ) -> Poll<Result<usize, WireError>> {
        match polled {
            Poll::Ready(result) => Poll::Ready(result.map_err(WireError::Io)),
            Poll::Pending => self.poll_wait_end(context).map(Err),
        }
    }

    /// Returns ready when the timeout ends the wait. Otherwise the task is woken when it does.
    pub(crate) fn poll_wait_end(&self, context: &Context<'_>) -> Poll<WireError> {
        self.timeout.poll_end(context).map(|end| match end {
            WaitEnd::Aborted => WireError::Aborted,
            WaitEnd::Expired | WaitEnd::None => WireError::TimedOut,
        })
    }

    /// Reads body bytes: first the buffered ones, then straight from the client into `out`. Returns 0 at the client's
    /// end.
    pub(crate) async fn read(
        &mut self,
        out: &mut [u8],
        timeout: &mut TransferTimeout,
    ) -> Result<usize, WireError> {
        let buffered = self.buffered();
        if !buffered.is_empty() {
            let count = buffered.len().min(out.len());
            out[..count].copy_from_slice(&buffered[..count]);
            self.consume(count);
            return Ok(count);
        }
        let (result, has_waited) =
            self.with_timeout(timeout, |wire, context| wire.poll_read(context, out)).await;
        if !has_waited {
            // A client that sends faster than its bytes are used never makes this task wait, so yield to the others.
            glommio::yield_if_needed().await;
        }
        result
    }

    /// Waits for one read or write for as long as `timeout` allows. Also returns whether it had to wait.
    async fn with_timeout(
        &mut self,
        timeout: &mut TransferTimeout,
        mut poll: impl FnMut(&mut Self, &mut Context<'_>) -> Poll<Result<usize, WireError>>,
    ) -> (Result<usize, WireError>, bool) {
        let mut began = None;
        let result = poll_fn(|context| {
            let polled = poll(self, context);
            if polled.is_pending() && began.is_none() {
                began = Some(self.begin_wait(timeout));
            }
            polled
        })
        .await;
        self.end_wait(began, timeout, *result.as_ref().unwrap_or(&0));
        (result, began.is_some())
    }

    /// Arms the timeout for one wait. Waits are timed by the real clock: they are rare compared with the transfers that
    /// need none.
    fn begin_wait(&self, timeout: &TransferTimeout) -> Instant {
        let began = Instant::now();
        self.timeout.arm(WaitKind::Client, began + timeout.next_wait_max());
        began
    }

    fn end_wait(&self, began: Option<Instant>, timeout: &mut TransferTimeout, bytes: usize) {
        self.timeout.disarm();
        timeout.record(began.map_or(Duration::ZERO, |began| began.elapsed()), bytes);
    }

    /// Writes `head` and then `body`, in one system call when the socket has room. Adds the bytes handed to the socket
    /// to `written`, also on failure.
    pub(crate) async fn write(
        &mut self,
        head: &[u8],
        body: &[u8],
        timeout: &mut TransferTimeout,
        written: &mut u64,
    ) -> Result<(), WireError> {
        if self.session.is_some() {
            return self.write_encrypted(head, body, timeout, written).await;
        }
        let total = head.len() + body.len();
        let mut sent = 0;
        if !head.is_empty() && !body.is_empty() {
            sent = self.socket.try_send(&[IoSlice::new(head), IoSlice::new(body)])?;
            self.note_written(sent, written);
        }
        while sent < total {
            let rest = if sent < head.len() { &head[sent..] } else { &body[sent - head.len()..] };
            let count =
                self.write_some(timeout, |wire, context| wire.socket.poll_write(context, rest)).await?;
            sent += count;
            self.note_written(count, written);
        }
        assert_eq!(sent, total, "a socket takes no more bytes than it was given");
        Ok(())
    }

    /// As [`Wire::write`], through the TLS session. A piece is encrypted once the previous piece is in the socket.
    async fn write_encrypted(
        &mut self,
        head: &[u8],
        body: &[u8],
        timeout: &mut TransferTimeout,
        written: &mut u64,
    ) -> Result<(), WireError> {
        let total = head.len() + body.len();
        let mut encrypted = 0;
        while encrypted < total {
            let (head, body) =
                (&head[encrypted.min(head.len())..], &body[encrypted.saturating_sub(head.len())..]);
            let count = self.session.as_mut().map_or(Ok(0), |session| session.encrypt(head, body))?;
            self.flush(timeout).await?;
            encrypted += count;
            self.note_written(count, written);
        }
        Ok(())
    }

    /// Sends the records that the session holds.
    async fn flush(&mut self, timeout: &mut TransferTimeout) -> Result<(), WireError> {
        while self.session.as_ref().is_some_and(|session| session.has_outgoing()) {
            self.write_some(timeout, |wire, context| match &mut wire.session {
                Some(session) => session.poll_send(&mut wire.socket, context),
                None => Poll::Ready(Ok(0)),
            })
            .await?;
        }
        Ok(())
    }

    /// Waits for one write, however many bytes of it the socket takes.
    async fn write_some(
        &mut self,
        timeout: &mut TransferTimeout,
        mut poll_write: impl FnMut(&mut Self, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Result<usize, WireError> {
        let poll = |wire: &mut Self, context: &mut Context<'_>| {
            let polled = poll_write(wire, context);
            wire.or_wait_end(polled, context)
        };
        self.with_timeout(timeout, poll).await.0
    }

    /// Sends some of what a session during its handshake has to send. Also ready when the timeout ends the wait.
    pub(crate) fn poll_send_handshake(
        &mut self,
        context: &mut Context<'_>,
        session: &mut rustls::ServerConnection,
    ) -> Poll<Result<usize, WireError>> {
        let polled = poll_send(session, &mut self.socket, context);
        self.or_wait_end(polled, context)
    }

    /// Sends the alert of a session whose handshake has failed, as far as the socket has room.
    pub(crate) fn send_alert_of(&self, session: &mut rustls::ServerConnection) {
        send_without_waiting(session, &self.socket);
    }

    /// Sends `bytes` as far as the socket has room. Does not wait.
    pub(crate) fn send_without_waiting(&self, bytes: &[u8]) {
        // Best effort: the connection is closed next, which also tells the client.
        let _ = self.socket.try_send(&[IoSlice::new(bytes)]);
    }

    /// Returns whether the client has closed its side or disconnected, even if it sent bytes that are still unread.
    pub(crate) fn is_hung_up(&self) -> bool {
        self.socket.is_hung_up()
    }

    /// Waits until [`Wire::is_hung_up`]. It asks the kernel once at first and then every [`DISCONNECT_CHECK_INTERVAL`], so
    /// only requests that wait for it pay for it.
    pub(crate) async fn wait_hung_up(&self) {
        while !self.is_hung_up() {
            glommio::timer::sleep(DISCONNECT_CHECK_INTERVAL).await;
        }
    }

    /// Limits how many bytes the kernel queues for this connection.
    pub(crate) fn limit_send_buffer(&self, bytes: usize) {
        self.socket.limit_send_buffer(bytes);
    }

    /// Prepares a TLS `close_notify`, which tells the client that the response was not truncated. Without TLS this does
    /// nothing.
    pub(crate) fn prepare_close_notify(&mut self) {
        if let Some(session) = &mut self.session {
            session.prepare_close_notify();
        }
    }

    /// Sends a prepared `close_notify` and closes one or both directions. Ignores failures: the client may have
    /// disconnected already.
    pub(crate) fn shut_down(&mut self, how: Shutdown) {
        if let Some(session) = &mut self.session {
            session.send_without_waiting(&self.socket);
        }
        self.socket.shut_down(how);
    }
}
