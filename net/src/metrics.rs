//! Counters of the connections and requests of one port.
//!
//! Each executor counts on its own cache lines; `server/port_metrics.rs` sums them up.

use cairn_model::{Counter, DurationHistogram};

cairn_model::named_enum! {
    /// The phase in which a client exceeded a timeout. Named as in labels of metrics.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum TimeoutPhase {
        /// The end of a TLS handshake.
        Handshake => "handshake",
        /// The first byte of a request.
        Idle => "idle",
        /// The rest of a request head.
        Head => "head",
        /// The request body.
        Body => "body",
        /// Room in the socket for the response.
        Response => "response",
    }
}

cairn_model::named_enum! {
    /// The outcome of a TLS handshake on a port with TLS. Named as in labels of metrics.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum HandshakeOutcome {
        /// With a new session.
        Full => "full",
        /// With a resumed session.
        Resumed => "resumed",
        /// The client sent plain HTTP.
        PlainHttp => "plain_http",
        /// The client sent no TLS, or no version or parameters that both sides support.
        Refused => "refused",
        /// The client took too long.
        TimedOut => "timed_out",
        /// The client disconnected, or the process is stopping.
        Disconnected => "gone",
    }
}

/// The counters of one executor for one port.
#[derive(Default, Debug)]
#[repr(align(64))]
pub(crate) struct ExecutorMetrics {
    pub(crate) accepted: Counter,
    pub(crate) refused: Counter,
    pub(crate) evicted: Counter,
    pub(crate) unsigned_ended: Counter,
    pub(crate) requests_started: Counter,
    pub(crate) requests_ended: Counter,
    pub(crate) timeouts: [Counter; TimeoutPhase::ALL.len()],
    pub(crate) handshakes: [Counter; HandshakeOutcome::ALL.len()],
    /// The delay with which the task that checks timeouts ran.
    pub(crate) delay: DurationHistogram,
}

impl ExecutorMetrics {
    /// Counts a client that exceeded a timeout.
    pub(crate) fn record_timeout(&self, phase: TimeoutPhase) {
        self.timeouts[phase as usize].add(1);
    }

    /// Counts the end of a handshake.
    pub(crate) fn record_handshake(&self, outcome: HandshakeOutcome) {
        self.handshakes[outcome as usize].add(1);
    }

    /// Counts a request as open until the returned guard is dropped.
    pub(crate) fn open_request(&self) -> OpenRequest<'_> {
        self.requests_started.add(1);
        OpenRequest(self)
    }
}

/// A request that is counted as open.
pub(crate) struct OpenRequest<'m>(&'m ExecutorMetrics);

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.0.requests_ended.add(1);
    }
}
