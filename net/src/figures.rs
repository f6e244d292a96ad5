//! What the executors count of one port's connections and requests.
//!
//! Each executor counts on cache lines of its own; [`PortFigures::read`] sums them up, on any thread.

use std::sync::Arc;

use cairn_model::{DURATION_BOUNDS, Durations, HistogramReading, Tally};

use crate::balance::Group;
use crate::listener::Accepted;

/// What a client was waited for when its time was over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeoutPhase {
    /// For the end of a TLS handshake.
    Handshake,
    /// For the first byte of a request.
    Idle,
    /// For the rest of a head.
    Head,
    /// For the request's body.
    Body,
    /// For room to send the response.
    Response,
}

impl TimeoutPhase {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Handshake, Self::Idle, Self::Head, Self::Body, Self::Response];

    /// The word for it.
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

/// How the beginning of a connection to a port with TLS ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandshakeEnd {
    /// In a new session.
    Full,
    /// In a session that was resumed.
    Resumed,
    /// It was plain HTTP.
    PlainHttp,
    /// It was no TLS, or none that both sides speak.
    Refused,
    /// The client took too long.
    TimedOut,
    /// The client went away, or the process stopped.
    Gone,
}

impl HandshakeEnd {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Full, Self::Resumed, Self::PlainHttp, Self::Refused, Self::TimedOut, Self::Gone];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Resumed => "resumed",
            Self::PlainHttp => "plain_http",
            Self::Refused => "refused",
            Self::TimedOut => "timed_out",
            Self::Gone => "gone",
        }
    }
}

/// What one executor counts for one port.
#[derive(Default, Debug)]
#[repr(align(64))]
pub(crate) struct Figures {
    pub(crate) accepted: Tally,
    pub(crate) refused: Tally,
    requests_begun: Tally,
    requests_ended: Tally,
    timeouts: [Tally; TimeoutPhase::ALL.len()],
    handshakes: [Tally; HandshakeEnd::ALL.len()],
    /// By how much the task that looks after deadlines was late.
    pub(crate) delay: Durations,
}

impl Figures {
    /// Counts a client whose time was over.
    pub(crate) fn timed_out(&self, phase: TimeoutPhase) {
        self.timeouts[phase as usize].add(1);
    }

    /// Counts the end of a handshake.
    pub(crate) fn shook_hands(&self, end: HandshakeEnd) {
        self.handshakes[end as usize].add(1);
    }

    /// Counts a request as open until what is returned is dropped.
    pub(crate) fn open_request(&self) -> OpenRequest<'_> {
        self.requests_begun.add(1);
        OpenRequest(self)
    }
}

/// A request between its head and the end of its response.
pub(crate) struct OpenRequest<'f>(&'f Figures);

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.0.requests_ended.add(1);
    }
}

/// The figures of one port on all executors.
#[derive(Clone, Debug)]
pub struct PortFigures {
    group: Arc<Group<Accepted>>,
}

/// What [`PortFigures`] said at one time; counts are since the start.
#[derive(Clone, Debug)]
pub struct PortReading {
    /// Connections that are open.
    pub connections_open: u64,
    /// Connections accepted, those that were refused among them.
    pub accepted: u64,
    /// Connections refused: past the limit, or for want of descriptors.
    pub refused: u64,
    /// Requests that are open.
    pub requests_open: u64,
    /// Clients whose time was over, by what was waited for; in the order of [`TimeoutPhase::ALL`].
    pub timeouts: [u64; TimeoutPhase::ALL.len()],
    /// Beginnings of connections, by how they ended, in the order of [`HandshakeEnd::ALL`]; all 0 without TLS.
    pub handshakes: [u64; HandshakeEnd::ALL.len()],
    /// By how many nanoseconds the executors were late at the looks that they take four times a second.
    pub delay: HistogramReading,
}

impl PortFigures {
    pub(crate) const fn of(group: Arc<Group<Accepted>>) -> Self {
        Self { group }
    }

    /// The figures now.
    #[must_use]
    pub fn read(&self) -> PortReading {
        let figures = || self.group.figures();
        let sum = |one: fn(&Figures) -> u64| figures().map(|of_executor| one(of_executor)).sum::<u64>();
        // The ended ones first: one that ends between the two looks then counts as open, and never is there less than none.
        let requests_ended = sum(|figures| figures.requests_ended.value());
        let requests_begun = sum(|figures| figures.requests_begun.value());
        PortReading {
            connections_open: self.group.open() as u64,
            accepted: sum(|figures| figures.accepted.value()),
            refused: sum(|figures| figures.refused.value()),
            requests_open: requests_begun.saturating_sub(requests_ended),
            timeouts: TimeoutPhase::ALL
                .map(|phase| figures().map(|figures| figures.timeouts[phase as usize].value()).sum()),
            handshakes: HandshakeEnd::ALL
                .map(|end| figures().map(|figures| figures.handshakes[end as usize].value()).sum()),
            delay: HistogramReading::sum_of(&DURATION_BOUNDS, figures().map(|figures| figures.delay.read())),
        }
    }
}
