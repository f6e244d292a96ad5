//! Balances the connections of one port over the executors.
//!
//! The kernel spreads connections over `SO_REUSEPORT` listeners by a hash of their addresses. With a few dozen
//! long-lived connections, one core can get twice the work of another. So an executor that accepts a connection
//! compares how many each executor has open, and hands the new one over when it has clearly more than the least loaded
//! one. Connections are never moved later.
//!
//! When the port is full, a new connection takes the place of an idle one on any executor, in the order of
//! [`EvictionRank`]. Each executor publishes four times a second the rank of its own first one; it is asked to close it
//! through its inbox.
//!
//! Invariant: a connection is counted from when it is accepted until its [`ConnectionGuard`] is dropped. It is counted
//! at the executor that will serve it, so that a burst does not overshoot.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use cairn_sync::Mutex;
use glommio::net::AcceptedTcpStream;

use crate::connection::unsigned_requests::UnsignedRequests;
use crate::limits::EVICTIONS_PENDING_MAX;
use crate::metrics::ExecutorMetrics;
use crate::server::client_connections::ClientConnections;
use crate::transport::timeouts::EvictionRank;

/// A connection between `accept` and its executor. It has no destructor: it is closed only by binding it to an
/// executor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcceptedConnection {
    pub(crate) stream: AcceptedTcpStream,
    pub(crate) peer: SocketAddr,
}

/// The executors that serve one port.
#[derive(Debug)]
pub(crate) struct ListenerGroup<T> {
    slots: Vec<ExecutorSlot<T>>,
    clients: ClientConnections,
    unsigned: UnsignedRequests,
    created: Instant,
}

/// An item that an executor gets from another one.
#[derive(Debug)]
pub(crate) enum HandedOver<T> {
    /// A connection to serve.
    Connection(T, ConnectionGuard<T>),
    /// The request to close the idle connection that is first in the order of eviction.
    Eviction,
}

/// One executor of a group.
#[derive(Debug)]
struct ExecutorSlot<T> {
    connections: AtomicUsize,
    /// Connections among them that are evicted and still open.
    closing: Arc<AtomicUsize>,
    /// Evictions that other executors have requested and this one has not begun.
    evictions_pending: AtomicUsize,
    /// The rank of the connection that is evicted next: nanoseconds after the group's `created`, and [`HAS_SENT_REQUEST`].
    /// At most a quarter of a second old. [`NONE_IDLE`]: none is idle. [`UNKNOWN`]: not published.
    first_to_evict: AtomicU64,
    metrics: Arc<ExecutorMetrics>,
    inbox: Mutex<Inbox<T>>,
}

/// No connection is idle.
const NONE_IDLE: u64 = u64::MAX;
/// The rank is not published. Later than every rank, so that the executor is asked only if none is known to have an idle
/// connection.
const UNKNOWN: u64 = u64::MAX - 1;
/// Added to the time of a connection that has sent a request. A process runs for less than the 146 years of this bit.
const HAS_SENT_REQUEST: u64 = 1 << 62;

/// Connections that other executors have handed over to this one.
#[derive(Debug)]
struct Inbox<T> {
    connections: VecDeque<(T, ConnectionGuard<T>)>,
    /// Requested evictions, at most [`EVICTIONS_PENDING_MAX`].
    evictions: usize,
    waker: Option<Waker>,
    is_open: bool,
}

/// Counts a connection at one executor until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionGuard<T> {
    group: Arc<ListenerGroup<T>>,
    slot: usize,
}

impl<T> Drop for ConnectionGuard<T> {
    fn drop(&mut self) {
        let before = self.group.slots[self.slot].connections.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "every guard is counted once");
    }
}

impl<T> ListenerGroup<T> {
    pub(crate) fn new(executors: usize) -> Arc<Self> {
        let slot = |_| ExecutorSlot {
            connections: AtomicUsize::new(0),
            closing: Arc::default(),
            evictions_pending: AtomicUsize::new(0),
            first_to_evict: AtomicU64::new(UNKNOWN),
            metrics: Arc::default(),
            inbox: Mutex::new(Inbox {
                connections: VecDeque::new(),
                evictions: 0,
                waker: None,
                is_open: false,
            }),
        };
        let slots = (0..executors).map(slot).collect();
        Arc::new(Self {
            slots,
            clients: ClientConnections::default(),
            unsigned: UnsignedRequests::default(),
            created: Instant::now(),
        })
    }

    /// Returns how many connections are open at all executors.
    pub(crate) fn connections(&self) -> usize {
        self.slots.iter().map(|slot| slot.connections.load(Ordering::Relaxed)).sum()
    }

    /// Returns whether more than `max` connections are open, apart from those that are being evicted.
    pub(crate) fn is_beyond(&self, max: usize) -> bool {
        let leaving = |slot: &ExecutorSlot<T>| {
            slot.closing.load(Ordering::Relaxed) + slot.evictions_pending.load(Ordering::Relaxed)
        };
        self.connections() > max.saturating_add(self.slots.iter().map(leaving).sum())
    }

