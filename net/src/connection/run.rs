//! Runs a connection from its first byte to its close.

use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;

use crate::connection::closing::{Close, linger};
use crate::connection::context::PortContext;
use crate::connection::exchange::{AfterExchange, exchange, reject};
use crate::connection::request_head::{HeadFailure, read_head};
use crate::connection::tls_handshake::{TlsStart, start_tls};
use crate::service::interface::{Rejection, Request, Service};
use crate::transport::wire::Wire;

/// Serves a connection until it is closed.
pub(crate) async fn run<S: Service>(context: &Rc<PortContext<S>>, wire: &mut Wire, peer: SocketAddr) {
    let close = match &context.tls {
        None => serve_requests(context, wire, peer).await,
        Some(tls) => match start_tls(context, wire, tls).await {
            TlsStart::Established => serve_requests(context, wire, peer).await,
            TlsStart::PlainHttp => reject(context, wire, Rejection::PlainHttp).await,
            // The alert may still be on its way.
            TlsStart::Refused => Close::Linger,
            TlsStart::Failed => Close::Cut,
        },
    };
    match close {
        Close::Linger => linger(context, wire).await,
        Close::Silent => wire.prepare_close_notify(),
        Close::Cut => {}
    }
    // The ring may hold the socket for a moment longer than this task. Shutting it down tells the client now.
    wire.shut_down(Shutdown::Both);
}

/// Answers requests until the connection has to be closed. Returns how.
async fn serve_requests<S: Service>(
    context: &Rc<PortContext<S>>,
    wire: &mut Wire,
    peer: SocketAddr,
) -> Close {
    let Ok(local) = wire.local_address() else { return Close::Cut };
    let proxies = context.trusted_proxies.as_ref().filter(|proxies| proxies.contains(peer.ip()));
    let is_secure = context.tls.is_some();
    let mut idle_timeout = context.limits.first_request_timeout.min(context.limits.idle_timeout);
    loop {
        match read_head(context, wire, idle_timeout).await {
            Ok(head) => {
                idle_timeout = context.limits.idle_timeout;
                let (started, id) = (context.read_clock(), context.next_request_id());
                let client = proxies.map_or(peer.ip(), |proxies| proxies.client_address(peer.ip(), &head));
                let request = Request { head, peer, client, local, is_secure, started, id };
                let _open = context.metrics.open_request();
                match exchange(context, wire, &request).await {
                    AfterExchange::KeepAlive => glommio::yield_if_needed().await,
                    AfterExchange::Close(close) => return close,
                }
            }
            Err(HeadFailure::Silent) => return Close::Silent,
            Err(HeadFailure::Reject(rejection)) => return reject(context, wire, rejection).await,
        }
    }
}

/// Rejects a connection beyond a limit before anything was read from it. With TLS there is no response: a handshake
/// would cost what the limit on connections is meant to save.
pub(crate) async fn reject_connection<S: Service>(context: &PortContext<S>, wire: &mut Wire) {
    context.metrics.refused.add(1);
    if context.tls.is_none()
        && reject(context, wire, Rejection::TooManyConnections).await == Close::Linger
        && let Some(_permit) = context.linger_permit()
    {
        // The client's request is on its way or has already arrived; see `linger`.
        linger(context, wire).await;
    }
    wire.shut_down(Shutdown::Both);
}
