//! The memory that the uploads of one executor may hold, and who gives way when it is short.
//!
//! A buffer is granted before its bytes have come, so a sender that is slow, or means harm, holds memory for as long as
//! it likes. Two rules keep it from those who send: while many buffers are filling new ones are small, and when an
//! upload must wait for memory, the buffers that have been filling for longer than [`FILL_PATIENCE`] are recalled, the
//! oldest first. The upload of a recalled buffer ends with an error; one whose memory nobody wants never does.
//!
//! Grants are given in the order in which they were asked for, so that a large one is not starved by small ones.

use crate::limits::{FILL_PATIENCE, FIRST_WRITE_BYTES, RECALL_INTERVAL, WRITE_BYTES};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// A bound on how much memory uploads take on one executor.
pub(crate) struct UploadBudget(Rc<State>);

struct State {
    /// All there is.
    bytes: u64,
    free: Cell<u64>,
    /// Bytes granted for buffers that are not full yet.
    filling_bytes: Cell<u64>,
    /// Numbers grants and those who wait for one, in the order in which they came.
    next: Cell<u64>,
    waiting: RefCell<BTreeMap<u64, Waiting>>,
    /// Buffers that are not full yet, the oldest first.
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

/// Tells an upload that the memory of its buffer is wanted by others and that it has been too slow. One for each upload.
#[derive(Clone, Default)]
pub struct Recall(Rc<RecallState>);

#[derive(Default)]
struct RecallState {
    asked: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Recall {
    /// Waits until the upload has to end; for most uploads, for ever.
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

/// Memory that was granted; given back when dropped.
pub(crate) struct Grant {
    budget: Rc<State>,
    number: u64,
    bytes: u64,
}

impl Grant {
    /// The buffer is full: its memory comes back when it has been written, and is no longer asked for.
    pub(crate) fn filled(&self) {
        if let Some(filling) = self.budget.filling.borrow_mut().remove(&self.number) {
            filling.recall.0.asked.set(false);
            self.budget.filling_bytes.set(self.budget.filling_bytes.get() - self.bytes);
        }
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.filled();
        self.budget.free.set(self.budget.free.get() + self.bytes);
        self.budget.wake_first();
    }
}

impl UploadBudget {
    /// A budget of `bytes` bytes, at least those of the largest buffer.
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

    /// Bytes that the next buffer of an upload should have: few for the first, which may never fill, and for all while
    /// half of the memory is in buffers that are still filling.
    pub(crate) fn buffer_bytes(&self, taken: u64) -> usize {
        let many_are_filling = self.0.filling_bytes.get() >= self.0.bytes / 2;
        if taken == 0 || many_are_filling { FIRST_WRITE_BYTES } else { WRITE_BYTES }
    }

    /// Waits until `bytes` bytes may be used, and recalls slow buffers meanwhile.
    pub(crate) async fn grant(&self, bytes: usize, recall: &Recall) -> Grant {
        let place = Place::take(&self.0, bytes as u64);
        let mut tick = pin!(None);
        poll_fn(|context| {
            loop {
                let now = Instant::now();
                if let Some(grant) = place.try_grant(recall, now) {
                    return Poll::Ready(grant);
                }
                place.note_waker(context);
                // Whoever is first sees to it that memory comes back, for all who wait.
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

    /// Asks for the memory of those who have been slow the longest: as much as is missing for all who wait and no more,
    /// what was asked for before counted in.
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

/// A place in the queue for memory; left when dropped.
struct Place<'b> {
    budget: &'b Rc<State>,
    number: u64,
    bytes: u64,
}

impl<'b> Place<'b> {
    fn take(budget: &'b Rc<State>, bytes: u64) -> Self {
        let number = budget.next.get();
        budget.next.set(number + 1);
        budget.waiting.borrow_mut().insert(number, Waiting { bytes, waker: None });
        Self { budget, number, bytes }
    }

    fn is_first(&self) -> bool {
        self.budget.waiting.borrow().first_key_value().is_some_and(|(first, _)| *first == self.number)
    }

    fn try_grant(&self, recall: &Recall, now: Instant) -> Option<Grant> {
        let Self { budget, number, bytes } = *self;
        if !self.is_first() || budget.free.get() < bytes {
            return None;
        }
        budget.free.set(budget.free.get() - bytes);
        budget.filling_bytes.set(budget.filling_bytes.get() + bytes);
        let filling = Filling { since: now, bytes, recall: recall.clone() };
        budget.filling.borrow_mut().insert(number, filling);
        Some(Grant { budget: Rc::clone(budget), number, bytes })
    }

    fn note_waker(&self, context: &Context<'_>) {
        if let Some(own) = self.budget.waiting.borrow_mut().get_mut(&self.number) {
            own.waker = Some(context.waker().clone());
        }
    }
}

impl Drop for Place<'_> {
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
    use super::{Grant, Place, Recall, UploadBudget};
    use crate::limits::{BufferLimits, FILL_PATIENCE, FIRST_WRITE_BYTES, WRITE_BYTES};
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::{Duration, Instant};

    fn bytes() -> u64 {
        BufferLimits::default().upload_bytes
    }

    fn grant(budget: &UploadBudget, bytes: usize, recall: &Recall, now: Instant) -> Option<Grant> {
        Place::take(&budget.0, bytes as u64).try_grant(recall, now)
    }

    fn is_asked(recall: &Recall) -> bool {
        pin!(recall.asked()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// All of the budget, in first buffers that never fill.
    fn slow_senders(budget: &UploadBudget, since: Instant) -> Vec<(Recall, Grant)> {
        std::iter::from_fn(|| {
            let recall = Recall::default();
            let granted = grant(budget, FIRST_WRITE_BYTES, &recall, since)?;
            Some((recall, granted))
        })
        .collect()
    }

    /// Buffers were granted before their bytes came and belonged to the upload until they were full: some hundred
    /// clients that sent a few bytes and then one every second held all the memory, and every other upload of the
    /// executor waited for them, for hours if they had patience.
    #[test]
    fn slow_senders_give_way_to_who_waits_oldest_first_and_only_as_many_as_needed() {
        let (budget, begun) = (UploadBudget::new(bytes()), Instant::now());
        let mut slow = slow_senders(&budget, begun);
        assert_eq!(slow.len() * FIRST_WRITE_BYTES, usize::try_from(bytes()).unwrap());
        let (waiting, other) = (Place::take(&budget.0, WRITE_BYTES as u64), Place::take(&budget.0, 1));
        assert!(waiting.try_grant(&Recall::default(), begun).is_none());

        budget.0.recall_slow(begun + FILL_PATIENCE - Duration::from_millis(1));
        assert!(!slow.iter().any(|(recall, _)| is_asked(recall)), "nobody has been slow for long yet");
        for _ in 0..2 {
            budget.0.recall_slow(begun + FILL_PATIENCE);
            let asked: Vec<bool> = slow.iter().map(|(recall, _)| is_asked(recall)).collect();
            assert!(
                asked[..5].iter().all(|asked| *asked),
                "four buffers for one who waits, one for the other"
            );
            assert!(!asked[5..].contains(&true));
        }
        drop(slow.drain(..4));
        assert!(other.try_grant(&Recall::default(), begun).is_none(), "in the order in which they came");
        let granted = waiting.try_grant(&Recall::default(), begun).expect("there is room now");
        drop((waiting, granted));
        assert!(other.try_grant(&Recall::default(), begun).is_some());
    }

    #[test]
    fn a_buffer_that_fills_after_all_is_not_asked_for_any_more() {
        let (budget, begun) = (UploadBudget::new(bytes()), Instant::now());
        let slow = slow_senders(&budget, begun);
        let _waiting = Place::take(&budget.0, 1);
        budget.0.recall_slow(begun + FILL_PATIENCE);
        assert!(is_asked(&slow[0].0));
        slow[0].1.filled();
        assert!(!is_asked(&slow[0].0));
    }

    #[test]
    fn many_buffers_that_fill_make_the_next_ones_small() {
        let (budget, now) = (UploadBudget::new(bytes()), Instant::now());
        assert_eq!((budget.buffer_bytes(0), budget.buffer_bytes(1)), (FIRST_WRITE_BYTES, WRITE_BYTES));
        let half = usize::try_from(bytes() / 2).unwrap();
        let granted = grant(&budget, half, &Recall::default(), now).expect("there is room");
        assert_eq!(budget.buffer_bytes(1), FIRST_WRITE_BYTES);
        granted.filled();
        assert_eq!(budget.buffer_bytes(1), WRITE_BYTES, "what is being written comes back by itself");
        drop(granted);
        assert_eq!(
            slow_senders(&budget, now).len() * FIRST_WRITE_BYTES,
            2 * half,
            "all of it was given back"
        );
    }
}
