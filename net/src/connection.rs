//! One connection from accept to close: heads are read, requests answered in the order they came, what is left of a
//! body is read away, and the connection is kept or closed.
//!
//! Invariants: nothing is read as a request unless it is certain where the one before ended; a refused head is
//! answered and ends the connection; a panic of the service ends its exchange, never the executor.

use std::future::poll_fn;
use std::net::{Shutdown, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Instant;

use cairn_http1::{ConnectionOption, HeadParser, Method, RequestHead};
use futures_lite::FutureExt;

use crate::body::{BodyRest, RequestBody};
use crate::deadline::{Pace, Phase};
use crate::figures::TimeoutPhase;
use crate::limits::{DISCARD_BYTES_MAX, LINGER, LINGER_BYTES_MAX};
use crate::respond::{Manner, Sent, send};
use crate::server::Server;
use crate::service::{Exchange, Outcome, Rejection, Request, Response, ResponseBody, Service};
use crate::tls::{Greeting, greet};
use crate::wire::{Wire, WireError};

/// What becomes of the connection after an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// The next request may come.
    Keep,
    /// Close, but let the client read what was sent.
    Linger,
    /// Close: nothing was left to say.
    Close,
    /// Close: there is nobody to be polite to, or a cut is the message.
    Cut,
}

/// Why no further request comes.
enum NoHead {
    /// The client closed, idled too long, or the process stops: close without a word.
    Silent,
    /// Answer, then close.
    Refused(Rejection),
}

/// Serves a connection until it is closed.
pub(crate) async fn run<S: Service>(server: &Rc<Server<S>>, wire: &mut Wire, peer: SocketAddr) {
    let end = match &server.tls {
        None => serve_requests(server, wire, peer).await,
        Some(tls) => match greet(server, wire, tls).await {
            Greeting::Secured => serve_requests(server, wire, peer).await,
            Greeting::PlainHttp => refuse(server, wire, Rejection::PlainHttp).await,
            // The reason may still be on its way.
            Greeting::Refused => Next::Linger,
            Greeting::Failed => Next::Cut,
        },
    };
    match end {
        Next::Linger => linger(server, wire).await,
        Next::Close => wire.say_goodbye(),
        Next::Keep | Next::Cut => {}
    }
    // The ring may hold the socket for a moment longer than we do; the client is told now.
    wire.shut_down(Shutdown::Both);
}

/// Answers requests until none may come any more.
async fn serve_requests<S: Service>(server: &Rc<Server<S>>, wire: &mut Wire, peer: SocketAddr) -> Next {
    let Ok(local) = wire.local_address() else { return Next::Cut };
    let proxies = server.trusted_proxies.as_ref().filter(|proxies| proxies.trust(peer.ip()));
    let is_secure = server.tls.is_some();
    loop {
        match read_head(server, wire).await {
            Ok(head) => {
                let (started, id) = (server.time(), server.next_request_id());
                let client = proxies.map_or(peer.ip(), |proxies| proxies.client_behind(peer.ip(), &head));
                let request = Request { head, peer, client, local, is_secure, started, id };
                let _open = server.figures.open_request();
                match exchange(server, wire, &request).await {
                    Next::Keep => glommio::yield_if_needed().await,
                    end => return end,
                }
            }
            Err(NoHead::Silent) => return Next::Close,
            Err(NoHead::Refused(rejection)) => return refuse(server, wire, rejection).await,
        }
    }
}

