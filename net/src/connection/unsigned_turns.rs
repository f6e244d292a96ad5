//! Scheduling of unsigned requests.
//!
//! An executor polls tasks in the order in which they became ready. If a thousand clients keep sending small unsigned
//! requests, a signed request waits behind all of them. So each step (poll) of an unsigned request needs a turn, and there
//! are [`UNSIGNED_TURNS`] turns between two passes of the executor over its sockets. Further steps wait, first come, first
//! served. Requests of other clients that arrive in the meantime run before them.
//!
//! A turn ends with the step: a request that waits for its client, the device or another thread holds none. So slow
//! clients and long work keep nobody waiting.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::limits::{UNSIGNED_PAUSE, UNSIGNED_TURNS};

/// The turns of a port on one executor. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct UnsignedTurns(Rc<Turns>);

#[derive(Debug)]
struct Turns {
    /// Turns until the next look at the sockets.
    left: Cell<usize>,
    waiting: RefCell<VecDeque<Waiting>>,
    /// Whether a task gives out new turns after the next look.
    is_renewing: Cell<bool>,
}

/// A step that waits for its turn.
#[derive(Debug)]
struct Waiting {
    has_turn: Rc<Cell<bool>>,
    waker: Waker,
}

impl Default for UnsignedTurns {
    fn default() -> Self {
        let left = Cell::new(UNSIGNED_TURNS);
        Self(Rc::new(Turns { left, waiting: RefCell::default(), is_renewing: Cell::new(false) }))
    }
}

impl UnsignedTurns {
    /// Returns `request` as a future whose steps need turns.
    pub(crate) const fn pace<F: Future + Unpin>(&self, request: F) -> Paced<'_, F> {
        Paced { turns: self, has_turn: None, request }
    }

    /// Takes a turn if there is one, and nobody waits for it.
    fn take(&self) -> bool {
        let turns = &self.0;
        let is_free = turns.left.get() > 0 && turns.waiting.borrow().is_empty();
        if is_free {
            turns.left.set(turns.left.get() - 1);
            // Early enough that a few clients never wait.
            if turns.left.get() <= UNSIGNED_TURNS / 2 {
                self.start_renewing();
            }
        }
        is_free
    }

    /// Waits for a turn behind all others.
    fn wait(&self, waker: &Waker) -> Rc<Cell<bool>> {
        let has_turn = Rc::<Cell<bool>>::default();
        let waiting = Waiting { has_turn: Rc::clone(&has_turn), waker: waker.clone() };
        self.0.waiting.borrow_mut().push_back(waiting);
        self.start_renewing();
        has_turn
    }

    /// Gives out new turns after the next look at the sockets, until nobody waits for one.
    fn start_renewing(&self) {
        if self.0.is_renewing.replace(true) {
            return;
        }
        let turns = self.clone();
        glommio::spawn_local(async move {
            // An executor looks at its timers when it looks at its sockets.
            loop {
                glommio::timer::sleep(UNSIGNED_PAUSE).await;
                if !turns.renew() {
                    break;
                }
            }
            turns.0.is_renewing.set(false);
        })
        .detach();
    }

    /// Gives out new turns. Returns whether more steps wait.
    fn renew(&self) -> bool {
        let turns = &self.0;
        let mut waiting = turns.waiting.borrow_mut();
        let served = waiting.len().min(UNSIGNED_TURNS);
        turns.left.set(UNSIGNED_TURNS - served);
        for Waiting { has_turn, waker } in waiting.drain(..served) {
            has_turn.set(true);
            waker.wake();
        }
        !waiting.is_empty()
    }
}

/// A request whose steps need turns.
pub(crate) struct Paced<'t, F> {
    turns: &'t UnsignedTurns,
    /// Set while the next step waits: whether its turn has come.
    has_turn: Option<Rc<Cell<bool>>>,
    request: F,
}

impl<F: Future + Unpin> Future for Paced<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        match &self.has_turn {
            // Something else has happened in the meantime. The step sees it in its turn.
            Some(has_turn) if !has_turn.get() => return Poll::Pending,
            Some(_) => self.has_turn = None,
            None if self.turns.take() => {}
            None => {
                self.has_turn = Some(self.turns.wait(context.waker()));
                return Poll::Pending;
            }
        }
        Pin::new(&mut self.request).poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_fixtures::on_executor;
    use futures_lite::future::yield_now;

    /// Starts so many requests of some steps each. Each step notes the number of its request.
    fn start(turns: &UnsignedTurns, requests: usize, steps: usize, noted: &Rc<RefCell<Vec<usize>>>) {
        for number in 0..requests {
            let (turns, noted) = (turns.clone(), Rc::clone(noted));
            glommio::spawn_local(async move {
                let request = async move {
                    for _ in 0..steps {
                        noted.borrow_mut().push(number);
                        yield_now().await;
                    }
                };
                turns.pace(Box::pin(request)).await;
            })
            .detach();
        }
    }

    #[test]
    fn a_crowd_lets_others_pass_and_all_of_it_is_served_in_order() {
        const CROWD: usize = 20 * UNSIGNED_TURNS;
        on_executor(|| async {
            let (turns, noted) = (UnsignedTurns::default(), Rc::<RefCell<Vec<usize>>>::default());
            start(&turns, CROWD, 1, &noted);
            // Behind the whole crowd in the queue of the executor.
            let other = Rc::clone(&noted);
            let seen = glommio::spawn_local(async move { other.borrow().len() }).await;
            assert_eq!(seen, UNSIGNED_TURNS, "the others of the crowd wait");
            while noted.borrow().len() < CROWD {
                glommio::timer::sleep(UNSIGNED_PAUSE).await;
            }
            assert!(noted.borrow().is_sorted(), "first come, first served");
        });
    }

    #[test]
    fn each_step_needs_a_turn_and_all_requests_come_forward_together() {
        const REQUESTS: usize = 3 * UNSIGNED_TURNS;
        const STEPS: usize = 5;
        on_executor(|| async {
            let (turns, noted) = (UnsignedTurns::default(), Rc::<RefCell<Vec<usize>>>::default());
            start(&turns, REQUESTS, STEPS, &noted);
            while noted.borrow().len() < REQUESTS * STEPS {
                glommio::timer::sleep(UNSIGNED_PAUSE).await;
            }
            let noted = noted.borrow();
            let first_end = noted.iter().scan(0, |steps_of_first, number| {
                *steps_of_first += usize::from(*number == 0);
                Some(*steps_of_first)
            });
            let before_end = first_end.take_while(|steps| *steps < STEPS).count();
            assert!(before_end >= REQUESTS * (STEPS - 1) - UNSIGNED_TURNS, "{before_end}");
        });
    }

    #[test]
    fn a_request_that_is_dropped_while_it_waits_keeps_nobody_waiting() {
        on_executor(|| async {
            let (turns, noted) = (UnsignedTurns::default(), Rc::<RefCell<Vec<usize>>>::default());
            for _ in 0..2 * UNSIGNED_TURNS {
                let mut request = turns.pace(Box::pin(std::future::pending::<()>()));
                assert!(futures_lite::future::poll_once(&mut request).await.is_none());
            }
            start(&turns, 1, 1, &noted);
            while noted.borrow().is_empty() {
                glommio::timer::sleep(UNSIGNED_PAUSE).await;
            }
        });
    }
}
