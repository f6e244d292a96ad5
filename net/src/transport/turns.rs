//! Turns of unsigned requests: a flood of them delays no signed request of the same executor.
//!
//! An executor looks for new input when no task can run. With hundreds of unsigned requests to answer, that would be many
//! milliseconds later, and each signed request looks for input several times. So of the unsigned ones only a few begin, or
//! send the next piece of a body, between two such looks. The others wait in order. Signed requests never wait here. Turns
//! cost something, so there are none where nobody has sent a signed request lately.
//!
//! Invariant: while a request waits, a task gives turns.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use futures_channel::oneshot;

use crate::limits::{SIGNED_PERIOD, TURN_PAUSE, TURN_PERIOD, TURNS_MAX};

/// The turns of a port on one executor. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Turns(Rc<RefCell<State>>);

#[derive(Debug)]
struct State {
    /// Requests that wait, at most one of each connection.
    waiting: VecDeque<oneshot::Sender<()>>,
    /// Turns that were taken in this period without waiting.
    taken: usize,
    period_began: Instant,
    /// Whether a task gives turns. Then nobody takes one.
    are_given: bool,
    /// When a signed request began here last.
    signed_at: Option<Instant>,
}

impl Turns {
    pub(crate) fn new(now: Instant) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            taken: 0,
            period_began: now,
            are_given: false,
            signed_at: None,
        };
        Self(Rc::new(RefCell::new(state)))
    }

    /// Notes that a signed request begins.
    pub(crate) fn note_signed(&self, now: Instant) {
        self.0.borrow_mut().signed_at = Some(now);
    }

    /// Waits for a turn. `now` may be the time of a coarse clock.
    pub(crate) async fn take(&self, now: Instant) {
        let waiting = {
            let mut state = self.0.borrow_mut();
            if !state.are_given && state.take(now) {
                return;
            }
            if !state.are_given {
                state.are_given = true;
                glommio::spawn_local(self.clone().give()).detach();
            }
            let (sender, waiting) = oneshot::channel();
            state.waiting.push_back(sender);
            waiting
        };
        // The sender is not dropped while this waits.
        let _ = waiting.await;
    }

    /// Gives turns as long as somebody waits.
    async fn give(self) {
        loop {
            // The executor fires timers only when it looks for input.
            glommio::timer::sleep(TURN_PAUSE).await;
            if !self.0.borrow_mut().give_some(Instant::now()) {
                return;
            }
        }
    }
}

impl State {
    /// Takes a turn of this period. Returns whether there was one.
    fn take(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.period_began) >= TURN_PERIOD {
            (self.period_began, self.taken) = (now, 0);
        }
        let is_free = self.taken < TURNS_MAX || !self.is_needed(now);
        self.taken += usize::from(is_free);
        is_free
    }

    /// Returns whether there was a signed request lately.
    fn is_needed(&self, now: Instant) -> bool {
        self.signed_at.is_some_and(|at| now.saturating_duration_since(at) < SIGNED_PERIOD)
    }

    /// Gives the next ones their turn. Returns whether more may wait.
    fn give_some(&mut self, now: Instant) -> bool {
        let most = if self.is_needed(now) { TURNS_MAX } else { usize::MAX };
        let mut given = 0;
        while given < most {
            let Some(next) = self.waiting.pop_front() else {
                self.are_given = false;
                return false;
            };
            // Who waits no longer needs no turn.
            given += usize::from(next.send(()).is_ok());
        }
        true
    }
}
