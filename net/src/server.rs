//! Serving one port on one executor: what its connections share, the task that looks after deadlines, and the drain.
//!
//! Owns the coarse clock, the formatted date, the head buffer and the registry of connections, all of one executor.
//! Invariant: [`serve`] returns only when no connection is open or the drain is over.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cairn_http1::{HttpDate, http_date};
use futures_lite::FutureExt;

use crate::balance::Place;
use crate::connection::{run, turn_away};
use crate::deadline::{Registry, Watch};
use crate::drain::Drain;
use crate::figures::Figures;
use crate::limits::{
    ABORT_PATIENCE, CIPHER_READ_BYTES, HEAD_READ_BYTES, LINGER_TURNED_AWAY_MAX, LOOPBACK_SEND_BYTES, Limits,
    TICK,
};
use crate::listener::{Accepted, Listener, close, take_handed};
use crate::service::Service;
use crate::socket::Socket;
use crate::tls::{CipherBuffer, Tls};
use crate::trusted_proxies::TrustedProxies;
use crate::wire::Wire;

/// How often a drain looks whether it is done.
const DRAIN_TICK: Duration = Duration::from_millis(20);
/// Buffers for response heads that are kept for the next responses; more are in use only while clients are slow.
const BUFFERS_KEPT: usize = 16;
/// The step between request ids: odd, so that all 2^64 are used, and large, so that neighbours do not look alike
/// (2^64 divided by the golden ratio).
const REQUEST_ID_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// What the connections of one port share on one executor.
pub(crate) struct Server<S> {
    pub(crate) service: Rc<S>,
    pub(crate) limits: Limits,
    pub(crate) drain: Drain,
    pub(crate) figures: Arc<Figures>,
    /// Whose word is taken for a client's address.
    pub(crate) trusted_proxies: Option<Arc<TrustedProxies>>,
    /// Where heads are read. Borrowed only within a poll.
    pub(crate) scratch: RefCell<Vec<u8>>,
    /// What the port presents to its clients; None: it speaks without TLS.
    pub(crate) tls: Option<Tls>,
    /// Where ciphertext is read. Borrowed only within a poll.
    pub(crate) cipher_buffer: CipherBuffer,
    registry: Registry,
    now: Cell<Instant>,
    date: Cell<HttpDate>,
    date_seconds: Cell<u64>,
    buffers: RefCell<Vec<Vec<u8>>>,
    request_id: Cell<u64>,
    /// Connections past the limit that linger.
    lingering: Cell<usize>,
}

/// Serves `service` on this executor's own listener until the drain ends. Runs on a glommio executor.
///
/// Connections are spread over all executors whose listeners came from the same [`bind`](crate::bind), so each of
/// them must be served.
pub async fn serve<S: Service>(mut listener: Listener, service: Rc<S>, limits: Limits, drain: Drain) {
    let (trusted_proxies, tls) = (listener.trusted_proxies.take(), listener.tls.take());
    let acceptor = listener.into_acceptor();
    let (group, seat) = (acceptor.group().clone(), acceptor.seat());
    let figures = Arc::clone(group.figures_of(seat));
    let cipher_buffer = vec![0; if tls.is_some() { CIPHER_READ_BYTES } else { 0 }];
    let cipher_buffer = Rc::new(RefCell::new(cipher_buffer));
    let server =
        Server { trusted_proxies, tls, cipher_buffer, ..Server::new(service, limits, drain, figures) };
    let server = Rc::new(server);
    group.open_seat(seat);
    let admit = |server: &Rc<Server<S>>| {
        let server = Rc::clone(server);
        move |accepted, place| server.admit(accepted, place)
    };
    let accepting = glommio::spawn_local(acceptor.accept_all(admit(&server)));
    let taking = glommio::spawn_local(take_handed(group.clone(), seat, admit(&server)));
    while !server.drain.is_begun() {
        let due = Instant::now() + TICK;
        glommio::timer::sleep(TICK).await;
        server.tick();
        server.figures.delay.note_time(server.now().saturating_duration_since(due));
    }
    accepting.cancel().await;
    taking.cancel().await;
    for accepted in group.close_seat(seat) {
        close(accepted.stream);
    }
    server.finish().await;
}

impl<S: Service> Server<S> {
    fn new(service: Rc<S>, limits: Limits, drain: Drain, figures: Arc<Figures>) -> Self {
        let seconds = wall_seconds();
        Self {
            service,
            limits,
            drain,
            figures,
            trusted_proxies: None,
            scratch: RefCell::new(vec![0; HEAD_READ_BYTES]),
            tls: None,
            cipher_buffer: Rc::default(),
            registry: Registry::default(),
            now: Cell::new(Instant::now()),
            date: Cell::new(http_date(seconds)),
            date_seconds: Cell::new(seconds),
            buffers: RefCell::new(Vec::new()),
            // A random start without a dependency; ids need to be unique, not secret.
            request_id: Cell::new(RandomState::new().hash_one(std::process::id())),
            lingering: Cell::new(0),
        }
    }

