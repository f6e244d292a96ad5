//! The shared state of the connections of one port on one executor.
//!
//! It owns the coarse clock, the formatted date, the read buffers and the registry of timeouts.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cairn_http1::{HttpDate, http_date};

use crate::connection::trusted_proxies::TrustedProxies;
use crate::connection::unsigned_requests::UnsignedRequests;
use crate::connection::unsigned_turns::UnsignedTurns;
use crate::drain::Drain;
use crate::limits::{HEAD_READ_BYTES, LINGERING_REJECTED_MAX, Limits, PAUSE_MIN, TLS_READ_BYTES};
use crate::metrics::ExecutorMetrics;
use crate::transport::timeouts::TimeoutRegistry;
use crate::transport::tls::Tls;
use crate::transport::tls::session::TlsReadBuffer;

/// Buffers for response heads that are kept for later responses. More are in use only while clients are slow.
const HEAD_BUFFERS_MAX: usize = 16;
/// The step between request ids. It is odd, so that all 2^64 ids are used, and large, so that neighbours do not look
/// alike (2^64 divided by the golden ratio).
const REQUEST_ID_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The shared state of one port's connections on one executor.
pub(crate) struct PortContext<S> {
    pub(crate) service: Rc<S>,
    pub(crate) limits: Limits,
    pub(crate) drain: Drain,
    pub(crate) metrics: Arc<ExecutorMetrics>,
    /// Proxies whose forwarded client addresses are used.
    pub(crate) trusted_proxies: Option<Arc<TrustedProxies>>,
    /// The buffer for reads of request heads. Borrowed only within a poll.
    pub(crate) head_read_buffer: RefCell<Vec<u8>>,
    /// The TLS configuration; `None`: plain HTTP.
    pub(crate) tls: Option<Tls>,
    /// The buffer for reads of ciphertext; empty without TLS. Borrowed only within a poll.
    pub(crate) tls_read_buffer: TlsReadBuffer,
    pub(crate) timeouts: TimeoutRegistry,
    /// The unsigned requests of the port on all executors.
    pub(crate) unsigned: UnsignedRequests,
    /// The turns of those on this executor.
    pub(crate) unsigned_turns: UnsignedTurns,
    cached_now: Cell<Instant>,
    /// The time of the last check of timeouts.
    checked_at: Cell<Instant>,
    date: Cell<HttpDate>,
    date_seconds: Cell<u64>,
    head_buffers: RefCell<Vec<Vec<u8>>>,
    request_id: Cell<u64>,
    /// Connections beyond the limit that linger.
    lingering_rejected: Cell<usize>,
}

impl<S> PortContext<S> {
    pub(crate) fn new(
        service: Rc<S>,
        limits: Limits,
        drain: Drain,
        metrics: Arc<ExecutorMetrics>,
        trusted_proxies: Option<Arc<TrustedProxies>>,
        tls: Option<Tls>,
        unsigned: UnsignedRequests,
    ) -> Self {
        let (now, seconds) = (Instant::now(), wall_seconds());
        let tls_read_buffer = vec![0; if tls.is_some() { TLS_READ_BYTES } else { 0 }];
        Self {
            service,
            limits,
            drain,
            metrics,
            trusted_proxies,
            head_read_buffer: RefCell::new(vec![0; HEAD_READ_BYTES]),
            tls,
            tls_read_buffer: Rc::new(RefCell::new(tls_read_buffer)),
            timeouts: TimeoutRegistry::default(),
            unsigned,
            unsigned_turns: UnsignedTurns::default(),
            cached_now: Cell::new(now),
            checked_at: Cell::new(now),
            date: Cell::new(http_date(seconds)),
            date_seconds: Cell::new(seconds),
            head_buffers: RefCell::new(Vec::new()),
            // A random start without a dependency. Ids need to be unique, not secret.
            request_id: Cell::new(RandomState::new().hash_one(std::process::id())),
            lingering_rejected: Cell::new(0),
        }
    }

    /// Updates the coarse clock and the date, and ends the waits whose deadline has passed.
    ///
    /// After a pause of the executor, for example of its virtual machine, clients get the time again that passed meanwhile:
    /// what they have sent was not read, and the coarse clock of new waits was late.
    pub(crate) fn check_timeouts(&self) {
        let now = self.read_clock();
        let since_check = now.saturating_duration_since(self.checked_at.replace(now));
        if since_check >= PAUSE_MIN {
            self.timeouts.postpone(since_check);
        }
        let seconds = wall_seconds();
        if self.date_seconds.replace(seconds) != seconds {
            self.date.set(http_date(seconds));
        }
        self.timeouts.expire(now);
    }

    /// Returns the time of the last [`PortContext::read_clock`]. It is at most one check interval old and needs no
    /// system call.
    pub(crate) fn cached_now(&self) -> Instant {
        self.cached_now.get()
    }

    /// Reads the clock and updates [`PortContext::cached_now`].
    pub(crate) fn read_clock(&self) -> Instant {
        let now = Instant::now();
        self.cached_now.set(now);
        now
    }

    /// Returns the value of the `Date` header, at most one check interval old.
    pub(crate) fn date(&self) -> HttpDate {
        self.date.get()
    }

    /// Returns an id that no other request of this process has had.
    pub(crate) fn next_request_id(&self) -> String {
        let id = self.request_id.get().wrapping_add(REQUEST_ID_STEP);
        self.request_id.set(id);
        format!("{id:016X}")
    }

    /// Allows a connection beyond the limit to linger. Returns `None` when too many do.
    pub(crate) fn linger_permit(&self) -> Option<LingerPermit<'_>> {
        let count = self.lingering_rejected.get();
        (count < LINGERING_REJECTED_MAX).then(|| {
            self.lingering_rejected.set(count + 1);
            LingerPermit(&self.lingering_rejected)
        })
    }

    /// Takes a buffer for a response head. Return it with [`PortContext::return_head_buffer`].
    pub(crate) fn take_head_buffer(&self) -> Vec<u8> {
        self.head_buffers.borrow_mut().pop().unwrap_or_default()
    }

    pub(crate) fn return_head_buffer(&self, buffer: Vec<u8>) {
        let mut buffers = self.head_buffers.borrow_mut();
        if buffers.len() < HEAD_BUFFERS_MAX {
            buffers.push(buffer);
        }
    }
}

/// Allows one connection beyond the limit to linger, until it is dropped.
pub(crate) struct LingerPermit<'s>(&'s Cell<usize>);

impl Drop for LingerPermit<'_> {
    fn drop(&mut self) {
        let count = self.0.get();
        assert!(count > 0, "every permit is counted once");
        self.0.set(count - 1);
    }
}

fn wall_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
