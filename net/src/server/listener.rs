//! Listening sockets, and the loop that accepts connections.
//!
//! There is one socket per executor and port. All sockets of a port are bound to the same address with `SO_REUSEPORT`.
//!
//! Invariant: the accept loop survives every failure of `accept`. When descriptors run out, it closes one that it holds
//! in reserve, accepts a connection with it and closes that. A client that is refused is better off than one that
//! hangs. Then the loop pauses.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{FromRawFd, IntoRawFd};
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future;
use glommio::net::{AcceptedTcpStream, TcpListener as RingListener};
use socket2::{Domain, Protocol, Socket, Type};

use crate::connection::trusted_proxies::TrustedProxies;
use crate::limits::{ACCEPT_PAUSE_MAX, ACCEPT_PAUSE_MIN, BACKLOG};
use crate::server::listener_group::{AcceptedConnection, ConnectionGuard, HandedOver, ListenerGroup};
use crate::server::port_metrics::PortMetrics;
use crate::transport::tls::Tls;

/// The listening socket of one executor for one port. [`bind`] makes them; move each to its executor.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    group: Arc<ListenerGroup<AcceptedConnection>>,
    slot: usize,
    pub(crate) trusted_proxies: Option<Arc<TrustedProxies>>,
    pub(crate) tls: Option<Tls>,
}

impl Listener {
    /// Uses the client addresses that these proxies forward. With `None`, the client is always the peer.
    #[must_use]
    pub fn with_trusted_proxies(self, proxies: Option<Arc<TrustedProxies>>) -> Self {
        Self { trusted_proxies: proxies, ..self }
    }

    /// Requires TLS. All listeners of a port must be configured alike, because they share its connections.
    #[must_use]
    pub fn with_tls(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Returns the bound address. Its port is the real one, also when port 0 was requested.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the metrics of the whole port, over all executors.
    #[must_use]
    pub fn metrics(&self) -> PortMetrics {
        PortMetrics::of(Arc::clone(&self.group))
    }

    pub(crate) fn into_acceptor(self) -> Acceptor {
        let duplicate = self.socket.try_clone().ok();
        let reserve = duplicate.as_ref().and_then(|duplicate| duplicate.try_clone().ok());
        Acceptor {
            socket: into_ring_listener(self.socket),
            duplicate,
            reserve,
            group: self.group,
            slot: self.slot,
        }
    }
}

#[expect(unsafe_code, reason = "glommio takes a listener that it has not bound only as a number")]
fn into_ring_listener(socket: TcpListener) -> RingListener {
    // SAFETY: `into_raw_fd` gives up ownership of an open listening socket, and the new value is its only owner.
    unsafe { RingListener::from_raw_fd(socket.into_raw_fd()) }
}

/// Binds one listener per executor to `address`. With port 0, the kernel picks one port for all of them. Blocks
/// shortly; call it before the executors start, so that a wrong address ends the start.
///
/// # Errors
/// Those of binding and listening.
pub fn bind(address: SocketAddr, executors: usize) -> io::Result<Vec<Listener>> {
    let group = ListenerGroup::new(executors);
    let mut resolved = address;
    let mut listeners = Vec::with_capacity(executors);
    for slot in 0..executors {
        let socket = bind_one(resolved)?;
        resolved = socket.local_addr()?;
        let group = Arc::clone(&group);
        let (trusted_proxies, tls) = (None, None);
        listeners.push(Listener { socket, address: resolved, group, slot, trusted_proxies, tls });
    }
    Ok(listeners)
}

fn bind_one(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait until connections of the previous run have timed out.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// A listener that runs on its executor.
pub(crate) struct Acceptor {
    socket: RingListener,
    /// A duplicate of the socket, from which `reserve` is made again.
    duplicate: Option<TcpListener>,
    /// A descriptor to close when there are no free ones.
    reserve: Option<TcpListener>,
    group: Arc<ListenerGroup<AcceptedConnection>>,
    slot: usize,
}

impl Acceptor {
    pub(crate) const fn group(&self) -> &Arc<ListenerGroup<AcceptedConnection>> {
        &self.group
    }

    pub(crate) const fn slot(&self) -> usize {
        self.slot
    }

    /// Accepts connections until it is dropped. Calls `serve` with each one that this executor is to serve.
    pub(crate) async fn accept_all(
        mut self,
        serve: impl Fn(AcceptedConnection, ConnectionGuard<AcceptedConnection>),
    ) {
        let mut pause = ACCEPT_PAUSE_MIN;
        loop {
            match self.socket.shared_accept().await {
                Ok(stream) => {
                    pause = ACCEPT_PAUSE_MIN;
                    self.group.metrics_of(self.slot).accepted.add(1);
                    // On failure the client has disconnected, and `peer_addr` has closed the descriptor.
                    if let Ok(peer) = stream.peer_addr()
                        && let Some((accepted, guard)) =
                            self.group.assign(self.slot, AcceptedConnection { stream, peer })
                    {
                        serve(accepted, guard);
                    }
                }
                Err(error) => self.recover(&io::Error::from(error), &mut pause).await,
            }
        }
    }

    /// Recovers from a failure of `accept`, after a pause where that helps.
    async fn recover(&mut self, error: &io::Error, pause: &mut Duration) {
        match error.raw_os_error() {
            // The client disconnected before it was accepted, or a signal arrived.
            Some(libc::ECONNABORTED | libc::EINTR | libc::EPROTO) => return,
            Some(libc::EMFILE | libc::ENFILE) => self.refuse_one().await,
            _ => {}
        }
        if *pause == ACCEPT_PAUSE_MIN {
            tracing::warn!(target: "service", %error, "connections cannot be accepted for the moment");
        }
        glommio::timer::sleep(*pause).await;
        *pause = (*pause * 2).min(ACCEPT_PAUSE_MAX);
    }

    /// Accepts one connection with the reserved descriptor and closes it.
    async fn refuse_one(&mut self) {
        if self.reserve.take().is_none() {
            return;
        }
        if let Some(Ok(stream)) = future::poll_once(self.socket.shared_accept()).await {
            let metrics = self.group.metrics_of(self.slot);
            metrics.accepted.add(1);
            metrics.refused.add(1);
            close(stream);
        }
        self.reserve = self.duplicate.as_ref().and_then(|duplicate| duplicate.try_clone().ok());
    }
}

/// Closes an accepted connection. Must run on an executor.
pub(crate) fn close(stream: AcceptedTcpStream) {
    drop(stream.bind_to_executor());
}

/// Calls `serve` with each connection that other executors hand over to this one, and `evict` for each connection that
/// they ask it to close, until it is dropped.
pub(crate) async fn serve_handed_over(
    group: Arc<ListenerGroup<AcceptedConnection>>,
    slot: usize,
    serve: impl Fn(AcceptedConnection, ConnectionGuard<AcceptedConnection>),
    evict: impl Fn(),
) {
    loop {
        match poll_fn(|context| group.poll_handed_over(slot, context)).await {
            HandedOver::Connection(accepted, guard) => serve(accepted, guard),
            HandedOver::Eviction => {
                evict();
                group.finish_eviction(slot);
            }
        }
    }
}
