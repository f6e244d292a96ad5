//! The beginning of a connection to a port with TLS: from the first byte to a session, or to the reason why there is none.
//!
//! Everything a client sends and takes until then has one deadline. Who speaks plain HTTP is told so in plain HTTP.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Poll, ready};

use rustls::ServerConnection;
use rustls::server::Acceptor;

use super::Tls;
use super::session::{CipherBuffer, Session, feed};
use crate::deadline::Phase;
use crate::figures::{HandshakeEnd, TimeoutPhase};
use crate::limits::{CLIENT_LOOK, HANDSHAKE_READ_BYTES};
use crate::server::Server;
use crate::service::Service;
use crate::wire::{Wire, WireError};

/// The first byte of every TLS connection: the type of a handshake record (RFC 8446 section 5.1).
const HANDSHAKE_RECORD: u8 = 22;

/// How a connection begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Greeting {
    /// In a session; requests may come.
    Secured,
    /// With a request without TLS, whose first bytes are [`Wire::ahead`].
    PlainHttp,
    /// Not at all, and the client was told.
    Refused,
    /// Not at all.
    Failed,
}

/// Why there is no session.
enum NoSession {
    PlainHttp,
    /// The client has gone, the process stops, or a thread has failed.
    Silent,
    Expired,
    /// What came is no TLS, or none that both sides speak.
    Refused,
}

impl From<WireError> for NoSession {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Expired => Self::Expired,
            WireError::Aborted | WireError::Io(_) => Self::Silent,
        }
    }
}

/// Makes a session with the client of `wire`, which has read nothing yet.
pub(crate) async fn greet<S: Service>(server: &Server<S>, wire: &mut Wire, tls: &Tls) -> Greeting {
    let (greeting, end) = match shake_hands(server, wire, tls).await {
        Ok(connection) => {
            let is_resumed = connection.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
            let end = if is_resumed { HandshakeEnd::Resumed } else { HandshakeEnd::Full };
            wire.secure(Box::new(Session::new(connection, Rc::clone(&server.cipher_buffer))));
            (Greeting::Secured, end)
        }
        Err(NoSession::PlainHttp) => (Greeting::PlainHttp, HandshakeEnd::PlainHttp),
        Err(NoSession::Silent) => (Greeting::Failed, HandshakeEnd::Gone),
        Err(NoSession::Refused) => (Greeting::Refused, HandshakeEnd::Refused),
        // A drain ends idle waits too, and that is no fault of the client.
        Err(NoSession::Expired) if server.drain.is_begun() => (Greeting::Failed, HandshakeEnd::Gone),
        Err(NoSession::Expired) => {
            server.figures.timed_out(TimeoutPhase::Handshake);
            (Greeting::Failed, HandshakeEnd::TimedOut)
        }
    };
    wire.watch().disarm();
    server.figures.shook_hands(end);
    greeting
}

async fn shake_hands<S: Service>(
    server: &Server<S>,
    wire: &mut Wire,
    tls: &Tls,
) -> Result<ServerConnection, NoSession> {
    let deadline = server.now() + server.limits.head_timeout;
    wire.watch().arm(Phase::Idle, deadline);
    read_more(&server.cipher_buffer, wire).await?;
    wire.watch().arm(Phase::Waiting, deadline);
    match wire.ahead().first() {
        Some(&HANDSHAKE_RECORD) => {}
        Some(first) if first.is_ascii_uppercase() => return Err(NoSession::PlainHttp),
        _ => return Err(NoSession::Refused),
    }
    let accepted = read_hello(server, wire).await?;
    let mut connection = answer(wire, tls, accepted).await?;
    loop {
        while !wire.ahead().is_empty() && connection.is_handshaking() {
            take(&mut connection, wire)?;
        }
        // What TLS 1.3 still sends are tickets: they leave together with the first response. A client of TLS 1.2 waits.
        let is_over = !connection.is_handshaking();
        if is_over && connection.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3) {
            return Ok(connection);
        }
        while connection.wants_write() {
            poll_fn(|context| wire.poll_send(context, &mut connection)).await?;
        }
        if is_over {
            return Ok(connection);
        }
        read_more(&server.cipher_buffer, wire).await?;
    }
}

/// Waits for the answer to a hello, for as long as the client has and is there: a hello that nobody waits for any more is
/// left out, so that those of clients that have gone hold up no others.
async fn answer(
    wire: &Wire,
    tls: &Tls,
    accepted: rustls::server::Accepted,
) -> Result<ServerConnection, NoSession> {
    let answered = async {
        let answered = tls.threads.answer(accepted, tls.config()).await.ok_or(NoSession::Silent)?;
        answered.map_err(|(_, alert)| refuse(wire, alert))
    };
    let expired = async {
        Err(poll_fn(|context| wire.poll_end_of_wait::<()>(context))
            .await
            .err()
            .map_or(NoSession::Silent, NoSession::from))
    };
    let gone = async {
        while !wire.is_hung_up() {
            glommio::timer::sleep(CLIENT_LOOK).await;
        }
        Err(NoSession::Silent)
    };
    futures_lite::future::or(answered, futures_lite::future::or(expired, gone)).await
}

/// Reads up to the end of the client's hello.
async fn read_hello<S: Service>(
    server: &Server<S>,
    wire: &mut Wire,
) -> Result<rustls::server::Accepted, NoSession> {
    let mut acceptor = Acceptor::default();
    loop {
        while !wire.ahead().is_empty() {
            let mut bytes = wire.ahead();
            let before = bytes.len();
            acceptor.read_tls(&mut bytes).map_err(|_| NoSession::Refused)?;
            let count = before - bytes.len();
            wire.consume(count);
            match acceptor.accept() {
                Ok(Some(accepted)) => return Ok(accepted),
                Ok(None) if count > 0 => {}
                Ok(None) => return Err(NoSession::Refused),
                Err((_, alert)) => return Err(refuse(wire, alert)),
            }
        }
        read_more(&server.cipher_buffer, wire).await?;
    }
}

/// Gives the session some of what has come.
fn take(connection: &mut ServerConnection, wire: &mut Wire) -> Result<(), NoSession> {
    let mut bytes = wire.ahead();
    let before = bytes.len();
    let fed = feed(connection, &mut bytes);
    let count = before - bytes.len();
    wire.consume(count);
    if fed.is_err() || count == 0 {
        wire.send_last_records(connection);
        return Err(NoSession::Refused);
    }
    Ok(())
}

/// Tells the client why there will be no session (an alert, RFC 8446 section 6.2).
fn refuse(wire: &Wire, mut alert: rustls::server::AcceptedAlert) -> NoSession {
    let mut bytes = Vec::new();
    // Writing to memory does not fail.
    if alert.write_all(&mut bytes).is_ok() {
        wire.send_last_words(&bytes);
    }
    NoSession::Refused
}

/// Waits for bytes and keeps them in the wire.
async fn read_more(buffer: &CipherBuffer, wire: &mut Wire) -> Result<(), WireError> {
    poll_fn(|context| {
        let mut buffer = buffer.borrow_mut();
        let count = ready!(wire.poll_read(context, &mut buffer[..HANDSHAKE_READ_BYTES]))?;
        if count == 0 {
            return Poll::Ready(Err(WireError::Io(io::ErrorKind::UnexpectedEof.into())));
        }
        wire.keep(&buffer[..count]);
        Poll::Ready(Ok(()))
    })
    .await
}