    /// Returns the open connections of each client.
    pub(crate) const fn clients(&self) -> &ClientConnections {
        &self.clients
    }

    /// Returns the open requests that nobody has signed.
    pub(crate) const fn unsigned(&self) -> &UnsignedRequests {
        &self.unsigned
    }

    /// Returns the counter of connections of one executor that are evicted and still open.
    pub(crate) fn closing_of(&self, slot: usize) -> &Arc<AtomicUsize> {
        &self.slots[slot].closing
    }

    /// Publishes the rank of the connection of `slot` that is evicted next.
    pub(crate) fn publish_first_to_evict(&self, slot: usize, rank: Option<EvictionRank>) {
        self.slots[slot].first_to_evict.store(self.encode_rank(rank), Ordering::Relaxed);
    }

    /// Withdraws what `slot` has published.
    pub(crate) fn withdraw_first_to_evict(&self, slot: usize) {
        self.slots[slot].first_to_evict.store(UNKNOWN, Ordering::Relaxed);
    }

    /// Returns a number that has the order of the rank.
    fn encode_rank(&self, rank: Option<EvictionRank>) -> u64 {
        let Some(rank) = rank else { return NONE_IDLE };
        let since = rank.idle_since.saturating_duration_since(self.created).as_nanos();
        let since = u64::try_from(since).ok().filter(|since| *since < HAS_SENT_REQUEST);
        let since = since.expect("a process runs for less than 146 years");
        if rank.has_sent_request { since | HAS_SENT_REQUEST } else { since }
    }

    /// Returns the other executor whose next connection to evict comes before `own_rank`. If none is known to have one,
    /// returns one that has published nothing.
    pub(crate) fn earlier_slot(&self, own: usize, own_rank: Option<EvictionRank>) -> Option<usize> {
        let own_rank = self.encode_rank(own_rank);
        let rank = |slot: usize| self.slots[slot].first_to_evict.load(Ordering::Relaxed);
        let first = (0..self.slots.len()).filter(|&slot| slot != own).min_by_key(|&slot| rank(slot))?;
        (rank(first) < own_rank).then_some(first)
    }

    /// Asks another executor to close the idle connection that is first in the order of eviction there. Returns whether it
    /// will.
    pub(crate) fn request_eviction(&self, slot: usize) -> bool {
        let slot = &self.slots[slot];
        let mut inbox = slot.inbox.lock();
        if !inbox.is_open || slot.evictions_pending.load(Ordering::Relaxed) >= EVICTIONS_PENDING_MAX {
            return false;
        }
        slot.evictions_pending.fetch_add(1, Ordering::Relaxed);
        inbox.evictions += 1;
        let waker = inbox.waker.take();
        drop(inbox);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Ends a requested eviction: the connection was closed, or none was idle any more.
    pub(crate) fn finish_eviction(&self, slot: usize) {
        let before = self.slots[slot].evictions_pending.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "every requested eviction is counted once");
    }

    /// Returns the metrics of each executor.
    pub(crate) fn metrics(&self) -> impl Iterator<Item = &Arc<ExecutorMetrics>> {
        self.slots.iter().map(|slot| &slot.metrics)
    }

    /// Returns the metrics of one executor.
    pub(crate) fn metrics_of(&self, slot: usize) -> &Arc<ExecutorMetrics> {
        &self.slots[slot].metrics
    }

    /// Allows other executors to hand connections over to this one.
    pub(crate) fn open_slot(&self, slot: usize) {
        self.slots[slot].inbox.lock().is_open = true;
    }

    /// Ends that, and returns the connections that were handed over and not taken.
    pub(crate) fn close_slot(&self, slot: usize) -> Vec<T> {
        let mut inbox = self.slots[slot].inbox.lock();
        inbox.is_open = false;
        let connections = std::mem::take(&mut inbox.connections);
        drop(inbox);
        connections.into_iter().map(|(connection, _)| connection).collect()
    }

    /// Returns the executor that should serve a connection that `own` has accepted. Handing over wakes another core, so
    /// a lead of up to an eighth is tolerated.
    fn choose_slot(&self, own: usize) -> usize {
        let count = |slot: usize| self.slots[slot].connections.load(Ordering::Relaxed);
        let least = (0..self.slots.len()).min_by_key(|&slot| (count(slot), slot != own)).unwrap_or(own);
        if count(own) > count(least) + count(least) / 8 { least } else { own }
    }

    fn count_connection(self: &Arc<Self>, slot: usize) -> ConnectionGuard<T> {
        self.slots[slot].connections.fetch_add(1, Ordering::Relaxed);
        ConnectionGuard { group: Arc::clone(self), slot }
    }

