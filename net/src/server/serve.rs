//! Serves one port on one executor: starts a task per connection, checks timeouts and runs the drain.
//!
//! Invariant: [`serve`] returns only when no connection is open or the drain is over.

use std::future::Future;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_lite::FutureExt;

use crate::connection::context::PortContext;
use crate::connection::run::{reject_connection, run};
use crate::drain::Drain;
use crate::limits::{ABORT_GRACE, LOOPBACK_SEND_BYTES, Limits, TIMEOUT_CHECK_INTERVAL};
use crate::server::client_connections::ClientConnection;
use crate::server::listener::{Listener, close, serve_handed_over};
use crate::server::listener_group::{AcceptedConnection, ConnectionGuard, ListenerGroup};
use crate::service::interface::Service;
use crate::transport::socket::Socket;
use crate::transport::timeouts::TimeoutHandle;
use crate::transport::wire::Wire;

/// The interval at which a drain checks whether all connections have ended.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Serves `service` on this executor's own listener until the drain ends. Runs on a glommio executor.
///
/// Connections are spread over all executors whose listeners came from the same [`bind`](crate::bind), so each of these
/// listeners must be served.
pub async fn serve<S: Service>(mut listener: Listener, service: Rc<S>, limits: Limits, drain: Drain) {
    let (trusted_proxies, tls) = (listener.trusted_proxies.take(), listener.tls.take());
    let acceptor = listener.into_acceptor();
    let (group, slot) = (acceptor.group().clone(), acceptor.slot());
    let metrics = Arc::clone(group.metrics_of(slot));
    let context = Rc::new(PortContext::new(
        service,
        limits,
        drain,
        metrics,
        trusted_proxies,
        tls,
        group.unsigned().clone(),
    ));
    group.open_slot(slot);
    let executor = Rc::new(PortExecutor { context: Rc::clone(&context), group: group.clone(), slot });
    let spawn = |executor: &Rc<PortExecutor<S>>| {
        let executor = Rc::clone(executor);
        move |accepted, guard| {
            glommio::spawn_local(serve_connection(Rc::clone(&executor), accepted, guard)).detach();
        }
    };
    let evicting = Rc::clone(&executor);
    let evict = move || {
        // If none is idle any more, the limit is exceeded by one until a connection closes.
        let _ = evicting.evict_own();
    };
    let accepting = glommio::spawn_local(acceptor.accept_all(spawn(&executor)));
    let receiving = glommio::spawn_local(serve_handed_over(group.clone(), slot, spawn(&executor), evict));
    while !context.drain.is_begun() {
        let due = Instant::now() + TIMEOUT_CHECK_INTERVAL;
        glommio::timer::sleep(TIMEOUT_CHECK_INTERVAL).await;
        context.check_timeouts();
        executor.publish_first_to_evict();
        context.metrics.delay.record_duration(context.cached_now().saturating_duration_since(due));
    }
    accepting.cancel().await;
    receiving.cancel().await;
    for accepted in group.close_slot(slot) {
        close(accepted.stream);
    }
    finish(&context).await;
}

/// Lets open requests finish and closes idle connections. Aborts what is left when the grace period is over.
async fn finish<S: Service>(context: &PortContext<S>) {
    while context.timeouts.len() > 0 && !context.drain.is_over(context.cached_now()) {
        context.timeouts.close_idle();
        glommio::timer::sleep(DRAIN_CHECK_INTERVAL).await;
        context.check_timeouts();
    }
    let abort_deadline = context.read_clock() + ABORT_GRACE;
    while context.timeouts.len() > 0 && context.cached_now() < abort_deadline {
        context.timeouts.abort_all();
        glommio::timer::sleep(DRAIN_CHECK_INTERVAL).await;
        context.check_timeouts();
    }
}

/// One port on one executor.
struct PortExecutor<S> {
    context: Rc<PortContext<S>>,
    group: Arc<ListenerGroup<AcceptedConnection>>,
    slot: usize,
}

