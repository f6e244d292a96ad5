//! Deadlines of connections, without a timer per request: each connection keeps a [`Watch`] that says what it waits
//! for and until when, and one task per executor and port looks at all of them every quarter of a second.
//!
//! A connection that waits for its client does so through its watch, so that it can be woken when its time is over or
//! the process stops. A connection whose service is at work has no deadline: disk writes are never abandoned.
//! Everything here stays on one executor.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// What a connection is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Waiting for the first byte of a request.
    Idle,
    /// Waiting for the client: the rest of a head, body bytes, or room to write.
    Waiting,
    /// The service is at work; no deadline.
    Serving,
}

/// Why a wait has to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signal {
    /// Nothing to say.
    Quiet,
    /// This wait has lasted long enough: its deadline has passed, or it is for a request and the process drains.
    Expired,
    /// The process stops; nothing further may be waited for.
    Aborted,
}

/// One connection, as the reaper sees it.
#[derive(Debug)]
pub(crate) struct Watch {
    phase: Cell<Phase>,
    deadline: Cell<Instant>,
    signal: Cell<Signal>,
    waker: RefCell<Option<Waker>>,
    /// Its place in the registry.
    index: Cell<usize>,
}

impl Watch {
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            phase: Cell::new(Phase::Serving),
            deadline: Cell::new(now),
            signal: Cell::new(Signal::Quiet),
            waker: RefCell::new(None),
            index: Cell::new(0),
        }
    }

    /// Begins a wait that ends at `deadline`.
    pub(crate) fn arm(&self, phase: Phase, deadline: Instant) {
        self.phase.set(phase);
        self.deadline.set(deadline);
        self.forget_expiry();
    }

    /// The wait is over; the service is at work.
    pub(crate) fn disarm(&self) {
        self.phase.set(Phase::Serving);
        self.forget_expiry();
    }

    /// An expiry is about one wait. What was waited for may have come together with it, and the next wait looks at the
    /// signal before it arms: an expiry left behind would end that wait at once. An abort is for good.
    fn forget_expiry(&self) {
        if self.signal.get() == Signal::Expired {
            self.signal.set(Signal::Quiet);
        }
    }

    /// Ready when the wait has to end; else the task is woken when it has to.
    pub(crate) fn poll_signal(&self, context: &Context<'_>) -> Poll<Signal> {
        match self.signal.get() {
            Signal::Quiet => {
                let mut waker = self.waker.borrow_mut();
                if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                    *waker = Some(context.waker().clone());
                }
                Poll::Pending
            }
            signal => Poll::Ready(signal),
        }
    }

    /// Ends the present wait and, for an abort, all later ones.
    pub(crate) fn give(&self, signal: Signal) {
        if self.signal.get() != Signal::Aborted {
            self.signal.set(signal);
        }
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// All connections of one port on one executor.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    watches: RefCell<Vec<Rc<Watch>>>,
}

impl Registry {
    pub(crate) fn add(&self, watch: &Rc<Watch>) {
        let mut watches = self.watches.borrow_mut();
        watch.index.set(watches.len());
        watches.push(Rc::clone(watch));
    }

    pub(crate) fn remove(&self, watch: &Watch) {
        let mut watches = self.watches.borrow_mut();
        let index = watch.index.get();
        if index < watches.len() && std::ptr::eq(Rc::as_ptr(&watches[index]), watch) {
            watches.swap_remove(index);
            if let Some(moved) = watches.get(index) {
                moved.index.set(index);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.watches.borrow().len()
    }

    /// Ends the waits whose deadline has passed.
    pub(crate) fn expire(&self, now: Instant) {
        self.give_where(Signal::Expired, |watch| {
            watch.phase.get() != Phase::Serving && watch.deadline.get() <= now
        });
    }

    /// Ends the waits for a request, and the connection with each. One whose request has just arrived does not wait any
    /// more, even if nobody has read it yet: it is answered.
    pub(crate) fn close_idle(&self) {
        self.give_where(Signal::Expired, |watch| watch.phase.get() == Phase::Idle);
    }

    /// Ends all connections: those whose service is at work end when it first waits for the client again.
    pub(crate) fn abort_all(&self) {
        self.give_where(Signal::Aborted, |_| true);
    }

    /// Waking runs no task here and now, so the registry may stay borrowed.
    fn give_where(&self, signal: Signal, chosen: impl Fn(&Watch) -> bool) {
        for watch in self.watches.borrow().iter().filter(|watch| chosen(watch)) {
            watch.give(signal);
        }
    }
}

/// The patience that is left with a client that sends or takes a body: it may stall for a while, and over all its
/// waits it must keep a least rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    stall: Duration,
    rate_min: u64,
    bytes: u64,
    waited: Duration,
}

impl Pace {
    pub(crate) const fn new(stall: Duration, rate_min: u64) -> Self {
        Self { stall, rate_min, bytes: 0, waited: Duration::ZERO }
    }

