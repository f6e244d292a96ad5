//! Memory budget for the upload buffers of one executor.
//!
//! A buffer is allocated before its bytes arrive, so a slow or malicious client could hold memory forever. Two rules prevent
//! that. While many buffers are filling, new ones are small. When an upload has to wait for memory, the buffers that have
//! been filling for longer than [`FILL_PATIENCE`] are recalled, oldest first. An upload whose buffer is recalled ends with
//! an error. As long as no other upload needs memory, slow uploads are left alone.
//!
//! Permits are issued in request order, so that small requests cannot starve a large one. Request bodies that are read into
//! memory have a budget of their own, which works in the same way.

use crate::limits::{FILL_PATIENCE, FIRST_WRITE_BYTES, RECALL_INTERVAL, WRITE_BYTES};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// The memory budget for the uploads or the small bodies of one executor.
pub(crate) struct MemoryBudget(Rc<State>);

struct State {
    /// The whole budget.
    bytes: u64,
    free: Cell<u64>,
    /// Bytes of permits whose buffers are not full yet.
    filling_bytes: Cell<u64>,
    /// Numbers permits and waiting uploads, in order of arrival.
    next: Cell<u64>,
    waiting: RefCell<BTreeMap<u64, Waiting>>,
    /// Buffers that are not full yet, oldest first.
    filling: RefCell<BTreeMap<u64, Filling>>,
}

struct Waiting {
    bytes: u64,
    waker: Option<Waker>,
}

struct Filling {
    since: Instant,
    bytes: u64,
    recall: Recall,
}

/// A request to an upload to give its memory back: other uploads wait for memory, and this one has been too slow.
///
/// Each upload has one. The upload must then end with an error.
#[derive(Clone, Default)]
pub struct Recall(Rc<RecallState>);

