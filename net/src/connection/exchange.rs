//! One exchange: calls the service, sends its response and decides whether the connection is kept.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use cairn_http1::{ConnectionOption, Method};
use futures_lite::FutureExt;

use crate::connection::closing::{Close, discard_body};
use crate::connection::context::PortContext;
use crate::connection::response::{ResponseFraming, Sent, send};
use crate::limits::DISCARD_BYTES_MAX;
use crate::metrics::TimeoutPhase;
use crate::service::interface::{
    Exchange, ExchangeOutcome, Rejection, Request, Response, ResponseBody, Service,
};
use crate::service::request_body::{BodyState, RequestBody};
use crate::transport::timeouts::WaitEnd;
use crate::transport::tls::Tls;
use crate::transport::wire::Wire;

/// The state of the connection after an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AfterExchange {
    /// The next request may come.
    KeepAlive,
    /// The connection is closed.
    Close(Close),
}

/// Answers one request. One that nobody has signed lets others pass, and may have to make room for another one; then its
/// connection is cut.
pub(crate) async fn exchange<S: Service>(
    context: &PortContext<S>,
    wire: &mut Wire,
    request: &Request,
) -> AfterExchange {
    if context.service.is_unsigned(request) {
        // Boxed, so that connections with signed requests do not hold room for it.
        return Box::pin(exchange_unsigned(context, wire, request)).await;
    }
    exchange_any(context, wire, request).await
}

async fn exchange_unsigned<S: Service>(
    context: &PortContext<S>,
    wire: &mut Wire,
    request: &Request,
) -> AfterExchange {
    let mut unsigned = context.unsigned.begin(request.client, context.limits.unsigned_max);
    if unsigned.has_replaced {
        context.metrics.unsigned_ended.add(1);
    }
    let timeout = Rc::clone(wire.timeout());
    wire.count_in(Some(Arc::clone(&unsigned.sent)));
    // The service may be writing to the store. So it is not dropped, but waits for the client no longer.
    let make_room = async {
        if (&mut unsigned.end).await.is_ok() {
            timeout.end_wait(WaitEnd::Aborted);
        }
        std::future::pending().await
    };
    let answered = {
        let request = pin!(exchange_any(context, wire, request));
        futures_lite::future::or(context.unsigned_turns.pace(request), make_room).await
    };
    wire.count_in(None);
    answered
}

async fn exchange_any<S: Service>(
    context: &PortContext<S>,
    wire: &mut Wire,
    request: &Request,
) -> AfterExchange {
    let mut body = RequestBody::new(wire, &request.head, &context.limits);
    // Boxed, so that a connection that waits for its next request does not hold room for the largest call.
    let call = Box::pin(context.service.call(request, &mut body));
    let called = AssertUnwindSafe(call).catch_unwind().await;
    // The service may have dropped a read, whose timeout is still armed.
    body.end_wait();
    let body = body.into_state();
    if body.timed_out {
        context.metrics.record_timeout(TimeoutPhase::Body);
    }
    let (response, panicked) = match called {
        Ok(response) => (response, false),
        Err(_) => {
            // The panic hook has logged the panic. This line adds the request id.
            tracing::error!(target: "service", request_id = request.id, "a request ended with a panic");
            (context.service.reject(Rejection::Panic, &request.id), true)
        }
    };
    let takes_chunks = request.head.is_version_1_1();
    let ends_by_closing = matches!(response.body, ResponseBody::Chunked { .. }) && !takes_chunks;
    let keep = !panicked && !response.close && !ends_by_closing && can_keep_alive(context, request, &body);
    let connection = connection_option(request, keep);
    let framing =
        ResponseFraming { takes_chunks, ..response_framing(context, request.head.method(), connection) };
    let sent = respond(context, wire, &framing, response, Some((request, body.read))).await;
    match sent.outcome {
        ExchangeOutcome::Complete if !keep => AfterExchange::Close(Close::Linger),
        ExchangeOutcome::Complete if discard_body(context, wire, body.remaining).await => {
            AfterExchange::KeepAlive
        }
        _ => AfterExchange::Close(Close::Cut),
    }
}

fn can_keep_alive<S: Service>(context: &PortContext<S>, request: &Request, body: &BodyState) -> bool {
    request.head.keep_alive()
        && !body.framing_is_lost
        && body.remaining <= DISCARD_BYTES_MAX
        && !context.drain.is_begun()
}

/// Returns the `Connection` header. HTTP/1.1 keeps connections by default, HTTP/1.0 does not.
fn connection_option(request: &Request, keep: bool) -> ConnectionOption {
    match (keep, request.head.is_version_1_1()) {
        (true, true) => ConnectionOption::Omitted,
        (true, false) => ConnectionOption::KeepAlive,
        (false, _) => ConnectionOption::Close,
    }
}

fn response_framing<'a, S: Service>(
    context: &'a PortContext<S>,
    method: &'a Method,
    connection: ConnectionOption,
) -> ResponseFraming<'a> {
    ResponseFraming { method, connection, takes_chunks: false, date: context.date(), limits: &context.limits }
}

/// Sends a response and reports the exchange to the service.
async fn respond<S: Service>(
    context: &PortContext<S>,
    wire: &mut Wire,
    framing: &ResponseFraming<'_>,
    mut response: Response,
    request: Option<(&Request, u64)>,
) -> Sent {
    // Never without TLS, as a response to plain HTTP on this port is (RFC 6797 section 7.2).
    if wire.is_encrypted()
        && let Some(value) = context.tls.as_ref().and_then(Tls::strict_transport)
    {
        response.head.header("strict-transport-security", value);
    }
    let mut buffer = context.take_head_buffer();
    let sent = send(wire, &response.head, response.body, framing, &mut buffer).await;
    context.return_head_buffer(buffer);
    if sent.outcome == ExchangeOutcome::DeadlinePassed
        && !context.drain.is_begun()
        && !wire.timeout().is_aborted()
    {
        context.metrics.record_timeout(TimeoutPhase::Response);
    }
    let ended = context.read_clock();
    let started = request.map_or(ended, |(request, _)| request.started);
    context.service.completed(&Exchange {
        request: request.map(|(request, _)| request),
        response: &response.meta,
        bytes_in: request.map_or(0, |(_, read)| read),
        bytes_out: sent.bytes,
        latency: ended.saturating_duration_since(started),
        outcome: sent.outcome,
    });
    sent
}

/// Answers a connection that has sent no valid request. Returns how to close it.
pub(crate) async fn reject<S: Service>(
    context: &PortContext<S>,
    wire: &mut Wire,
    rejection: Rejection,
) -> Close {
    let response = context.service.reject(rejection, &context.next_request_id());
    let method = buffered_method(wire.buffered());
    let framing = response_framing(context, &method, ConnectionOption::Close);
    match respond(context, wire, &framing, response, None).await.outcome {
        ExchangeOutcome::Complete => Close::Linger,
        _ => Close::Cut,
    }
}

/// Returns the method of an invalid request, as far as it decides the framing of the response: a client that sent HEAD
/// reads no body, and would take one for the next response.
fn buffered_method(bytes: &[u8]) -> Method {
    if bytes.starts_with(b"HEAD ") { Method::HEAD } else { Method::GET }
}