/// Reads up to the end of the next head. Bytes past it stay in the wire.
async fn read_head<S: Service>(server: &Server<S>, wire: &mut Wire) -> Result<RequestHead, NoHead> {
    let mut parser = HeadParser::new(server.limits.head);
    let mut head_deadline = None;
    loop {
        if !wire.ahead().is_empty() {
            match parser.parse(wire.ahead()) {
                Ok(Some((head, length))) => {
                    wire.consume(length);
                    wire.watch().disarm();
                    return Ok(head);
                }
                Ok(None) => {}
                Err(error) => return Err(NoHead::Refused(Rejection::Head(error))),
            }
            let deadline = *head_deadline.get_or_insert_with(|| server.now() + server.limits.head_timeout);
            wire.watch().arm(Phase::Waiting, deadline);
        } else if server.drain.is_begun() {
            return Err(NoHead::Silent);
        } else {
            wire.watch().arm(Phase::Idle, server.now() + server.limits.idle_timeout);
        }
        match read_more(server, wire).await {
            Ok(count) if count > 0 => {}
            Err(WireError::Expired) if head_deadline.is_some() => {
                server.figures.timed_out(TimeoutPhase::Head);
                return Err(NoHead::Refused(Rejection::HeadTimeout));
            }
            // A drain ends idle waits too, and that is no fault of the client.
            Err(WireError::Expired) if !server.drain.is_begun() => {
                server.figures.timed_out(TimeoutPhase::Idle);
                return Err(NoHead::Silent);
            }
            _ => return Err(NoHead::Silent),
        }
    }
}

/// Waits for bytes of a head, with the executor's one buffer, and keeps them in the wire; 0 at the socket's end.
async fn read_more<S: Service>(server: &Server<S>, wire: &mut Wire) -> Result<usize, WireError> {
    poll_fn(|context| {
        let mut scratch = server.scratch.borrow_mut();
        let count = ready!(wire.poll_read(context, &mut scratch))?;
        wire.keep(&scratch[..count]);
        Poll::Ready(Ok(count))
    })
    .await
}

/// Answers one request.
async fn exchange<S: Service>(server: &Server<S>, wire: &mut Wire, request: &Request) -> Next {
    let mut body = RequestBody::new(wire, &request.head, &server.limits);
    // Boxed, so that a connection that waits for its next request does not hold room for the largest of all calls.
    let call = Box::pin(server.service.call(request, &mut body));
    let called = AssertUnwindSafe(call).catch_unwind().await;
    // A read that the service gave up has left its deadline behind.
    body.end_wait();
    let rest = body.into_rest();
    if rest.timed_out {
        server.figures.timed_out(TimeoutPhase::Body);
    }
    let (response, panicked) = match called {
        Ok(response) => (response, false),
        Err(_) => {
            // What the panic said has been told by the panic hook; this says whose request it was.
            tracing::error!(target: "service", request_id = request.id, "a request ended with a panic");
            (server.service.reject(Rejection::Panic, &request.id), true)
        }
    };
    let takes_chunks = request.head.is_version_1_1();
    let ends_by_closing = matches!(response.body, ResponseBody::Chunked { .. }) && !takes_chunks;
    let keep = !panicked && !response.close && !ends_by_closing && may_keep(server, request, &rest);
    let connection = connection_option(request, keep);
    let manner = Manner { takes_chunks, ..response_manner(server, request.head.method(), connection) };
    let sent = respond(server, wire, &manner, response, Some((request, rest.read))).await;
    match sent.outcome {
        Outcome::Complete if !keep => Next::Linger,
        Outcome::Complete if discard(server, wire, rest.remaining).await => Next::Keep,
        _ => Next::Cut,
    }
}

fn may_keep<S: Service>(server: &Server<S>, request: &Request, rest: &BodyRest) -> bool {
    request.head.keep_alive()
        && !rest.framing_is_lost
        && rest.remaining <= DISCARD_BYTES_MAX
        && !server.drain.is_begun()
}

/// HTTP/1.1 keeps by default, HTTP/1.0 must be told.
fn connection_option(request: &Request, keep: bool) -> ConnectionOption {
    match (keep, request.head.is_version_1_1()) {
        (true, true) => ConnectionOption::Unsaid,
        (true, false) => ConnectionOption::KeepAlive,
        (false, _) => ConnectionOption::Close,
    }
}

fn response_manner<'a, S: Service>(
    server: &'a Server<S>,
    method: &'a Method,
    connection: ConnectionOption,
) -> Manner<'a> {
    Manner { method, connection, takes_chunks: false, date: server.date(), limits: &server.limits }
}