    /// Assigns a connection that `own` has accepted. Returns it when `own` is to serve it; otherwise hands it over to
    /// another executor and wakes that.
    pub(crate) fn assign(self: &Arc<Self>, own: usize, connection: T) -> Option<(T, ConnectionGuard<T>)> {
        let chosen = self.choose_slot(own);
        if chosen != own {
            let mut inbox = self.slots[chosen].inbox.lock();
            if inbox.is_open {
                inbox.connections.push_back((connection, self.count_connection(chosen)));
                let waker = inbox.waker.take();
                drop(inbox);
                if let Some(waker) = waker {
                    waker.wake();
                }
                return None;
            }
        }
        Some((connection, self.count_connection(own)))
    }

    /// Returns what another executor has handed over to this one: evictions first, because they make room.
    pub(crate) fn poll_handed_over(&self, slot: usize, context: &Context<'_>) -> Poll<HandedOver<T>> {
        let mut inbox = self.slots[slot].inbox.lock();
        if inbox.evictions > 0 {
            inbox.evictions -= 1;
            return Poll::Ready(HandedOver::Eviction);
        }
        match inbox.connections.pop_front() {
            Some((connection, guard)) => Poll::Ready(HandedOver::Connection(connection, guard)),
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

    fn group(executors: usize) -> Arc<ListenerGroup<u32>> {
        let group = ListenerGroup::new(executors);
        (0..executors).for_each(|slot| group.open_slot(slot));
        group
    }

    #[test]
    fn connections_of_one_listener_are_spread_evenly() {
        let group = group(4);
        let mut kept = Vec::new();
        for connection in 0..32 {
            kept.extend(group.assign(0, connection));
        }
        let counts: Vec<usize> =
            group.slots.iter().map(|slot| slot.connections.load(Ordering::Relaxed)).collect();
        assert_eq!(counts, [8, 8, 8, 8]);
        assert_eq!(group.connections(), 32);
    }

    #[test]
    fn evenly_accepted_connections_are_not_handed_over() {
        let group = group(2);
        let mut kept = Vec::new();
        for connection in 0..32 {
            kept.extend(group.assign(usize::from(connection % 2 == 1), connection));
        }
        assert_eq!(kept.len(), 32);
    }

    #[test]
    fn dropped_connections_are_no_longer_counted() {
        let group = group(2);
        let mut kept: Vec<_> = (0..10).filter_map(|connection| group.assign(0, connection)).collect();
        kept.clear();
        assert_eq!(group.close_slot(1), [1, 3, 5, 7, 9]);
        assert_eq!(group.connections(), 0);
    }

    #[test]
    fn the_executor_with_the_first_connection_to_evict_is_asked_to_close_it() {
        let group = group(3);
        let ranked = |has_sent_request, seconds| {
            let idle_since = group.created + std::time::Duration::from_secs(seconds);
            Some(EvictionRank { has_sent_request, idle_since })
        };
        let after = |seconds| ranked(false, seconds);
        group.publish_first_to_evict(1, after(5));
        group.publish_first_to_evict(2, after(3));
        assert_eq!(group.earlier_slot(0, after(4)), Some(2));
        assert_eq!(group.earlier_slot(0, after(2)), None, "its own connection has been idle longest");
        assert_eq!(group.earlier_slot(0, ranked(true, 2)), Some(2), "its own connection has sent a request");
        assert_eq!(group.earlier_slot(2, after(3)), None);
        group.publish_first_to_evict(2, ranked(true, 3));
        assert_eq!(group.earlier_slot(0, after(6)), Some(1), "that of 2 has sent a request");
        group.publish_first_to_evict(1, None);
        group.publish_first_to_evict(2, None);
        assert_eq!(group.earlier_slot(0, None), None, "none is idle");
        group.withdraw_first_to_evict(1);
        assert_eq!(group.earlier_slot(0, None), Some(1), "one may be idle there");
        assert_eq!(group.earlier_slot(0, after(9)), None, "one is known to be idle here");
        assert_eq!(group.earlier_slot(0, ranked(true, 9)), None);
    }

    #[test]
    fn requested_evictions_count_until_they_have_ended_and_are_limited() {
        let group = group(2);
        let kept: Vec<_> = (0..4).filter_map(|connection| group.assign(0, connection)).collect();
        assert!(group.is_beyond(3) && group.request_eviction(1) && !group.is_beyond(3));
        let context = Context::from_waker(Waker::noop());
        assert!(matches!(group.poll_handed_over(1, &context), Poll::Ready(HandedOver::Eviction)));
        group.finish_eviction(1);
        assert!(group.is_beyond(3), "no connection was idle there");
        let requested = (0..).take_while(|_| group.request_eviction(1)).count();
        assert_eq!(requested, EVICTIONS_PENDING_MAX);
        group.close_slot(1);
        drop(kept);
    }

    #[test]
    fn nothing_is_handed_over_to_a_closed_slot() {
        let group: Arc<ListenerGroup<u32>> = ListenerGroup::new(2);
        group.open_slot(0);
        let kept: Vec<_> = (0..10).filter_map(|connection| group.assign(0, connection)).collect();
        assert_eq!(kept.len(), 10);
    }
}