#[derive(Default)]
struct RecallState {
    asked: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Recall {
    /// Waits for the request. For most uploads it never comes.
    pub async fn asked(&self) {
        poll_fn(|context| {
            if self.0.asked.get() {
                return Poll::Ready(());
            }
            *self.0.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn ask(&self) {
        self.0.asked.set(true);
        if let Some(waker) = self.0.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// Permission to use memory; dropping it returns the memory.
pub struct MemoryPermit {
    budget: Rc<State>,
    number: u64,
    bytes: u64,
}

impl MemoryPermit {
    /// Marks the buffer as full. It is not recalled any more: its memory returns when it has been written.
    pub fn filled(&self) {
        if let Some(filling) = self.budget.filling.borrow_mut().remove(&self.number) {
            filling.recall.0.asked.set(false);
            self.budget.filling_bytes.set(self.budget.filling_bytes.get() - self.bytes);
        }
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        self.filled();
        let free = self.budget.free.get() + self.bytes;
        assert!(free <= self.budget.bytes, "no more memory returns than was taken");
        self.budget.free.set(free);
        self.budget.wake_first();
    }
}

impl MemoryBudget {
    /// Creates a budget of `bytes` bytes, or of the largest buffer if that is more.
    pub(crate) fn new(bytes: u64) -> Self {
        let bytes = bytes.max(WRITE_BYTES as u64);
        Self(Rc::new(State {
            bytes,
            free: Cell::new(bytes),
            filling_bytes: Cell::new(0),
            next: Cell::new(0),
            waiting: RefCell::default(),
            filling: RefCell::default(),
        }))
    }

    /// Size in bytes of an upload's next buffer. The first buffer is small because it may never fill. All buffers are small
    /// while half of the memory is in buffers that are filling.
    pub(crate) fn buffer_bytes(&self, taken: u64) -> usize {
        let many_are_filling = self.0.filling_bytes.get() >= self.0.bytes / 2;
        if taken == 0 || many_are_filling { FIRST_WRITE_BYTES } else { WRITE_BYTES }
    }

    /// The whole budget, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Waits until `bytes` bytes are available, and recalls slow buffers in the meantime.
    pub(crate) async fn acquire(&self, bytes: usize, recall: &Recall) -> MemoryPermit {
        let place = QueuePlace::join(&self.0, bytes as u64);
        let mut tick = pin!(None);
        poll_fn(|context| {
            loop {
                let now = Instant::now();
                if let Some(permit) = place.try_acquire(recall, now) {
                    return Poll::Ready(permit);
                }
                place.set_waker(context);
                // The first in the queue recalls memory for all that wait.
                if !place.is_first() {
                    return Poll::Pending;
                }
                self.0.recall_slow(now);
                if tick.is_none() {
                    tick.set(Some(glommio::timer::sleep(RECALL_INTERVAL)));
                }
                match tick.as_mut().as_pin_mut().map(|sleep| sleep.poll(context)) {
                    Some(Poll::Pending) => return Poll::Pending,
                    _ => tick.set(None),
                }
            }
        })
        .await
    }
}

impl State {
    fn wake_first(&self) {
        let first =
            self.waiting.borrow_mut().first_entry().and_then(|mut first| first.get_mut().waker.take());
        if let Some(waker) = first {
            waker.wake();
        }
    }

    /// Recalls the oldest slow buffers: as much memory as the waiting uploads need, including earlier recalls.
    fn recall_slow(&self, now: Instant) {
        let wanted: u64 = self.waiting.borrow().values().map(|waiting| waiting.bytes).sum();
        let mut expected = self.free.get();
        for filling in self.filling.borrow().values() {
            if expected >= wanted || now.saturating_duration_since(filling.since) < FILL_PATIENCE {
                return;
            }
            filling.recall.ask();
            expected += filling.bytes;
        }
    }
}

/// A place in the queue for memory; dropping it leaves the queue.
struct QueuePlace<'b> {
    budget: &'b Rc<State>,
    number: u64,
    bytes: u64,
}

impl<'b> QueuePlace<'b> {
    fn join(budget: &'b Rc<State>, bytes: u64) -> Self {
        let number = budget.next.get();
        budget.next.set(number + 1);
        budget.waiting.borrow_mut().insert(number, Waiting { bytes, waker: None });
        Self { budget, number, bytes }
    }

    fn is_first(&self) -> bool {
        self.budget.waiting.borrow().first_key_value().is_some_and(|(first, _)| *first == self.number)
    }

    fn try_acquire(&self, recall: &Recall, now: Instant) -> Option<MemoryPermit> {
        let Self { budget, number, bytes } = *self;
        if !self.is_first() || budget.free.get() < bytes {
            return None;
        }
        budget.free.set(budget.free.get() - bytes);
        budget.filling_bytes.set(budget.filling_bytes.get() + bytes);
        let filling = Filling { since: now, bytes, recall: recall.clone() };
        budget.filling.borrow_mut().insert(number, filling);
        Some(MemoryPermit { budget: Rc::clone(budget), number, bytes })
    }

    fn set_waker(&self, context: &Context<'_>) {
        if let Some(own) = self.budget.waiting.borrow_mut().get_mut(&self.number) {
            own.waker = Some(context.waker().clone());
        }
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let was_first = self.is_first();
        self.budget.waiting.borrow_mut().remove(&self.number);
        if was_first {
            self.budget.wake_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MemoryBudget, MemoryPermit, QueuePlace, Recall};
    use crate::limits::{BufferLimits, FILL_PATIENCE, FIRST_WRITE_BYTES, WRITE_BYTES};
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::{Duration, Instant};

    fn bytes() -> u64 {
        BufferLimits::default().upload_bytes
    }

    fn acquire(budget: &MemoryBudget, bytes: usize, recall: &Recall, now: Instant) -> Option<MemoryPermit> {
        QueuePlace::join(&budget.0, bytes as u64).try_acquire(recall, now)
    }

    fn is_asked(recall: &Recall) -> bool {
        pin!(recall.asked()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Uses up the budget with first buffers that never fill.
    fn slow_senders(budget: &MemoryBudget, since: Instant) -> Vec<(Recall, MemoryPermit)> {
        std::iter::from_fn(|| {
            let recall = Recall::default();
            let permit = acquire(budget, FIRST_WRITE_BYTES, &recall, since)?;
            Some((recall, permit))
        })
        .collect()
    }

    /// Regression: a buffer belonged to its upload until it was full. About a hundred clients that sent one byte per second
    /// held all the memory, and every other upload of the executor waited for them.
    #[test]
    fn recall_takes_the_oldest_buffers_and_no_more_than_needed() {
        let (budget, begun) = (MemoryBudget::new(bytes()), Instant::now());
        let mut slow = slow_senders(&budget, begun);
        assert_eq!(slow.len() * FIRST_WRITE_BYTES, usize::try_from(bytes()).unwrap());
        let (waiting, other) =
            (QueuePlace::join(&budget.0, WRITE_BYTES as u64), QueuePlace::join(&budget.0, 1));
        assert!(waiting.try_acquire(&Recall::default(), begun).is_none());

        budget.0.recall_slow(begun + FILL_PATIENCE - Duration::from_millis(1));
        assert!(!slow.iter().any(|(recall, _)| is_asked(recall)), "no buffer has been slow for long enough");
        for _ in 0..2 {
            budget.0.recall_slow(begun + FILL_PATIENCE);
            let asked: Vec<bool> = slow.iter().map(|(recall, _)| is_asked(recall)).collect();
            assert!(
                asked[..5].iter().all(|asked| *asked),
                "four buffers for one waiting upload, one for the other"
            );
            assert!(!asked[5..].contains(&true));
        }
        drop(slow.drain(..4));
        assert!(
            other.try_acquire(&Recall::default(), begun).is_none(),
            "permits are issued in order of arrival"
        );
        let permit = waiting.try_acquire(&Recall::default(), begun).expect("memory is free now");
        drop((waiting, permit));
        assert!(other.try_acquire(&Recall::default(), begun).is_some());
    }

    #[test]
    fn a_full_buffer_is_no_longer_recalled() {
        let (budget, begun) = (MemoryBudget::new(bytes()), Instant::now());
        let slow = slow_senders(&budget, begun);
        let _waiting = QueuePlace::join(&budget.0, 1);
        budget.0.recall_slow(begun + FILL_PATIENCE);
        assert!(is_asked(&slow[0].0));
        slow[0].1.filled();
        assert!(!is_asked(&slow[0].0));
    }

    #[test]
    fn new_buffers_are_small_while_many_are_filling() {
        let (budget, now) = (MemoryBudget::new(bytes()), Instant::now());
        assert_eq!((budget.buffer_bytes(0), budget.buffer_bytes(1)), (FIRST_WRITE_BYTES, WRITE_BYTES));
        let half = usize::try_from(bytes() / 2).unwrap();
        let permit = acquire(&budget, half, &Recall::default(), now).expect("memory is free");
        assert_eq!(budget.buffer_bytes(1), FIRST_WRITE_BYTES);
        permit.filled();
        assert_eq!(budget.buffer_bytes(1), WRITE_BYTES, "a full buffer returns its memory by itself");
        drop(permit);
        assert_eq!(slow_senders(&budget, now).len() * FIRST_WRITE_BYTES, 2 * half, "all memory was returned");
    }
}
