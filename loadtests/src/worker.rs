//! The closed loop of one connection: choose, send, receive, count, and again.
//!
//! Nothing is retried: a failed request is counted and the next one begins, on a new connection if the old one is
//! unusable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::content::Content;
use crate::exchange::{Exchange, Received};
use crate::failure::Failure;
use crate::operation::{Chooser, Operation, Presence, Step};
use crate::plan::Plan;
use crate::request::PresignedHeads;
use crate::tally::{Done, Live, Tally, Window};

/// After a refused connection, so that a server that is down is not asked a hundred thousand times a second.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// What all connections of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: Plan,
    pub(crate) content: Content,
    pub(crate) prepared: Option<PresignedHeads>,
    /// Counts keys off over all connections.
    pub(crate) tickets: AtomicU64,
    /// Counts requests off, for `--requests`.
    pub(crate) requests: AtomicU64,
    pub(crate) live: Vec<Live>,
    /// Waited on twice: when all connections are open, and when the window is set.
    pub(crate) barrier: Barrier,
    pub(crate) window: OnceLock<Window>,
}

struct Worker<'a> {
    shared: &'a Shared,
    exchange: Exchange<'a>,
    connection: Option<Connection>,
    opened: bool,
    chooser: Chooser,
    tally: Tally,
}

/// Runs one connection to the end of the run.
pub(crate) fn work(shared: &Shared, number: usize) -> Tally {
    let mut worker = Worker {
        shared,
        exchange: Exchange::new(shared),
        connection: None,
        opened: false,
        chooser: Chooser::new(&shared.plan, number),
        tally: Tally::default(),
    };
    // A failure here is found again, and counted, with the first request.
    worker.connection = worker.connect().ok();
    shared.barrier.wait();
    shared.barrier.wait();
    let window = *shared.window.get().expect("set before the second wait");
    while let Some(step) = worker.next(&window) {
        let (started, outcome) = worker.perform(&step);
        worker.tally.record(step.operation, (started, Instant::now()), &outcome, &window);
        shared.live[number].note(&outcome);
        worker.chooser.learn(&step, learnt(&step, &outcome));
        if matches!(outcome, Err(Failure::Connect(_))) {
            pause();
        }
    }
    worker.tally
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

impl Worker<'_> {
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

    fn connect(&mut self) -> Result<Connection, Failure> {
        let connection = Connection::open(self.shared.plan.address, self.shared.plan.timeout)?;
        if std::mem::replace(&mut self.opened, true) {
            self.tally.reconnects += 1;
        }
        Ok(connection)
    }

    /// One request, and when its clock began.
    fn perform(&mut self, step: &Step) -> (Instant, Result<Done, Failure>) {
        let connection = self.connection.take().map_or_else(|| self.connect(), Ok);
        let mut connection = match connection {
            Ok(connection) => connection,
            Err(failure) => return (Instant::now(), Err(failure)),
        };
        let (head, body) = self.exchange.compose(step);
        let started = Instant::now();
        let sent = connection.send(head, body);
        match sent.and_then(|()| self.exchange.receive(&mut connection, step)) {
            Ok(Received { reusable, outcome }) => {
                self.connection = reusable.then_some(connection);
                (started, outcome)
            }
            Err(failure) => (started, Err(failure)),
        }
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
