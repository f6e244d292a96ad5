//! Listening sockets: one per executor and port, all bound to the same address with `SO_REUSEPORT`, and the loop that
//! accepts from one of them.
//!
//! Invariant: the loop outlives any failure of `accept`. When descriptors run out it gives up one kept in reserve to
//! accept and close what waits (a client that is turned away is better off than one that hangs), then pauses.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{FromRawFd, IntoRawFd};
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future;
use glommio::net::{AcceptedTcpStream, TcpListener as RingListener};
use socket2::{Domain, Protocol, Socket, Type};

use crate::balance::{Group, Place};
use crate::figures::PortFigures;
use crate::limits::{ACCEPT_PAUSE_MAX, ACCEPT_PAUSE_MIN, BACKLOG};
use crate::tls::Tls;
use crate::trusted_proxies::TrustedProxies;

/// A connection between `accept` and its executor. Plain numbers: it is closed only by being bound to an executor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accepted {
    pub(crate) stream: AcceptedTcpStream,
    pub(crate) peer: SocketAddr,
}

/// One executor's listening socket for one port. Make them with [`bind`]; each goes to its executor.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    group: Arc<Group<Accepted>>,
    seat: usize,
    pub(crate) trusted_proxies: Option<Arc<TrustedProxies>>,
    pub(crate) tls: Option<Tls>,
}

impl Listener {
    /// Takes the word of these proxies for the addresses of their clients. Without them, or when there are none, a client is
    /// who connects.
    #[must_use]
    pub fn trusting(self, proxies: Option<Arc<TrustedProxies>>) -> Self {
        Self { trusted_proxies: proxies, ..self }
    }

    /// Connections begin with a TLS handshake. All listeners of a port must be alike, for they share its connections.
    #[must_use]
    pub fn secured(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// The address bound to; the port is the real one also when 0 was asked for.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What all executors count of the port, of which this is one listener.
    #[must_use]
    pub fn figures(&self) -> PortFigures {
        PortFigures::of(Arc::clone(&self.group))
    }

    pub(crate) fn into_acceptor(self) -> Acceptor {
        let twin = self.socket.try_clone().ok();
        let reserve = twin.as_ref().and_then(|twin| twin.try_clone().ok());
        Acceptor { socket: adopt(self.socket), twin, reserve, group: self.group, seat: self.seat }
    }
}

#[expect(unsafe_code, reason = "glommio takes listeners that it has not bound only as a number")]
fn adopt(socket: TcpListener) -> RingListener {
    // SAFETY: `into_raw_fd` gives up ownership of an open listening socket, and the new value is its only owner.
    unsafe { RingListener::from_raw_fd(socket.into_raw_fd()) }
}

/// Binds one listener per executor to `address`. With port 0 the kernel picks one port for all of them. Blocks for a
/// moment; call it before the executors start, so that a wrong address ends the start.
///
/// # Errors
/// What binding or listening gives; the text names the address.
pub fn bind(address: SocketAddr, executors: usize) -> io::Result<Vec<Listener>> {
    let name_address =
        |error: io::Error| io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"));
    let group = Group::new(executors);
    let mut resolved = address;
    let mut listeners = Vec::with_capacity(executors);
    for seat in 0..executors {
        let socket = bind_one(resolved).map_err(name_address)?;
        resolved = socket.local_addr().map_err(name_address)?;
        let group = Arc::clone(&group);
        let (trusted_proxies, tls) = (None, None);
        listeners.push(Listener { socket, address: resolved, group, seat, trusted_proxies, tls });
    }
    Ok(listeners)
}

fn bind_one(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for connections of the last run to time out.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// A listener that belongs to an executor.
pub(crate) struct Acceptor {
    socket: RingListener,
    /// The same socket once more, to make the reserve from.
    twin: Option<TcpListener>,
    /// A descriptor that can be given up when there is none left.
    reserve: Option<TcpListener>,
    group: Arc<Group<Accepted>>,
    seat: usize,
}

impl Acceptor {
    pub(crate) const fn group(&self) -> &Arc<Group<Accepted>> {
        &self.group
    }

    pub(crate) const fn seat(&self) -> usize {
        self.seat
    }

    /// Accepts until dropped, and calls `take` with every connection that this executor is to serve.
    pub(crate) async fn accept_all(mut self, take: impl Fn(Accepted, Place<Accepted>)) {
        let mut pause = ACCEPT_PAUSE_MIN;
        loop {
            match self.socket.shared_accept().await {
                Ok(stream) => {
                    pause = ACCEPT_PAUSE_MIN;
                    self.group.figures_of(self.seat).accepted.add(1);
                    // On failure the client has gone, and `peer_addr` has closed the descriptor.
                    if let Ok(peer) = stream.peer_addr()
                        && let Some((accepted, place)) = self.group.seat(self.seat, Accepted { stream, peer })
                    {
                        take(accepted, place);
                    }
                }
                Err(error) => self.recover(&io::Error::from(error), &mut pause).await,
            }
        }
    }

    async fn recover(&mut self, error: &io::Error, pause: &mut Duration) {
        match error.raw_os_error() {
            // The client has gone before it was accepted, or a signal came.
            Some(libc::ECONNABORTED | libc::EINTR | libc::EPROTO) => return,
            Some(libc::EMFILE | libc::ENFILE) => self.turn_one_away().await,
            _ => {}
        }
        if *pause == ACCEPT_PAUSE_MIN {
            tracing::warn!(target: "service", %error, "connections cannot be accepted for the moment");
        }
        glommio::timer::sleep(*pause).await;
        *pause = (*pause * 2).min(ACCEPT_PAUSE_MAX);
    }

    /// Uses the descriptor in reserve to accept one connection and close it.
    async fn turn_one_away(&mut self) {
        if self.reserve.take().is_none() {
            return;
        }
        if let Some(Ok(stream)) = future::poll_once(self.socket.shared_accept()).await {
            let figures = self.group.figures_of(self.seat);
            figures.accepted.add(1);
            figures.refused.add(1);
            close(stream);
        }
        self.reserve = self.twin.as_ref().and_then(|twin| twin.try_clone().ok());
    }
}

/// Closes a connection that nobody serves. Must run on an executor.
pub(crate) fn close(stream: AcceptedTcpStream) {
    drop(stream.bind_to_executor());
}

/// Serves connections that other executors hand to this one, until dropped.
pub(crate) async fn take_handed(
    group: Arc<Group<Accepted>>,
    seat: usize,
    take: impl Fn(Accepted, Place<Accepted>),
) {
    loop {
        let (accepted, place) = poll_fn(|context| group.poll_handed(seat, context)).await;
        take(accepted, place);
    }
}
