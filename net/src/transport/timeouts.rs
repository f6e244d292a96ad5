//! Timeouts of connections, without one timer per request.
//!
//! Each connection has a [`TimeoutHandle`] that says what it waits for and until when. One task per executor and port
//! checks all handles four times a second. A connection waits for its client through its handle, so it can be woken
//! when the timeout has passed or the process stops. A connection whose service is working has no timeout: disk writes
//! are never abandoned. Everything here stays on one executor.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use cairn_model::u64_of;

use crate::limits::{EVICTION_CANDIDATES_MAX, EVICTION_CANDIDATES_USED_MAX};

/// The kind of a connection's wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitKind {
    /// The first byte of a request.
    Idle,
    /// The client: the rest of a head, body bytes, or room to write.
    Client,
    /// Nothing: the service is working. There is no timeout.
    None,
}

/// The reason why a wait must end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitEnd {
    /// It need not end.
    None,
    /// Its timeout has passed, or it waits for a request and the process drains.
    Expired,
    /// The process stops, or the request makes room for another one. All later waits end at once too.
    Aborted,
}

/// The order in which idle connections make room for others, the first one first: connections that have sent no request
/// yet, and of two alike the one that has been idle longer.
///
/// A flood of connections that send nothing so takes the places of its own, not those of clients.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct EvictionRank {
    pub(crate) has_sent_request: bool,
    pub(crate) idle_since: Instant,
}

/// The timeout of one connection.
#[derive(Debug)]
pub(crate) struct TimeoutHandle {
    kind: Cell<WaitKind>,
    has_sent_request: Cell<bool>,
    /// The start of the wait for a request.
    idle_since: Cell<Instant>,
    deadline: Cell<Instant>,
    end: Cell<WaitEnd>,
    /// The wait for a request was ended to make room for another connection. Counted in `closing`.
    is_evicted: Cell<bool>,
    closing: Arc<AtomicUsize>,
    waker: RefCell<Option<Waker>>,
    /// Its position in the registry.
    index: Cell<usize>,
}

impl TimeoutHandle {
    /// Makes a handle. `closing` counts the connections of this executor and port that are evicted and still open.
    pub(crate) const fn new(now: Instant, closing: Arc<AtomicUsize>) -> Self {
        Self {
            kind: Cell::new(WaitKind::None),
            has_sent_request: Cell::new(false),
            idle_since: Cell::new(now),
            deadline: Cell::new(now),
            end: Cell::new(WaitEnd::None),
            is_evicted: Cell::new(false),
            closing,
            waker: RefCell::new(None),
            index: Cell::new(0),
        }
    }

    /// Begins a wait that ends at `deadline`.
    pub(crate) fn arm(&self, kind: WaitKind, deadline: Instant) {
        self.kind.set(kind);
        self.deadline.set(deadline);
        self.clear_expiry();
    }

    /// Begins a wait for a request at `now` that ends at `deadline`.
    pub(crate) fn arm_idle(&self, now: Instant, deadline: Instant) {
        self.idle_since.set(now);
        self.arm(WaitKind::Idle, deadline);
    }

    /// Ends the wait for a request: its head has been read.
    pub(crate) fn begin_request(&self) {
        self.has_sent_request.set(true);
        self.disarm();
    }

    /// Ends the wait: the service works from now on.
    pub(crate) fn disarm(&self) {
        self.kind.set(WaitKind::None);
        self.clear_expiry();
    }

    /// Clears an expiry, which applies to one wait only. A wait can expire in the moment in which its bytes arrive. The
    /// next wait checks `end` before it arms the handle, and an expiry left over would end it at once. An abort is
    /// permanent.
    fn clear_expiry(&self) {
        if self.end.get() == WaitEnd::Expired {
            self.end.set(WaitEnd::None);
        }
        self.cancel_eviction();
    }

    /// Returns whether all waits of the connection end at once.
    pub(crate) fn is_aborted(&self) -> bool {
        self.end.get() == WaitEnd::Aborted
    }

    /// Returns whether the wait for a request was ended to make room for another connection.
    pub(crate) fn is_evicted(&self) -> bool {
        self.is_evicted.get()
    }

    /// The connection has closed, or its request arrived in the moment in which it was evicted.
    fn cancel_eviction(&self) {
        if self.is_evicted.replace(false) {
            let before = self.closing.fetch_sub(1, Ordering::Relaxed);
            assert!(before > 0, "every eviction is counted once");
        }
    }

    /// Returns the rank of the connection, if it is idle.
    fn rank(&self) -> Option<EvictionRank> {
        let is_idle = self.kind.get() == WaitKind::Idle && self.end.get() == WaitEnd::None;
        is_idle.then(|| EvictionRank {
            has_sent_request: self.has_sent_request.get(),
            idle_since: self.idle_since.get(),
        })
    }

