//! The start of a connection to a port with TLS: from its first byte to a session, or to a refusal.
//!
//! One deadline covers everything that the client sends and receives until then. A client that sends plain HTTP gets a
//! response in plain HTTP.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Poll, ready};

use rustls::ServerConnection;
use rustls::server::Acceptor;

use crate::connection::context::PortContext;
use crate::limits::{DISCONNECT_CHECK_INTERVAL, HANDSHAKE_READ_BYTES};
use crate::metrics::{HandshakeOutcome, TimeoutPhase};
use crate::service::interface::Service;
use crate::transport::timeouts::WaitKind;
use crate::transport::tls::Tls;
use crate::transport::tls::session::{Session, TlsReadBuffer, feed};
use crate::transport::wire::{Wire, WireError};

/// The first byte of every TLS connection: the type of a handshake record (RFC 8446 section 5.1).
const HANDSHAKE_RECORD: u8 = 22;

/// The result of starting a connection with TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TlsStart {
    /// With a session; requests may come.
    Established,
    /// With a request without TLS, whose first bytes are in [`Wire::buffered`].
    PlainHttp,
    /// Without a session; the client was sent an alert where possible.
    Refused,
    /// Without a session and without an alert.
    Failed,
}

/// The error of a handshake without a session.
enum HandshakeError {
    PlainHttp,
    /// The client disconnected, the process stops, too many hellos wait, or a handshake thread panicked.
    Closed,
    TimedOut,
    /// The bytes are not TLS, or no version and parameters suit both sides.
    Refused,
}

impl From<WireError> for HandshakeError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::TimedOut => Self::TimedOut,
            WireError::Aborted | WireError::Io(_) => Self::Closed,
        }
    }
}

/// Makes a session with the client. Nothing has been read from `wire` yet.
pub(crate) async fn start_tls<S: Service>(context: &PortContext<S>, wire: &mut Wire, tls: &Tls) -> TlsStart {
    let (start, outcome) = match handshake(context, wire, tls).await {
        Ok(connection) => {
            let is_resumed = connection.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
            let outcome = if is_resumed { HandshakeOutcome::Resumed } else { HandshakeOutcome::Full };
            wire.start_tls(Box::new(Session::new(connection, Rc::clone(&context.tls_read_buffer))));
            (TlsStart::Established, outcome)
        }
        Err(HandshakeError::PlainHttp) => (TlsStart::PlainHttp, HandshakeOutcome::PlainHttp),
        Err(HandshakeError::Closed) => (TlsStart::Failed, HandshakeOutcome::Disconnected),
        Err(HandshakeError::Refused) => (TlsStart::Refused, HandshakeOutcome::Refused),
        // A drain and an eviction end idle waits too, and that is not a timeout of the client.
        Err(HandshakeError::TimedOut) if context.drain.is_begun() || wire.timeout().is_evicted() => {
            (TlsStart::Failed, HandshakeOutcome::Disconnected)
        }
        Err(HandshakeError::TimedOut) => {
            context.metrics.record_timeout(TimeoutPhase::Handshake);
            (TlsStart::Failed, HandshakeOutcome::TimedOut)
        }
    };
    wire.timeout().disarm();
    context.metrics.record_handshake(outcome);
    start
}

async fn handshake<S: Service>(
    context: &PortContext<S>,
    wire: &mut Wire,
    tls: &Tls,
) -> Result<ServerConnection, HandshakeError> {
    let now = context.cached_now();
    let deadline = now + context.limits.head_timeout;
    wire.timeout().arm_idle(now, deadline.min(now + context.limits.first_request_timeout));
    read_more(&context.tls_read_buffer, wire).await?;
    wire.timeout().arm(WaitKind::Client, deadline);
    match wire.buffered().first() {
        Some(&HANDSHAKE_RECORD) => {}
        Some(first) if first.is_ascii_uppercase() => return Err(HandshakeError::PlainHttp),
        _ => return Err(HandshakeError::Refused),
    }
    let accepted = read_hello(context, wire).await?;
    let mut connection = answer_hello(wire, tls, accepted).await?;
    loop {
        while !wire.buffered().is_empty() && connection.is_handshaking() {
            feed_buffered(&mut connection, wire)?;
        }
        // What TLS 1.3 sends after the handshake are tickets. They leave together with the first response. A client of
        // TLS 1.2 waits for the end of the handshake.
        let is_over = !connection.is_handshaking();
        if is_over && connection.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3) {
            return Ok(connection);
        }
        while connection.wants_write() {
            poll_fn(|task| wire.poll_send_handshake(task, &mut connection)).await?;
        }
        if is_over {
            return Ok(connection);
        }
        read_more(&context.tls_read_buffer, wire).await?;
    }
}

