//! The request loop of one connection: send a request, read its response, record the outcome.
//!
//! Nothing is retried: a failed request is counted and the next one is sent, on a new connection if necessary. `worker` decides
//! how many connections a thread has.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::chooser::{Chooser, Presence, Step};
use super::exchange::{Exchange, Received};
use super::shared::Shared;
use crate::failure::Failure;
use crate::http::connection::Connection;
use crate::measure::statistics::{Done, Statistics, Window};
use crate::workload::Operation;

/// Pause after a refused connection, so that a server that is down does not get a hundred thousand attempts per second.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// The request loop of one connection.
pub(crate) struct ConnectionLoop<'a> {
    shared: &'a Shared,
    number: usize,
    exchange: Exchange<'a>,
    pub(crate) connection: Option<Connection>,
    opened: bool,
    chooser: Chooser,
    waiting: Option<Waiting>,
    /// The time when the next request is due, in an open loop.
    due: Option<Instant>,
}

/// A request that was sent.
struct Waiting {
    step: Step,
    /// The start of its latency.
    started: Instant,
    sent: Instant,
}

/// The result of [`ConnectionLoop::begin`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Begun {
    /// A request was sent.
    Sent,
    /// The next request is due at this time: to be called again then.
    NotBefore(Instant),
    /// The run has ended.
    Ended,
}

impl<'a> ConnectionLoop<'a> {
    /// Opens the connection. If that fails, the first request tries again.
    pub(crate) fn new(shared: &'a Shared, number: usize, statistics: &mut Statistics) -> Self {
        let mut connection_loop = Self {
            shared,
            number,
            exchange: Exchange::new(shared),
            connection: None,
            opened: false,
            chooser: Chooser::new(&shared.plan, number),
            waiting: None,
            due: None,
        };
        connection_loop.connection = connection_loop.connect(statistics).ok();
        connection_loop
    }

    /// Sends the next request if it is due, and records requests that could not be sent.
    pub(crate) fn begin(&mut self, statistics: &mut Statistics, window: &Window) -> Begun {
        loop {
            if let Some(arrivals) = &self.shared.arrivals {
                let due = *self.due.get_or_insert_with(|| arrivals.take(window.begun));
                let now = Instant::now();
                if window.until.is_some_and(|until| due >= until || now >= until) {
                    return Begun::Ended;
                }
                if due > now {
                    return Begun::NotBefore(due);
                }
            }
            let Some(step) = self.next(window) else { return Begun::Ended };
            let connection = match self.connection.take() {
                Some(connection) => Ok(connection),
                None => self.connect(statistics),
            };
            let (head, body) = self.exchange.compose(&step);
            // What an open loop waits for a free connection is part of the latency.
            let now = Instant::now();
            let started = self.due.take().unwrap_or(now);
            let sent = connection.and_then(|mut connection| {
                connection.send(head, body)?;
                self.connection = Some(connection);
                Ok(())
            });
            match sent {
                Ok(()) => {
                    self.waiting = Some(Waiting { step, started, sent: now });
                    return Begun::Sent;
                }
                Err(failure) => self.complete(&step, started, &Err(failure), statistics, window),
            }
        }
    }

    /// Reads what has arrived. Returns whether [`Self::finish`] would not block now.
    pub(crate) fn is_ready(&mut self, statistics: &mut Statistics, window: &Window) -> bool {
        match self.connection.as_mut().map(Connection::is_ready) {
            Some(Ok(ready)) => ready,
            Some(Err(failure)) => {
                self.fail(failure, statistics, window);
                true
            }
            None => true,
        }
    }

    /// Reads the response to its end and records it. Does nothing if no request is in progress.
    pub(crate) fn finish(&mut self, statistics: &mut Statistics, window: &Window) {
        let Some(Waiting { step, started, .. }) = self.waiting.take() else { return };
        let Some(mut connection) = self.connection.take() else { return };
        let outcome = match self.exchange.receive(&mut connection, &step) {
            Ok(Received { reusable, outcome }) => {
                self.connection = reusable.then_some(connection);
                outcome
            }
            Err(failure) => Err(failure),
        };
        self.complete(&step, started, &outcome, statistics, window);
    }

    /// Fails the request in progress and closes the connection.
    pub(crate) fn fail(&mut self, failure: Failure, statistics: &mut Statistics, window: &Window) {
        self.connection = None;
        if let Some(Waiting { step, started, .. }) = self.waiting.take() {
            self.complete(&step, started, &Err(failure), statistics, window);
        }
    }

    /// Returns when the request in progress was sent.
    pub(crate) fn waiting_since(&self) -> Option<Instant> {
        self.waiting.as_ref().map(|waiting| waiting.sent)
    }

    fn next(&mut self, window: &Window) -> Option<Step> {
        let shared = self.shared;
        if window.until.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        if let Some(limit) = shared.plan.requests
            && shared.requests.fetch_add(1, Ordering::Relaxed) >= limit
        {
            return None;
        }
        self.chooser.next(&shared.plan, || shared.tickets.fetch_add(1, Ordering::Relaxed))
    }

    fn connect(&mut self, statistics: &mut Statistics) -> Result<Connection, Failure> {
        let plan = &self.shared.plan;
        let connection = Connection::open(&plan.server, plan.timeout)?;
        connection.set_send_buffer(plan.send_buffer)?;
        if std::mem::replace(&mut self.opened, true) {
            statistics.reconnects += 1;
        }
        Ok(connection)
    }

    fn complete(
        &mut self,
        step: &Step,
        started: Instant,
        outcome: &Result<Done, Failure>,
        statistics: &mut Statistics,
        window: &Window,
    ) {
        statistics.record(step.operation, (started, Instant::now()), outcome, window);
        self.shared.live[self.number].record(outcome);
        self.chooser.record(step, presence_after(step, outcome));
        if matches!(outcome, Err(Failure::Connect(_))) {
            pause();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a plain thread, not an executor")]
fn pause() {
    thread::sleep(CONNECT_PAUSE);
}

/// Returns the presence of a key after a request of a mixed run; `None` if it is unknown.
fn presence_after(step: &Step, outcome: &Result<Done, Failure>) -> Option<Presence> {
    match (step.operation, outcome) {
        (Operation::Delete, Ok(_)) | (_, Ok(Done::Absent)) => Some(Presence::Absent),
        (_, Ok(Done::Transferred { .. })) => Some(Presence::Present),
        // A failed read changes nothing; a failed write may or may not have been applied.
        (Operation::Put | Operation::Delete, Err(_)) => None,
        (_, Err(_)) => Some(step.presence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failed_write_makes_presence_unknown() {
        let step = |operation| Step { operation, number: 0, range: None, presence: Presence::Present };
        let failed = Err(Failure::Closed);
        assert_eq!(presence_after(&step(Operation::Put), &failed), None);
        assert_eq!(presence_after(&step(Operation::Delete), &failed), None);
        assert_eq!(presence_after(&step(Operation::Get), &failed), Some(Presence::Present));
        assert_eq!(presence_after(&step(Operation::Get), &Ok(Done::Absent)), Some(Presence::Absent));
        let done = Ok(Done::Transferred { bytes: 0, verified: 0 });
        assert_eq!(presence_after(&step(Operation::Delete), &done), Some(Presence::Absent));
        assert_eq!(presence_after(&step(Operation::Put), &done), Some(Presence::Present));
    }
}