    /// Returns ready when the wait must end. Otherwise the task is woken as soon as it must.
    pub(crate) fn poll_end(&self, context: &Context<'_>) -> Poll<WaitEnd> {
        match self.end.get() {
            WaitEnd::None => {
                let mut waker = self.waker.borrow_mut();
                if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                    *waker = Some(context.waker().clone());
                }
                Poll::Pending
            }
            end => Poll::Ready(end),
        }
    }

    /// Ends the current wait and, for an abort, all later ones.
    pub(crate) fn end_wait(&self, end: WaitEnd) {
        if self.end.get() != WaitEnd::Aborted {
            self.end.set(end);
        }
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The timeouts of all connections of one port on one executor.
#[derive(Debug, Default)]
pub(crate) struct TimeoutRegistry {
    handles: RefCell<Vec<Rc<TimeoutHandle>>>,
    /// The idle connections that were first in the order of eviction at the last scan. Either none of them has sent a
    /// request, or all have. In both cases the others of that kind have been idle for a shorter time, also those that
    /// became idle since. If all have, newer connections that have sent nothing are found by the next scan.
    candidates: RefCell<VecDeque<(EvictionRank, Rc<TimeoutHandle>)>>,
    /// The last scan found no idle connection, and a flood must not cause one for each connection.
    skips_scan: Cell<bool>,
}

impl TimeoutRegistry {
    pub(crate) fn add(&self, handle: &Rc<TimeoutHandle>) {
        let mut handles = self.handles.borrow_mut();
        handle.index.set(handles.len());
        handles.push(Rc::clone(handle));
    }

    /// Removes a handle. Does nothing when it is not registered.
    pub(crate) fn remove(&self, handle: &TimeoutHandle) {
        handle.cancel_eviction();
        let mut handles = self.handles.borrow_mut();
        let index = handle.index.get();
        if index < handles.len() && std::ptr::eq(Rc::as_ptr(&handles[index]), handle) {
            handles.swap_remove(index);
            if let Some(moved) = handles.get(index) {
                moved.index.set(index);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.handles.borrow().len()
    }

    /// Moves the deadlines of all waits.
    pub(crate) fn postpone(&self, by: Duration) {
        for handle in self.handles.borrow().iter() {
            handle.deadline.set(handle.deadline.get() + by);
        }
    }

    /// Ends the waits whose deadline has passed.
    pub(crate) fn expire(&self, now: Instant) {
        self.skips_scan.set(false);
        self.end_where(WaitEnd::Expired, |handle| {
            handle.kind.get() != WaitKind::None && handle.deadline.get() <= now
        });
    }

    /// Returns the rank of the connection that is evicted next; `None` when none is idle.
    pub(crate) fn first_to_evict(&self) -> Option<EvictionRank> {
        let mut candidates = self.candidates.borrow_mut();
        loop {
            match candidates.front() {
                Some((rank, handle)) if handle.rank() == Some(*rank) => return Some(*rank),
                Some(_) => drop(candidates.pop_front()),
                None if self.skips_scan.get() => return None,
                None => {
                    *candidates = self.scan_for_idle();
                    // What a scan has found is still idle when it is looked at, so this ends the loop.
                    self.skips_scan.set(candidates.is_empty());
                }
            }
        }
    }

    /// Evicts the next idle connection. Returns whether there was one. If its request has just arrived, it is answered instead,
    /// see [`TimeoutRegistry::close_idle`].
    pub(crate) fn evict_first(&self) -> bool {
        if self.first_to_evict().is_none() {
            return false;
        }
        let (_, handle) = self.candidates.borrow_mut().pop_front().expect("the first one is a candidate");
        handle.is_evicted.set(true);
        handle.closing.fetch_add(1, Ordering::Relaxed);
        handle.end_wait(WaitEnd::Expired);
        true
    }

    fn scan_for_idle(&self) -> VecDeque<(EvictionRank, Rc<TimeoutHandle>)> {
        let handles = self.handles.borrow();
        let idle = handles.iter().filter_map(|handle| Some((handle.rank()?, Rc::clone(handle))));
        let mut found: Vec<_> = idle.collect();
        let are_used = found.iter().all(|(rank, _)| rank.has_sent_request);
        found.retain(|(rank, _)| rank.has_sent_request == are_used);
        let max = if are_used { EVICTION_CANDIDATES_USED_MAX } else { EVICTION_CANDIDATES_MAX };
        if found.len() > max {
            found.select_nth_unstable_by_key(max, |(rank, _)| *rank);
            found.truncate(max);
        }
        found.sort_unstable_by_key(|(rank, _)| *rank);
        found.into()
    }

    /// Ends the waits for a request, and with each its connection. A connection whose request has just arrived is no
    /// longer idle, even if the request has not been read yet; it is answered.
    pub(crate) fn close_idle(&self) {
        self.end_where(WaitEnd::Expired, |handle| handle.kind.get() == WaitKind::Idle);
    }

    /// Aborts all connections. One whose service is working ends when it next waits for the client.
    pub(crate) fn abort_all(&self) {
        self.end_where(WaitEnd::Aborted, |_| true);
    }

    /// Ends the waits that `selects` matches. Waking runs no task immediately, so the registry may stay borrowed.
    fn end_where(&self, end: WaitEnd, selects: impl Fn(&TimeoutHandle) -> bool) {
        for handle in self.handles.borrow().iter().filter(|handle| selects(handle)) {
            handle.end_wait(end);
        }
    }
}

/// The timeout of one body, sent or received.
///
/// No single wait may exceed the stall timeout. Over all waits, the client must keep a minimum rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransferTimeout {
    stall: Duration,
    /// Bytes per second.
    rate_min: u64,
    bytes: u64,
    waited: Duration,
}

impl TransferTimeout {
    pub(crate) const fn new(stall: Duration, rate_min: u64) -> Self {
        Self { stall, rate_min, bytes: 0, waited: Duration::ZERO }
    }

    /// Returns how long the next wait may last.
    pub(crate) fn next_wait_max(&self) -> Duration {
        let earned = match self.bytes.checked_div(self.rate_min) {
            Some(seconds) => Duration::from_secs(seconds),
            None => return self.stall,
        };
        self.stall.saturating_add(earned).saturating_sub(self.waited).min(self.stall)
    }

    /// Records a wait and the bytes that were transferred at its end.
    pub(crate) fn record(&mut self, waited: Duration, bytes: usize) {
        self.waited = self.waited.saturating_add(waited);
        self.bytes = self.bytes.saturating_add(u64_of(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(1);

    fn new_handle(now: Instant) -> Rc<TimeoutHandle> {
        Rc::new(TimeoutHandle::new(now, Arc::default()))
    }

    #[test]
    fn connections_without_a_request_are_evicted_before_those_that_are_idle_longer() {
        let (registry, now, far) = (TimeoutRegistry::default(), Instant::now(), Duration::from_secs(3600));
        let idle = |has_sent_request: bool, since: u32| {
            let handle = new_handle(now);
            registry.add(&handle);
            if has_sent_request {
                handle.begin_request();
            }
            handle.arm_idle(now + INTERVAL * since, now + far);
            handle
        };
        let used: Vec<_> = (0..30).map(|number| idle(true, number)).collect();
        assert!(registry.evict_first(), "only used ones are idle");
        // They come after a scan that found used ones, and some after one that found them.
        let unused: Vec<_> = (100..300).map(|number| idle(false, number)).collect();
        while registry.first_to_evict().is_none_or(|rank| rank.has_sent_request) {
            assert!(registry.evict_first());
        }
        let late = idle(false, 400);
        let is_ended = |handle: &Rc<TimeoutHandle>| handle.end.get() == WaitEnd::Expired;
        for _ in 0..=unused.len() {
            assert!(!is_ended(&late) && registry.evict_first());
        }
        assert!(is_ended(&late) && unused.iter().all(is_ended));
        let evicted = used.iter().take_while(|handle| is_ended(handle)).count();
        assert_eq!(evicted, EVICTION_CANDIDATES_USED_MAX, "as many as one scan of used ones finds");
        assert!(registry.evict_first() && is_ended(&used[evicted]));
    }

    #[test]
    fn the_connection_idle_longest_is_evicted_first_and_a_busy_one_never() {
        let (registry, now, closing) = (TimeoutRegistry::default(), Instant::now(), Arc::default());
        let count = 2 * EVICTION_CANDIDATES_MAX + 10;
        let handles: Vec<Rc<TimeoutHandle>> =
            (0..count).map(|_| Rc::new(TimeoutHandle::new(now, Arc::clone(&closing)))).collect();
        let far = now + Duration::from_secs(3600);
        for (age, handle) in handles.iter().rev().enumerate() {
            registry.add(handle);
            handle.arm_idle(now + INTERVAL * u32::try_from(age).unwrap(), far);
        }
        let is_ended = |number: usize| handles[count - 1 - number].end.get() == WaitEnd::Expired;
        handles[count - 1].arm(WaitKind::Client, far);
        handles[count - 2].disarm();
        assert!(registry.evict_first());
        assert!(!is_ended(0) && !is_ended(1) && is_ended(2) && !is_ended(3));
        // The next candidate becomes busy, and idle again: it has then been idle for the shortest time.
        handles[count - 4].arm_idle(far, far);
        for number in 4..count {
            assert!(registry.evict_first());
            assert!(is_ended(number) && !is_ended(3), "{number}");
        }
        assert!(registry.evict_first() && is_ended(3) && !registry.evict_first());
        assert_eq!(closing.load(Ordering::Relaxed), count - 2);
        handles[0].disarm();
        handles.iter().for_each(|handle| registry.remove(handle));
        assert_eq!(closing.load(Ordering::Relaxed), 0, "a request arrived on one, and the others closed");
    }

    #[test]
    fn a_postponed_wait_ends_later() {
        let (registry, now, pause) = (TimeoutRegistry::default(), Instant::now(), Duration::from_secs(60));
        let handle = new_handle(now);
        registry.add(&handle);
        handle.arm(WaitKind::Client, now + INTERVAL);
        registry.postpone(pause);
        registry.expire(now + pause);
        assert_eq!(handle.end.get(), WaitEnd::None);
        registry.expire(now + pause + INTERVAL);
        assert_eq!(handle.end.get(), WaitEnd::Expired);
        registry.remove(&handle);
    }

    #[test]
    fn a_byte_at_a_time_uses_up_the_timeout() {
        let mut timeout = TransferTimeout::new(Duration::from_secs(30), 1024);
        let mut total = Duration::ZERO;
        while timeout.next_wait_max() > Duration::ZERO {
            let wait = timeout.next_wait_max().min(Duration::from_secs(5));
            timeout.record(wait, 1);
            total += wait;
        }
        assert!(total <= Duration::from_secs(31), "{total:?}");
    }

    #[test]
    fn a_steady_client_keeps_the_whole_stall_timeout() {
        let mut timeout = TransferTimeout::new(Duration::from_secs(30), 1024);
        for _ in 0..1000 {
            timeout.record(Duration::from_secs(1), 4096);
        }
        assert_eq!(timeout.next_wait_max(), Duration::from_secs(30));
    }

    #[test]
    fn without_a_minimum_rate_only_stalls_count() {
        let mut timeout = TransferTimeout::new(Duration::from_secs(30), 0);
        timeout.record(Duration::from_secs(3600), 1);
        assert_eq!(timeout.next_wait_max(), Duration::from_secs(30));
    }

    #[test]
    fn handles_can_be_removed_in_any_order() {
        let registry = TimeoutRegistry::default();
        let now = Instant::now();
        let handles: Vec<Rc<TimeoutHandle>> = (0..5).map(|_| new_handle(now)).collect();
        handles.iter().for_each(|handle| registry.add(handle));
        for index in [1, 0, 4, 2, 3] {
            registry.remove(&handles[index]);
            registry.remove(&handles[index]);
        }
        assert_eq!(registry.len(), 0);
    }

    #[test]
    fn only_armed_handles_expire() {
        let registry = TimeoutRegistry::default();
        let now = Instant::now();
        let (serving, waiting) = (new_handle(now), new_handle(now));
        registry.add(&serving);
        registry.add(&waiting);
        waiting.arm(WaitKind::Client, now);
        registry.expire(now + INTERVAL);
        assert_eq!(serving.end.get(), WaitEnd::None);
        assert_eq!(waiting.end.get(), WaitEnd::Expired);
        waiting.arm(WaitKind::Client, now + INTERVAL);
        assert_eq!(waiting.end.get(), WaitEnd::None);
        registry.abort_all();
        waiting.arm(WaitKind::Client, now);
        assert_eq!(waiting.end.get(), WaitEnd::Aborted, "an abort is permanent");
    }

    /// Connections that waited for a request were aborted when a drain began, and an abort is permanent. A connection
    /// whose request arrived in the same moment was served, but its first wait for the client failed at once, although
    /// the whole grace period was left: a PUT was answered with 400, a large GET was cut. An idle timeout in the same
    /// moment had the same effect, because `disarm` did not clear it.
    #[test]
    fn an_expired_wait_does_not_end_the_next_one() {
        let registry = TimeoutRegistry::default();
        let now = Instant::now();
        let handle = new_handle(now);
        registry.add(&handle);
        let end_wait: [&dyn Fn(); 2] = [&|| registry.close_idle(), &|| registry.expire(now + INTERVAL)];
        for end_wait in end_wait {
            handle.arm(WaitKind::Idle, now);
            end_wait();
            assert_eq!(handle.end.get(), WaitEnd::Expired, "a connection that still waits is woken");
            handle.disarm();
            let context = Context::from_waker(Waker::noop());
            assert!(handle.poll_end(&context).is_pending(), "the body may be waited for");
        }
        registry.abort_all();
        handle.disarm();
        assert_eq!(handle.end.get(), WaitEnd::Aborted, "an abort is permanent");
    }
}