    /// Moves the clocks on and ends the waits whose deadline has passed.
    fn tick(&self) {
        let now = self.time();
        let seconds = wall_seconds();
        if self.date_seconds.replace(seconds) != seconds {
            self.date.set(http_date(seconds));
        }
        self.registry.expire(now);
    }

    /// Lets requests in flight finish, closes idle connections, and shuts down what is left when the grace period is
    /// over.
    async fn finish(&self) {
        while self.registry.len() > 0 && !self.drain.is_over(self.now()) {
            self.registry.close_idle();
            glommio::timer::sleep(DRAIN_TICK).await;
            self.tick();
        }
        let patience = self.time() + ABORT_PATIENCE;
        while self.registry.len() > 0 && self.now() < patience {
            self.registry.abort_all();
            glommio::timer::sleep(DRAIN_TICK).await;
            self.tick();
        }
    }

    /// Starts a task for an accepted connection.
    fn admit(self: &Rc<Self>, accepted: Accepted, place: Place<Accepted>) {
        glommio::spawn_local(serve_connection(Rc::clone(self), accepted, place)).detach();
    }

    /// The time as of the last tick or request: no system call, at most a tick old.
    pub(crate) fn now(&self) -> Instant {
        self.now.get()
    }

    /// The time now.
    pub(crate) fn time(&self) -> Instant {
        let now = Instant::now();
        self.now.set(now);
        now
    }

    /// The value of `Date`, at most a tick old.
    pub(crate) fn date(&self) -> HttpDate {
        self.date.get()
    }

    /// An id that no other request of this process has had.
    pub(crate) fn next_request_id(&self) -> String {
        let id = self.request_id.get().wrapping_add(REQUEST_ID_STEP);
        self.request_id.set(id);
        format!("{id:016X}")
    }

    /// Leave to linger for a connection past the limit; None when enough of them do.
    pub(crate) fn linger_slot(&self) -> Option<LingerSlot<'_>> {
        let count = self.lingering.get();
        (count < LINGER_TURNED_AWAY_MAX).then(|| {
            self.lingering.set(count + 1);
            LingerSlot(&self.lingering)
        })
    }

    /// A buffer for a response head; give it back with [`Server::give_buffer`].
    pub(crate) fn take_buffer(&self) -> Vec<u8> {
        self.buffers.borrow_mut().pop().unwrap_or_default()
    }

    pub(crate) fn give_buffer(&self, buffer: Vec<u8>) {
        let mut buffers = self.buffers.borrow_mut();
        if buffers.len() < BUFFERS_KEPT {
            buffers.push(buffer);
        }
    }
}

/// The right of one connection past the limit to linger. Dropping it gives the right back.
pub(crate) struct LingerSlot<'s>(&'s Cell<usize>);

impl Drop for LingerSlot<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A connection's entry in the registry, for as long as its task lives.
struct Registered<S: Service> {
    server: Rc<Server<S>>,
    watch: Rc<Watch>,
}

impl<S: Service> Drop for Registered<S> {
    fn drop(&mut self) {
        self.server.registry.remove(&self.watch);
    }
}

fn serve_connection<S: Service>(
    server: Rc<Server<S>>,
    accepted: Accepted,
    place: Place<Accepted>,
) -> impl Future<Output = ()> {
    let watch = Rc::new(Watch::new(server.now()));
    server.registry.add(&watch);
    let registered = Registered { server: Rc::clone(&server), watch: Rc::clone(&watch) };
    let peer = accepted.peer;
    let stream = accepted.stream.bind_to_executor();
    // Without it the last small segment of a response waits for the client's acknowledgement. A socket that refuses
    // the option is already dead, and the first read will say so.
    let _ = stream.set_nodelay(true);
    async move {
        // A connection past the limit takes the place of nobody while its refusal is on the way.
        let place = (place.group_open() <= server.limits.connections_max).then_some(place);
        let mut wire = Wire::new(Socket::new(stream), watch);
        if peer.ip().to_canonical().is_loopback() {
            wire.limit_send_buffer(LOOPBACK_SEND_BYTES);
        }
        let serving = async {
            if place.is_some() {
                run(&server, &mut wire, peer).await;
            } else {
                turn_away(&*server, &mut wire).await;
            }
        };
        // The service's own panics are contained nearer; one that gets here is a fault of this crate, and still must
        // not take the executor with it.
        if AssertUnwindSafe(serving).catch_unwind().await.is_err() {
            tracing::error!(target: "service", "a connection ended with a panic");
        }
        drop((wire, registered, place));
    }
}

fn wall_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
