//! One client's connection with the bytes that were read ahead: reads and writes that end when the connection's watch
//! says so.
//!
//! Owns the socket and, once a handshake has made one, the TLS session over it. Without TLS reads go straight into the
//! caller's slice; head reads go into a buffer shared by the whole executor, so that an idle connection holds none.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::ahead::Ahead;
use crate::deadline::{Pace, Phase, Signal, Watch};
use crate::socket::Socket;
use crate::tls::Session;

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
    socket: Socket,
    session: Option<Box<Session>>,
    watch: Rc<Watch>,
    ahead: Ahead,
}

impl Wire {
    pub(crate) const fn new(socket: Socket, watch: Rc<Watch>) -> Self {
        Self { socket, session: None, watch, ahead: Ahead::new() }
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_address()
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

    /// From now on everything goes through this session. What is [`Wire::ahead`] belongs to it.
    pub(crate) fn secure(&mut self, mut session: Box<Session>) {
        session.keep_incoming(self.ahead.bytes());
        self.ahead = Ahead::new();
        self.session = Some(session);
    }

    /// Reads what the client sends, past [`Wire::ahead`]; 0 at its end. Ready also when the watch ends the wait.
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<Result<usize, WireError>> {
        let polled = match &mut self.session {
            None => self.socket.poll_read(context, out),
            Some(session) => session.poll_read(&mut self.socket, context, out),
        };
        self.or_end_of_wait(polled, context)
    }

    /// What was polled for, or else the end of the wait.
    fn or_end_of_wait(
        &self,
        polled: Poll<io::Result<usize>>,
        context: &Context<'_>,
    ) -> Poll<Result<usize, WireError>> {
        match polled {
            Poll::Ready(result) => Poll::Ready(result.map_err(WireError::Io)),
            Poll::Pending => self.poll_end_of_wait(context),
        }
    }

    /// Ready when the watch ends the wait; else the task is woken when it does.
    pub(crate) fn poll_end_of_wait<T>(&self, context: &Context<'_>) -> Poll<Result<T, WireError>> {
        self.watch.poll_signal(context).map(|signal| match signal {
            Signal::Aborted => Err(WireError::Aborted),
            Signal::Expired | Signal::Quiet => Err(WireError::Expired),
        })
    }

    /// Reads body bytes: those read ahead first, then what comes, straight into `out`. 0 at the client's end.
    pub(crate) async fn read(&mut self, out: &mut [u8], pace: &mut Pace) -> Result<usize, WireError> {
        let ahead = self.ahead();
        if !ahead.is_empty() {
            let count = ahead.len().min(out.len());
            out[..count].copy_from_slice(&ahead[..count]);
            self.consume(count);
            return Ok(count);
        }
        let (result, has_waited) = self.paced(pace, |wire, context| wire.poll_read(context, out)).await;
        if !has_waited {
            // A client that sends faster than its bytes are used never makes us wait; the others want their turn.
            glommio::yield_if_needed().await;
        }
        result
    }

    /// Waits for one read or write, as long as the client's pace allows; also says whether there was anything to wait for.
    async fn paced(
        &mut self,
        pace: &mut Pace,
        mut poll: impl FnMut(&mut Self, &mut Context<'_>) -> Poll<Result<usize, WireError>>,
    ) -> (Result<usize, WireError>, bool) {
        let mut began = None;
        let result = poll_fn(|context| {
            let polled = poll(self, context);
            if polled.is_pending() && began.is_none() {
                began = Some(self.begin_wait(pace));
            }
            polled
        })
        .await;
        self.end_wait(began, pace, *result.as_ref().unwrap_or(&0));
        (result, began.is_some())
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

    /// Writes `head` and then `body`, in one system call when the socket has room. Counts what was handed to the socket
    /// in `written`, also when it fails.
    pub(crate) async fn write(
        &mut self,
        head: &[u8],
        body: &[u8],
        pace: &mut Pace,
        written: &mut u64,
    ) -> Result<(), WireError> {
        if self.session.is_some() {
            return self.write_sealed(head, body, pace, written).await;
        }
        let total = head.len() + body.len();
        let mut sent = 0;
        if !head.is_empty() && !body.is_empty() {
            sent = self.socket.try_send(&[IoSlice::new(head), IoSlice::new(body)])?;
            *written += sent as u64;
        }
        while sent < total {
            let rest = if sent < head.len() { &head[sent..] } else { &body[sent - head.len()..] };
            let count = self.write_some(pace, |wire, context| wire.socket.poll_write(context, rest)).await?;
            sent += count;
            *written += count as u64;
        }
        Ok(())
    }

    /// As [`Wire::write`], through the session: a piece is sealed when the piece before is with the socket.
    async fn write_sealed(
        &mut self,
        head: &[u8],
        body: &[u8],
        pace: &mut Pace,
        written: &mut u64,
    ) -> Result<(), WireError> {
        let total = head.len() + body.len();
        let mut sealed = 0;
        while sealed < total {
            let (head, body) = (&head[sealed.min(head.len())..], &body[sealed.saturating_sub(head.len())..]);
            let count = self.session.as_mut().map_or(Ok(0), |session| session.seal(head, body))?;
            self.flush(pace).await?;
            sealed += count;
            *written += count as u64;
        }
        Ok(())
    }

    /// Sends what the session has to send.
    async fn flush(&mut self, pace: &mut Pace) -> Result<(), WireError> {
        while self.session.as_ref().is_some_and(|session| session.has_outgoing()) {
            self.write_some(pace, |wire, context| match &mut wire.session {
                Some(session) => session.poll_send(&mut wire.socket, context),
                None => Poll::Ready(Ok(0)),
            })
            .await?;
        }
        Ok(())
    }

    /// Waits for one write, however much of it the socket takes.
    async fn write_some(
        &mut self,
        pace: &mut Pace,
        mut poll_write: impl FnMut(&mut Self, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Result<usize, WireError> {
        let poll = |wire: &mut Self, context: &mut Context<'_>| {
            let polled = poll_write(wire, context);
            wire.or_end_of_wait(polled, context)
        };
        self.paced(pace, poll).await.0
    }

    /// Sends some of what a session under way has to send. Ready also when the watch ends the wait.
    pub(crate) fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        session: &mut rustls::ServerConnection,
    ) -> Poll<Result<usize, WireError>> {
        let polled = crate::tls::poll_send(session, &mut self.socket, context);
        self.or_end_of_wait(polled, context)
    }

    /// What a session that has failed still has to say, as far as there is room for it.
    pub(crate) fn send_last_records(&self, session: &mut rustls::ServerConnection) {
        crate::tls::send_if_there_is_room(session, &self.socket);
    }

    /// Hands bytes to the socket as far as it has room: last words, which nobody waits for.
    pub(crate) fn send_last_words(&self, bytes: &[u8]) {
        // Who does not take them is told by the end of the connection.
        let _ = self.socket.try_send(&[IoSlice::new(bytes)]);
    }

    /// Whether the client has closed its side or is gone. A client that has sent its next request already counts as there;
    /// with TLS, where a client sends a record before it closes, as long as it has not closed.
    pub(crate) fn is_closed_by_client(&self) -> bool {
        if self.session.is_some() { self.is_hung_up() } else { self.socket.is_at_end() }
    }

    /// Whether the client has closed its side or is gone, whatever of what it sent is still unread.
    pub(crate) fn is_hung_up(&self) -> bool {
        self.socket.is_hung_up()
    }

    /// Caps what the kernel queues for this connection.
    pub(crate) fn limit_send_buffer(&self, bytes: usize) {
        self.socket.limit_send_buffer(bytes);
    }

    /// This end is no cut: all that was to be sent was sent. Only TLS can tell the client so.
    pub(crate) fn say_goodbye(&mut self) {
        if let Some(session) = &mut self.session {
            session.say_goodbye();
        }
    }

    /// Closes one or both directions. That the client has gone already is no failure.
    pub(crate) fn shut_down(&mut self, how: Shutdown) {
        if let Some(session) = &mut self.session {
            session.send_last_words(&self.socket);
        }
        self.socket.shut_down(how);
    }
}
