//! One connection and what goes over it: begin a request, finish it, settle the account.
//!
//! Nothing is retried: a failed request is counted and the next one begins, on a new connection if the old one is
//! unusable. `worker` decides whether a thread has one lane or many.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::exchange::{Exchange, Received};
use crate::failure::Failure;
use crate::operation::{Chooser, Operation, Presence, Step};
use crate::tally::{Done, Tally, Window};
use crate::worker::Shared;

/// After a refused connection, so that a server that is down is not asked a hundred thousand times a second.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// One connection of the run.
pub(crate) struct Lane<'a> {
    shared: &'a Shared,
    number: usize,
    exchange: Exchange<'a>,
    pub(crate) connection: Option<Connection>,
    opened: bool,
    chooser: Chooser,
    waiting: Option<(Step, Instant)>,
}

impl<'a> Lane<'a> {
    /// A lane with an open connection, if the server grants one; else the first request tries again.
    pub(crate) fn new(shared: &'a Shared, number: usize, tally: &mut Tally) -> Self {
        let mut lane = Self {
            shared,
            number,
            exchange: Exchange::new(shared),
            connection: None,
            opened: false,
            chooser: Chooser::new(&shared.plan, number),
            waiting: None,
        };
        lane.connection = lane.connect(tally).ok();
        lane
    }

    /// Sends the next request; failures on the way are settled. `false` when the run has no more for this lane.
    pub(crate) fn begin(&mut self, tally: &mut Tally, window: &Window) -> bool {
        while let Some(step) = self.next(window) {
            let connection = match self.connection.take() {
                Some(connection) => Ok(connection),
                None => self.connect(tally),
            };
            let (head, body) = self.exchange.compose(&step);
            let started = Instant::now();
            let sent = connection.and_then(|mut connection| {
                connection.send(head, body)?;
                self.connection = Some(connection);
                Ok(())
            });
            match sent {
                Ok(()) => {
                    self.waiting = Some((step, started));
                    return true;
                }
                Err(failure) => self.settle(&step, started, &Err(failure), tally, window),
            }
        }
        false
    }

    /// Reads what there is, without waiting for more; whether [`Self::finish`] would now not hold up others.
    pub(crate) fn is_ready(&mut self, tally: &mut Tally, window: &Window) -> bool {
        match self.connection.as_mut().map(Connection::is_ready) {
            Some(Ok(ready)) => ready,
            Some(Err(failure)) => {
                self.fail(failure, tally, window);
                true
            }
            None => true,
        }
    }

    /// Reads the response to its end and counts it. Nothing happens if no request is under way.
    pub(crate) fn finish(&mut self, tally: &mut Tally, window: &Window) {
        let Some((step, started)) = self.waiting.take() else { return };
        let Some(mut connection) = self.connection.take() else { return };
        let outcome = match self.exchange.receive(&mut connection, &step) {
            Ok(Received { reusable, outcome }) => {
                self.connection = reusable.then_some(connection);
                outcome
            }
            Err(failure) => Err(failure),
        };
        self.settle(&step, started, &outcome, tally, window);
    }

    /// Gives up the request under way, and its connection with it.
    pub(crate) fn fail(&mut self, failure: Failure, tally: &mut Tally, window: &Window) {
        self.connection = None;
        if let Some((step, started)) = self.waiting.take() {
            self.settle(&step, started, &Err(failure), tally, window);
        }
    }

    /// Since when a request has been under way.
    pub(crate) fn waiting_since(&self) -> Option<Instant> {
        self.waiting.as_ref().map(|(_, started)| *started)
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

    fn connect(&mut self, tally: &mut Tally) -> Result<Connection, Failure> {
        let plan = &self.shared.plan;
        let connection = Connection::open(&plan.server, plan.timeout)?;
        connection.set_send_buffer(plan.send_buffer)?;
        if std::mem::replace(&mut self.opened, true) {
            tally.reconnects += 1;
        }
        Ok(connection)
    }

    fn settle(
        &mut self,
        step: &Step,
        started: Instant,
        outcome: &Result<Done, Failure>,
        tally: &mut Tally,
        window: &Window,
    ) {
        tally.record(step.operation, (started, Instant::now()), outcome, window);
        self.shared.live[self.number].note(outcome);
        self.chooser.learn(step, learnt(step, outcome));
        if matches!(outcome, Err(Failure::Connect(_))) {
            pause();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a plain thread of its own, no executor")]
fn pause() {
    thread::sleep(CONNECT_PAUSE);
}

/// What is known of a key after a request of a mixed run.
fn learnt(step: &Step, outcome: &Result<Done, Failure>) -> Option<Presence> {
    match (step.operation, outcome) {
        (Operation::Delete, Ok(_)) | (_, Ok(Done::Absent)) => Some(Presence::Absent),
        (_, Ok(Done::Transferred { .. })) => Some(Presence::Present),
        // A failed read changes nothing; a failed write may or may not have happened.
        (Operation::Put | Operation::Delete, Err(_)) => None,
        (_, Err(_)) => Some(step.presence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_a_key_unknown_and_a_failed_read_leaves_it_as_it_was() {
        let step = |operation| Step { operation, number: 0, range: None, presence: Presence::Present };
        let failed = Err(Failure::Closed);
        assert_eq!(learnt(&step(Operation::Put), &failed), None);
        assert_eq!(learnt(&step(Operation::Delete), &failed), None);
        assert_eq!(learnt(&step(Operation::Get), &failed), Some(Presence::Present));
        assert_eq!(learnt(&step(Operation::Get), &Ok(Done::Absent)), Some(Presence::Absent));
        let done = Ok(Done::Transferred { bytes: 0, verified: 0 });
        assert_eq!(learnt(&step(Operation::Delete), &done), Some(Presence::Absent));
        assert_eq!(learnt(&step(Operation::Put), &done), Some(Presence::Present));
    }
}