/// A connection that may be served: counted at its executor and, if that is limited, for its client.
type Admission = (ConnectionGuard<AcceptedConnection>, Option<ClientConnection>);

impl<S: Service> PortExecutor<S> {
    /// Decides whether a connection is served. If the port is full, it takes the place of an idle one.
    fn admit(&self, guard: ConnectionGuard<AcceptedConnection>, peer: IpAddr) -> Option<Admission> {
        let limits = &self.context.limits;
        let is_proxy = self.context.trusted_proxies.as_ref().is_some_and(|proxies| proxies.contains(peer));
        let client = match limits.connections_per_client_max {
            Some(max) if !is_proxy => Some(self.group.clients().count(peer, max)?),
            _ => None,
        };
        let is_admitted = !self.group.is_beyond(limits.connections_max) || self.evict_first();
        is_admitted.then_some((guard, client))
    }

    /// Closes the idle connection that is first in the order of eviction on any executor. Returns whether there is one.
    fn evict_first(&self) -> bool {
        let own = self.context.timeouts.first_to_evict();
        match self.group.earlier_slot(self.slot, own) {
            Some(other) if self.group.request_eviction(other) => true,
            _ => self.evict_own(),
        }
    }

    /// Closes the idle connection that is first in that order on this executor. Returns whether there is one.
    fn evict_own(&self) -> bool {
        let is_evicted = self.context.timeouts.evict_first();
        if is_evicted {
            self.context.metrics.evicted.add(1);
        }
        self.publish_first_to_evict();
        is_evicted
    }

    /// Tells the other executors which connection is evicted next here. Costs nothing until the port is half full.
    fn publish_first_to_evict(&self) {
        if self.group.is_beyond(self.context.limits.connections_max / 2) {
            self.group.publish_first_to_evict(self.slot, self.context.timeouts.first_to_evict());
        } else {
            self.group.withdraw_first_to_evict(self.slot);
        }
    }
}

/// A connection's entry in the registry of timeouts, removed on drop.
struct RegisteredTimeout<S: Service> {
    context: Rc<PortContext<S>>,
    timeout: Rc<TimeoutHandle>,
}

impl<S: Service> Drop for RegisteredTimeout<S> {
    fn drop(&mut self) {
        self.context.timeouts.remove(&self.timeout);
    }
}

fn serve_connection<S: Service>(
    executor: Rc<PortExecutor<S>>,
    accepted: AcceptedConnection,
    guard: ConnectionGuard<AcceptedConnection>,
) -> impl Future<Output = ()> {
    let context = Rc::clone(&executor.context);
    let closing = Arc::clone(executor.group.closing_of(executor.slot));
    let timeout = Rc::new(TimeoutHandle::new(context.cached_now(), closing));
    context.timeouts.add(&timeout);
    let registered = RegisteredTimeout { context: Rc::clone(&context), timeout: Rc::clone(&timeout) };
    let peer = accepted.peer;
    let stream = accepted.stream.bind_to_executor();
    // Without it, the last small segment of a response waits for the client's acknowledgement. A socket that refuses
    // the option is already dead, and the first read reports that.
    let _ = stream.set_nodelay(true);
    async move {
        // A connection beyond a limit is not counted while it is being rejected.
        let admission = executor.admit(guard, peer.ip());
        let mut wire = Wire::new(Socket::new(stream), timeout);
        if peer.ip().to_canonical().is_loopback() {
            wire.limit_send_buffer(LOOPBACK_SEND_BYTES);
        }
        let serving = async {
            if admission.is_some() {
                run(&context, &mut wire, peer).await;
            } else {
                reject_connection(&*context, &mut wire).await;
            }
        };
        // Panics of the service are caught in `exchange`. A panic that gets here is a fault of this crate and must not
        // end the executor.
        if AssertUnwindSafe(serving).catch_unwind().await.is_err() {
            tracing::error!(target: "service", "a connection ended with a panic");
        }
        drop((wire, registered, admission));
    }
}