/// Waits until a handshake thread has answered the hello, the timeout has passed or the client has disconnected. The
/// threads skip a hello that is no longer waited for, so disconnected clients do not delay others.
async fn answer_hello(
    wire: &Wire,
    tls: &Tls,
    accepted: rustls::server::Accepted,
) -> Result<ServerConnection, HandshakeError> {
    let answered = async {
        let answer = tls.threads().answer(accepted, tls.config()).await.ok_or(HandshakeError::Closed)?;
        answer.map_err(|(_, alert)| send_alert(wire, alert))
    };
    let expired = async { Err(HandshakeError::from(poll_fn(|task| wire.poll_wait_end(task)).await)) };
    let disconnected = async {
        while !wire.is_hung_up() {
            glommio::timer::sleep(DISCONNECT_CHECK_INTERVAL).await;
        }
        Err(HandshakeError::Closed)
    };
    futures_lite::future::or(answered, futures_lite::future::or(expired, disconnected)).await
}

/// Reads to the end of the client's hello.
async fn read_hello<S: Service>(
    context: &PortContext<S>,
    wire: &mut Wire,
) -> Result<rustls::server::Accepted, HandshakeError> {
    let mut acceptor = Acceptor::default();
    loop {
        while !wire.buffered().is_empty() {
            let mut bytes = wire.buffered();
            let before = bytes.len();
            acceptor.read_tls(&mut bytes).map_err(|_| HandshakeError::Refused)?;
            let count = before - bytes.len();
            wire.consume(count);
            match acceptor.accept() {
                Ok(Some(accepted)) => return Ok(accepted),
                Ok(None) if count > 0 => {}
                Ok(None) => return Err(HandshakeError::Refused),
                Err((_, alert)) => return Err(send_alert(wire, alert)),
            }
        }
        read_more(&context.tls_read_buffer, wire).await?;
    }
}

/// Passes some of the buffered bytes to the session.
fn feed_buffered(connection: &mut ServerConnection, wire: &mut Wire) -> Result<(), HandshakeError> {
    let mut bytes = wire.buffered();
    let before = bytes.len();
    let fed = feed(connection, &mut bytes);
    let count = before - bytes.len();
    wire.consume(count);
    if fed.is_err() || count == 0 {
        wire.send_alert_of(connection);
        return Err(HandshakeError::Refused);
    }
    Ok(())
}

/// Tells the client why there will be no session (RFC 8446 section 6.2).
fn send_alert(wire: &Wire, mut alert: rustls::server::AcceptedAlert) -> HandshakeError {
    let mut bytes = Vec::new();
    // Writing to memory does not fail.
    if alert.write_all(&mut bytes).is_ok() {
        wire.send_without_waiting(&bytes);
    }
    HandshakeError::Refused
}

/// Waits for bytes and appends them to the wire's buffer. The client's end is an error.
async fn read_more(buffer: &TlsReadBuffer, wire: &mut Wire) -> Result<(), WireError> {
    poll_fn(|task| {
        let mut buffer = buffer.borrow_mut();
        let count = ready!(wire.poll_read(task, &mut buffer[..HANDSHAKE_READ_BYTES]))?;
        if count == 0 {
            return Poll::Ready(Err(WireError::Io(io::ErrorKind::UnexpectedEof.into())));
        }
        wire.buffer(&buffer[..count]);
        Poll::Ready(Ok(()))
    })
    .await
}