    /// How long the next wait may last.
    pub(crate) fn patience(&self) -> Duration {
        let earned = match self.bytes.checked_div(self.rate_min) {
            Some(seconds) => Duration::from_secs(seconds),
            None => return self.stall,
        };
        self.stall.saturating_add(earned).saturating_sub(self.waited).min(self.stall)
    }

    /// Accounts for a wait and what it brought.
    pub(crate) fn note(&mut self, waited: Duration, bytes: usize) {
        self.waited = self.waited.saturating_add(waited);
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_at_a_time_uses_up_the_patience() {
        let mut pace = Pace::new(Duration::from_secs(30), 1024);
        let mut total = Duration::ZERO;
        while pace.patience() > Duration::ZERO {
            let wait = pace.patience().min(Duration::from_secs(5));
            pace.note(wait, 1);
            total += wait;
        }
        assert!(total <= Duration::from_secs(31), "{total:?}");
    }

    #[test]
    fn a_steady_client_keeps_its_whole_patience() {
        let mut pace = Pace::new(Duration::from_secs(30), 1024);
        for _ in 0..1000 {
            pace.note(Duration::from_secs(1), 4096);
        }
        assert_eq!(pace.patience(), Duration::from_secs(30));
    }

    #[test]
    fn without_a_rate_only_stalls_count() {
        let mut pace = Pace::new(Duration::from_secs(30), 0);
        pace.note(Duration::from_secs(3600), 1);
        assert_eq!(pace.patience(), Duration::from_secs(30));
    }

    #[test]
    fn removal_keeps_the_others_in_place() {
        let registry = Registry::default();
        let now = Instant::now();
        let watches: Vec<Rc<Watch>> = (0..5).map(|_| Rc::new(Watch::new(now))).collect();
        watches.iter().for_each(|watch| registry.add(watch));
        for index in [1, 0, 4, 2, 3] {
            registry.remove(&watches[index]);
            registry.remove(&watches[index]);
        }
        assert_eq!(registry.len(), 0);
    }

    #[test]
    fn only_waits_expire() {
        let registry = Registry::default();
        let now = Instant::now();
        let (serving, waiting) = (Rc::new(Watch::new(now)), Rc::new(Watch::new(now)));
        registry.add(&serving);
        registry.add(&waiting);
        waiting.arm(Phase::Waiting, now);
        registry.expire(now + TICK_FOR_TEST);
        assert_eq!(serving.signal.get(), Signal::Quiet);
        assert_eq!(waiting.signal.get(), Signal::Expired);
        waiting.arm(Phase::Waiting, now + TICK_FOR_TEST);
        assert_eq!(waiting.signal.get(), Signal::Quiet);
        registry.abort_all();
        waiting.arm(Phase::Waiting, now);
        assert_eq!(waiting.signal.get(), Signal::Aborted, "an abort is for good");
    }

    /// Connections that waited for a request were given an abort when a drain began, and an abort is for good. One whose
    /// request arrived in the same moment was served, but its first wait for the client failed at once, with the whole
    /// grace period left: a PUT was answered with 400, a large GET was cut. An idle timeout in the same moment did the
    /// same, for `disarm` left the signal as it was.
    #[test]
    fn a_request_that_arrives_as_its_wait_is_ended_has_its_own_time() {
        let registry = Registry::default();
        let now = Instant::now();
        let watch = Rc::new(Watch::new(now));
        registry.add(&watch);
        let end_wait: [&dyn Fn(); 2] = [&|| registry.close_idle(), &|| registry.expire(now + TICK_FOR_TEST)];
        for end_wait in end_wait {
            watch.arm(Phase::Idle, now);
            end_wait();
            assert_eq!(watch.signal.get(), Signal::Expired, "who still waits is woken");
            watch.disarm();
            let context = Context::from_waker(Waker::noop());
            assert!(watch.poll_signal(&context).is_pending(), "the body may be waited for");
        }
        registry.abort_all();
        watch.disarm();
        assert_eq!(watch.signal.get(), Signal::Aborted, "an abort is for good");
    }

    const TICK_FOR_TEST: Duration = Duration::from_millis(1);
}