/// Sends a response and reports the exchange.
async fn respond<S: Service>(
    server: &Server<S>,
    wire: &mut Wire,
    manner: &Manner<'_>,
    response: Response,
    request: Option<(&Request, u64)>,
) -> Sent {
    let mut buffer = server.take_buffer();
    let sent = send(wire, &response.head, response.body, manner, &mut buffer).await;
    server.give_buffer(buffer);
    if sent.outcome == Outcome::DeadlinePassed && !server.drain.is_begun() {
        server.figures.timed_out(TimeoutPhase::Response);
    }
    let ended = server.time();
    let started = request.map_or(ended, |(request, _)| request.started);
    server.service.completed(&Exchange {
        request: request.map(|(request, _)| request),
        response: &response.meta,
        bytes_in: request.map_or(0, |(_, read)| read),
        bytes_out: sent.bytes,
        latency: ended.saturating_duration_since(started),
        outcome: sent.outcome,
    });
    sent
}

/// Answers what is no readable request.
async fn refuse<S: Service>(server: &Server<S>, wire: &mut Wire, rejection: Rejection) -> Next {
    let response = server.service.reject(rejection, &server.next_request_id());
    let method = method_ahead(wire.ahead());
    let manner = response_manner(server, &method, ConnectionOption::Close);
    match respond(server, wire, &manner, response, None).await.outcome {
        Outcome::Complete => Next::Linger,
        _ => Next::Cut,
    }
}

/// The method of a request that could not be read, as far as it decides how the answer is framed: a client that sent
/// HEAD reads no body, and would take one for the next response.
fn method_ahead(bytes: &[u8]) -> Method {
    if bytes.starts_with(b"HEAD ") { Method::HEAD } else { Method::GET }
}

/// Refuses a connection before anything was read from it. With TLS without a word: a handshake would cost what the limit
/// on connections is to save.
pub(crate) async fn turn_away<S: Service>(server: &Server<S>, wire: &mut Wire) {
    server.figures.refused.add(1);
    if server.tls.is_none()
        && refuse(server, wire, Rejection::TooManyConnections).await == Next::Linger
        && let Some(_slot) = server.linger_slot()
    {
        // Its request is on the way or has come already; see [`linger`].
        linger(server, wire).await;
    }
    wire.shut_down(Shutdown::Both);
}

/// Reads `remaining` bytes of a body away, so that the next request begins at the right byte.
async fn discard<S: Service>(server: &Server<S>, wire: &mut Wire, mut remaining: u64) -> bool {
    if remaining == 0 {
        return true;
    }
    let mut pace = Pace::new(server.limits.body_stall_timeout, server.limits.rate_min);
    let mut waste = vec![0; crate::limits::HEAD_READ_BYTES];
    while remaining > 0 {
        let wanted = usize::try_from(remaining).unwrap_or(usize::MAX).min(waste.len());
        match wire.read(&mut waste[..wanted], &mut pace).await {
            Ok(count) if count > 0 => remaining -= count as u64,
            _ => return false,
        }
    }
    true
}

/// Says that nothing more will be sent, and reads away what still comes until the client closes too, within bounds:
/// closing at once would reset the connection if bytes are unread, and the client could lose the response.
async fn linger<S: Service>(server: &Server<S>, wire: &mut Wire) {
    wire.say_goodbye();
    wire.shut_down(Shutdown::Write);
    wire.consume(wire.ahead().len());
    let mut read = 0_u64;
    let deadline: Instant = server.time() + LINGER;
    wire.watch().arm(Phase::Waiting, deadline);
    while read < LINGER_BYTES_MAX {
        let polled = poll_fn(|context| {
            let mut scratch = server.scratch.borrow_mut();
            wire.poll_read(context, &mut scratch)
        })
        .await;
        match polled {
            Ok(count) if count > 0 => read += count as u64,
            _ => return,
        }
    }
}
