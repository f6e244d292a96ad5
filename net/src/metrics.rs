//! Counters of the connections and requests of one port.
//!
//! Each executor counts on its own cache lines; `server/port_metrics.rs` sums them up.

use cairn_model::{Counter, DurationHistogram};

/// The phase in which a client exceeded a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeoutPhase {
    /// The end of a TLS handshake.
    Handshake,
    /// The first byte of a request.
    Idle,
    /// The rest of a request head.
    Head,
    /// The request body.
    Body,
    /// Room in the socket for the response.
    Response,
}

impl TimeoutPhase {
    /// All phases, in the order of their declaration.
    pub const ALL: [Self; 5] = [Self::Handshake, Self::Idle, Self::Head, Self::Body, Self::Response];

    /// Returns the phase's name, as in metric labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Idle => "idle",
            Self::Head => "head",
            Self::Body => "body",
            Self::Response => "response",
        }
    }
}

/// The outcome of a TLS handshake on a port with TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandshakeOutcome {
    /// With a new session.
    Full,
    /// With a resumed session.
    Resumed,
    /// The client sent plain HTTP.
    PlainHttp,
    /// The client sent no TLS, or no version or parameters that both sides support.
    Refused,
    /// The client took too long.
    TimedOut,
    /// The client disconnected, or the process is stopping.
    Disconnected,
}

impl HandshakeOutcome {
    /// All outcomes, in the order of their declaration.
    pub const ALL: [Self; 6] =
        [Self::Full, Self::Resumed, Self::PlainHttp, Self::Refused, Self::TimedOut, Self::Disconnected];

    /// Returns the outcome's name, as in metric labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Resumed => "resumed",
            Self::PlainHttp => "plain_http",
            Self::Refused => "refused",
            Self::TimedOut => "timed_out",
            Self::Disconnected => "gone",
        }
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
