//! Spreading the connections of one port over the executors.
//!
//! The kernel spreads connections over `SO_REUSEPORT` listeners by a hash of their addresses, which for a few dozen
//! long-lived connections can leave one core with twice the work of another. So the executor that accepts a
//! connection looks at how many each executor has open, and hands the new one over when it is clearly ahead. A
//! connection is never moved later.
//!
//! Invariant: a connection is counted from the moment it is accepted (at the executor that will serve it, so that a
//! burst does not overshoot) until its [`Place`] is dropped.

use crate::figures::Figures;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// All executors of one port.
#[derive(Debug)]
pub(crate) struct Group<T> {
    seats: Vec<Seat<T>>,
}

#[derive(Debug)]
struct Seat<T> {
    open: AtomicUsize,
    figures: Arc<Figures>,
    inbox: Mutex<Inbox<T>>,
}

#[derive(Debug)]
struct Inbox<T> {
    handed: VecDeque<(T, Place<T>)>,
    waker: Option<Waker>,
    is_open: bool,
}

/// A connection's place at one executor. Dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct Place<T> {
    group: Arc<Group<T>>,
    seat: usize,
}

impl<T> Place<T> {
    /// Connections open at all executors of the port, this one included.
    pub(crate) fn group_open(&self) -> usize {
        self.group.open()
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        self.group.seats[self.seat].open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> Seat<T> {
    /// A panic cannot happen while it is held, and would leave nothing half-done.
    fn inbox(&self) -> MutexGuard<'_, Inbox<T>> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Group<T> {
    pub(crate) fn new(executors: usize) -> Arc<Self> {
        let seat = |_| Seat {
            open: AtomicUsize::new(0),
            figures: Arc::default(),
            inbox: Mutex::new(Inbox { handed: VecDeque::new(), waker: None, is_open: false }),
        };
        Arc::new(Self { seats: (0..executors).map(seat).collect() })
    }

    /// Connections open at all executors.
    pub(crate) fn open(&self) -> usize {
        self.seats.iter().map(|seat| seat.open.load(Ordering::Relaxed)).sum()
    }

    /// What each executor counts.
    pub(crate) fn figures(&self) -> impl Iterator<Item = &Arc<Figures>> {
        self.seats.iter().map(|seat| &seat.figures)
    }

    /// What one executor counts.
    pub(crate) fn figures_of(&self, seat: usize) -> &Arc<Figures> {
        &self.seats[seat].figures
    }

    /// From now on connections may be handed to this executor.
    pub(crate) fn open_seat(&self, seat: usize) {
        self.seats[seat].inbox().is_open = true;
    }

    /// From now on none are; gives back those that nobody took.
    pub(crate) fn close_seat(&self, seat: usize) -> Vec<T> {
        let mut inbox = self.seats[seat].inbox();
        inbox.is_open = false;
        let handed = std::mem::take(&mut inbox.handed);
        drop(inbox);
        handed.into_iter().map(|(connection, _)| connection).collect()
    }

    /// Where a connection that `own` has accepted should be served. Handing over costs a wake-up of another core, so
    /// with many connections open a small lead is let be.
    fn choose(&self, own: usize) -> usize {
        let count = |seat: usize| self.seats[seat].open.load(Ordering::Relaxed);
        let least = (0..self.seats.len()).min_by_key(|&seat| (count(seat), seat != own)).unwrap_or(own);
        if count(own) > count(least) + count(least) / 8 { least } else { own }
    }

    fn take_place(self: &Arc<Self>, seat: usize) -> Place<T> {
        self.seats[seat].open.fetch_add(1, Ordering::Relaxed);
        Place { group: Arc::clone(self), seat }
    }

    /// Gives a connection that `own` has accepted its place: here, then it comes back, or at another executor, which
    /// is woken.
    pub(crate) fn seat(self: &Arc<Self>, own: usize, connection: T) -> Option<(T, Place<T>)> {
        let chosen = self.choose(own);
        if chosen != own {
            let mut inbox = self.seats[chosen].inbox();
            if inbox.is_open {
                inbox.handed.push_back((connection, self.take_place(chosen)));
                let waker = inbox.waker.take();
                drop(inbox);
                if let Some(waker) = waker {
                    waker.wake();
                }
                return None;
            }
        }
        Some((connection, self.take_place(own)))
    }

    /// The next connection that another executor has handed to this one.
    pub(crate) fn poll_handed(&self, seat: usize, context: &Context<'_>) -> Poll<(T, Place<T>)> {
        let mut inbox = self.seats[seat].inbox();
        match inbox.handed.pop_front() {
            Some(handed) => Poll::Ready(handed),
            None => {
                inbox.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(executors: usize) -> Arc<Group<u32>> {
        let group = Group::new(executors);
        (0..executors).for_each(|seat| group.open_seat(seat));
        group
    }

    #[test]
    fn one_listener_that_gets_everything_shares_it() {
        let group = group(4);
        let mut kept = Vec::new();
        for connection in 0..32 {
            kept.extend(group.seat(0, connection));
        }
        let counts: Vec<usize> = group.seats.iter().map(|seat| seat.open.load(Ordering::Relaxed)).collect();
        assert_eq!(counts, [8, 8, 8, 8]);
        assert_eq!(group.open(), 32);
    }

    #[test]
    fn an_even_spread_hands_nothing_over() {
        let group = group(2);
        let mut kept = Vec::new();
        for connection in 0..32 {
            kept.extend(group.seat(usize::from(connection % 2 == 1), connection));
        }
        assert_eq!(kept.len(), 32);
    }

    #[test]
    fn places_are_given_back() {
        let group = group(2);
        let mut kept: Vec<_> = (0..10).filter_map(|connection| group.seat(0, connection)).collect();
        kept.clear();
        assert_eq!(group.close_seat(1), [1, 3, 5, 7, 9]);
        assert_eq!(group.open(), 0);
    }

    #[test]
    fn an_executor_that_does_not_serve_gets_nothing() {
        let group: Arc<Group<u32>> = Group::new(2);
        group.open_seat(0);
        let kept: Vec<_> = (0..10).filter_map(|connection| group.seat(0, connection)).collect();
        assert_eq!(kept.len(), 10);
    }
}
