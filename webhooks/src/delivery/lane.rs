//! The lane of one webhook: its deliveries, and how many are sent.
//!
//! **Hold-back.** After [`TARGET_FAILURES_MAX`] attempts in a row that the target did not answer, or answered with 429 or 5xx,
//! first attempts are held back: they stay in the queue and use up none of their attempts. Deliveries that have begun keep
//! their schedule, and show whether the target is back. If no attempt ends within an interval, one first attempt is made as a
//! probe. The interval doubles with each failed probe, from 5 seconds to 5 minutes.
//!
//! **Ramp.** First attempts at a time: [`CONCURRENCY_START`] at the beginning, twice as many after each success, half as many
//! after each attempt that shows the target unavailable.

use super::event_bytes::EventBytes;
use crate::id::DeliveryId;
use crate::limits::{
    CONCURRENCY_START, LANE_DELIVERIES_LOW, PROBE_INTERVAL_MAX, PROBE_INTERVAL_MIN, TARGET_FAILURES_MAX,
};
use crate::store::Waiting;
use cairn_model::Timestamp;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// A delivery in memory. The event is there if it was read just now.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) waiting: Waiting,
    pub(super) event: Option<Arc<EventBytes>>,
}

/// The state of a target, as its answer to one attempt shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TargetHealth {
    /// It accepted the delivery.
    Accepted,
    /// It answered, but refused this delivery.
    Refused,
    /// It did not answer, or with 429 or 5xx.
    Unavailable,
}

/// First attempts are held back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Hold {
    interval: Duration,
    probe_at: Timestamp,
    /// The first attempt that is being made as a probe.
    probe: Option<DeliveryId>,
}

/// Deliveries of one kind that are on disk and not in memory.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct OnDisk {
    /// Whether there may be some that are due.
    pub(super) may_be_due: bool,
    /// The time when the next one is due, of those that are known.
    pub(super) next_due: Option<Timestamp>,
}

impl OnDisk {
    /// Notes that a delivery is due then.
    pub(super) fn add(&mut self, due: Timestamp) {
        self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
    }

    fn is_due(self, now: Timestamp) -> bool {
        self.may_be_due || self.next_due.is_some_and(|due| due <= now)
    }
}

/// The lane of one webhook.
#[derive(Debug)]
pub(super) struct Lane {
    first: VecDeque<Item>,
    begun: VecDeque<Item>,
    pub(super) first_on_disk: OnDisk,
    pub(super) begun_on_disk: OnDisk,
    /// Deliveries that are in memory: in the queues, being sent, or with an outcome that is not durable yet.
    taken: HashSet<DeliveryId>,
    /// While the loader reads: deliveries that left `taken` meanwhile, because the loader may still see them.
    released: Option<HashSet<DeliveryId>>,
    pub(super) in_flight: usize,
    /// First attempts at a time.
    allowance: usize,
    /// Whether the last attempt was a success.
    pub(super) is_proven: bool,
    target_failures: u32,
    hold: Option<Hold>,
    /// Nothing is sent before this time: events cannot be read.
    paused_until: Timestamp,
    /// Whether the lane waits for its turn.
    pub(super) is_in_ring: bool,
    /// Whether the webhook was deleted or disabled. Nothing is sent.
    pub(super) is_closed: bool,
}

impl Lane {
    /// Returns the lane of a webhook, with everything on disk.
    pub(super) fn new(target_failures: u32, now: Timestamp) -> Self {
        let may_be_due = OnDisk { may_be_due: true, next_due: None };
        let hold = Hold { interval: PROBE_INTERVAL_MIN, probe_at: now, probe: None };
        Self {
            first: VecDeque::new(),
            begun: VecDeque::new(),
            first_on_disk: may_be_due,
            begun_on_disk: may_be_due,
            taken: HashSet::new(),
            released: None,
            in_flight: 0,
            allowance: CONCURRENCY_START,
            is_proven: false,
            target_failures,
            hold: (target_failures >= TARGET_FAILURES_MAX).then_some(hold),
            paused_until: Timestamp(0),
            is_in_ring: false,
            is_closed: false,
        }
    }

    /// Returns whether first attempts are held back.
    pub(super) fn is_held(&self) -> bool {
        self.hold.is_some()
    }

    /// Adds a delivery that is due, unless it is in memory already.
    pub(super) fn add(&mut self, item: Item) -> bool {
        let id = item.waiting.id;
        let was_released = self.released.as_ref().is_some_and(|released| released.contains(&id));
        if was_released || !self.taken.insert(id) {
            return false;
        }
        let queue = if item.waiting.begun { &mut self.begun } else { &mut self.first };
        queue.push_back(item);
        true
    }

    /// Returns how many deliveries of a kind are queued in memory.
    pub(super) fn queued(&self, begun: bool) -> usize {
        if begun { self.begun.len() } else { self.first.len() }
    }

    /// Returns what is known of the deliveries of a kind on disk.
    pub(super) fn on_disk(&mut self, begun: bool) -> &mut OnDisk {
        if begun { &mut self.begun_on_disk } else { &mut self.first_on_disk }
    }

    /// Returns whether deliveries of a kind should be loaded. Of those that are held back, one is enough.
    pub(super) fn wants(&mut self, begun: bool, now: Timestamp) -> bool {
        let low = if self.is_held() && !begun { 0 } else { LANE_DELIVERIES_LOW };
        !self.is_closed && self.queued(begun) <= low && self.on_disk(begun).is_due(now)
    }

    /// Begins a load: from now on, notes what leaves the memory. Returns what is in memory.
    pub(super) fn begin_load(&mut self) -> HashSet<DeliveryId> {
        self.released = Some(HashSet::new());
        self.taken.clone()
    }

    /// Ends a load.
    pub(super) fn end_load(&mut self) {
        self.released = None;
    }

    /// Returns whether something can be sent now.
    pub(super) fn is_ready(&self, now: Timestamp, concurrency: usize) -> bool {
        self.next_kind(now, concurrency).is_some()
    }

    /// Returns whether a delivery that has begun is next (`true`), a first attempt (`false`), or nothing.
    fn next_kind(&self, now: Timestamp, concurrency: usize) -> Option<bool> {
        if self.is_closed || self.in_flight >= concurrency || now < self.paused_until {
            return None;
        }
        if !self.begun.is_empty() {
            return Some(true);
        }
        let may_begin = match self.hold {
            Some(hold) => hold.probe.is_none() && now >= hold.probe_at,
            None => self.in_flight < self.allowance,
        };
        (may_begin && !self.first.is_empty()).then_some(false)
    }

    /// Takes a delivery to send.
    pub(super) fn take(&mut self, now: Timestamp, concurrency: usize) -> Option<Item> {
        let begun = self.next_kind(now, concurrency)?;
        let item = if begun { self.begun.pop_front() } else { self.first.pop_front() }?;
        if let (false, Some(hold)) = (begun, &mut self.hold) {
            hold.probe = Some(item.waiting.id);
        }
        self.in_flight += 1;
        Some(item)
    }

    /// Ends an attempt. `health` is `None` if no request was sent.
    pub(super) fn finish(
        &mut self,
        id: DeliveryId,
        health: Option<TargetHealth>,
        now: Timestamp,
        concurrency: usize,
    ) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let was_probe = self.hold.is_some_and(|hold| hold.probe == Some(id));
        match health {
            None => {
                if let Some(hold) = self.hold.as_mut().filter(|_| was_probe) {
                    hold.probe = None;
                }
            }
            Some(TargetHealth::Accepted) => {
                self.reset();
                self.is_proven = true;
                self.allowance = (self.allowance * 2).min(concurrency);
            }
            Some(TargetHealth::Refused) => self.reset(),
            Some(TargetHealth::Unavailable) => self.note_unavailable(was_probe, now),
        }
    }

    fn note_unavailable(&mut self, was_probe: bool, now: Timestamp) {
        self.is_proven = false;
        self.allowance = (self.allowance / 2).max(1);
        self.target_failures = self.target_failures.saturating_add(1);
        let held = self.hold;
        if held.is_none() && self.target_failures < TARGET_FAILURES_MAX {
            return;
        }
        let interval = match held {
            Some(hold) if was_probe => (hold.interval * 2).min(PROBE_INTERVAL_MAX),
            Some(hold) => hold.interval,
            None => PROBE_INTERVAL_MIN,
        };
        let probe = held.and_then(|hold| hold.probe).filter(|_| !was_probe);
        let millis = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        self.hold = Some(Hold { interval, probe_at: Timestamp(now.0.saturating_add(millis)), probe });
    }

    /// Forgets failures.
    pub(super) fn reset(&mut self) {
        self.target_failures = 0;
        self.hold = None;
    }

    /// Lets the next probe be made now, if first attempts are held back.
    pub(super) fn probe_now(&mut self, now: Timestamp) {
        if let Some(hold) = &mut self.hold {
            hold.probe_at = now;
        }
    }

    /// Sends nothing until then: events cannot be read.
    pub(super) fn pause(&mut self, until: Timestamp) {
        self.paused_until = until;
    }

    /// Forgets a delivery that is not in the queues: its outcome is durable, or it is to be loaded again.
    pub(super) fn release(&mut self, id: DeliveryId) {
        if self.taken.remove(&id)
            && let Some(released) = &mut self.released
        {
            released.insert(id);
        }
    }

    /// Empties the queues. What was in them is on disk. Returns how many events were in memory.
    pub(super) fn clear(&mut self) -> usize {
        let items: Vec<Item> = self.first.drain(..).chain(self.begun.drain(..)).collect();
        items.iter().for_each(|item| self.release(item.waiting.id));
        items.iter().filter(|item| item.event.is_some()).count()
    }

    /// Returns when the lane wants to be looked at again, if it waits for a time.
    pub(super) fn timer(&self, now: Timestamp) -> Option<Timestamp> {
        if self.is_closed {
            return None;
        }
        let probe = self.hold.filter(|_| !self.first.is_empty()).map(|hold| hold.probe_at);
        let dues = [self.begun_on_disk.next_due, self.first_on_disk.next_due, probe, Some(self.paused_until)];
        dues.into_iter().flatten().filter(|due| *due > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::{Item, Lane, TargetHealth};
    use crate::id::{DeliveryId, WebhookId};
    use crate::store::Waiting;
    use cairn_engine::{EventType, Tick};
    use cairn_model::Timestamp;

    const CONCURRENCY: usize = 8;

    fn item(number: u8, begun: bool) -> Item {
        let waiting = Waiting {
            id: DeliveryId::new(Tick(1 << 50), [number; 8]),
            webhook: WebhookId([1; 16]),
            kind: EventType::ObjectCreated,
            queued_at: Timestamp(1),
            due: Timestamp(1),
            begun,
            attempts: u8::from(begun),
            redelivery: false,
        };
        Item { waiting, event: None }
    }

    fn lane(first: u8) -> Lane {
        let mut lane = Lane::new(0, Timestamp(0));
        (0..first).for_each(|number| assert!(lane.add(item(number, false))));
        lane
    }

    /// Makes one attempt. Returns whether there was something to send.
    fn attempt(lane: &mut Lane, health: TargetHealth, now: Timestamp) -> bool {
        let Some(taken) = lane.take(now, CONCURRENCY) else { return false };
        lane.finish(taken.waiting.id, Some(health), now, CONCURRENCY);
        true
    }

    #[test]
    fn requests_at_a_time_double_with_each_success() {
        let mut lane = lane(100);
        let at_a_time = |lane: &mut Lane| {
            let taken: Vec<_> = std::iter::from_fn(|| lane.take(Timestamp(0), CONCURRENCY)).collect();
            taken.iter().for_each(|item| lane.finish(item.waiting.id, None, Timestamp(0), CONCURRENCY));
            taken.len()
        };
        let mut seen = vec![at_a_time(&mut lane)];
        for _ in 0..3 {
            assert!(attempt(&mut lane, TargetHealth::Accepted, Timestamp(0)));
            seen.push(at_a_time(&mut lane));
        }
        assert!(attempt(&mut lane, TargetHealth::Unavailable, Timestamp(0)));
        seen.push(at_a_time(&mut lane));
        assert_eq!(seen, [2, 4, 8, 8, 4]);
    }

    #[test]
    fn probes_of_a_target_that_is_away_come_at_growing_intervals() {
        let mut lane = lane(100);
        let mut now = 0;
        while !lane.is_held() {
            assert!(attempt(&mut lane, TargetHealth::Unavailable, Timestamp(now)));
        }
        let mut waits = Vec::new();
        for _ in 0..8 {
            let begin = now;
            while !attempt(&mut lane, TargetHealth::Unavailable, Timestamp(now)) {
                now += 1000;
            }
            waits.push((now - begin) / 1000);
        }
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(lane.timer(Timestamp(now)), Some(Timestamp(now + 300_000)));
        while !attempt(&mut lane, TargetHealth::Accepted, Timestamp(now)) {
            now += 1000;
        }
        assert!(!lane.is_held() && attempt(&mut lane, TargetHealth::Accepted, Timestamp(now)));
    }

    #[test]
    fn only_one_probe_is_made_at_a_time_and_deliveries_that_have_begun_are_not_held_back() {
        let mut lane = lane(100);
        while attempt(&mut lane, TargetHealth::Unavailable, Timestamp(0)) {}
        assert!(lane.is_held());
        let now = Timestamp(5000);
        let probe = lane.take(now, CONCURRENCY).expect("a probe");
        assert!(lane.take(now, CONCURRENCY).is_none());
        lane.add(item(200, true));
        lane.add(item(201, true));
        let begun = lane.take(now, CONCURRENCY).expect("it has begun");
        assert!(begun.waiting.begun);
        // Its failure says what the probe would say, and does not lengthen the interval.
        lane.finish(begun.waiting.id, Some(TargetHealth::Unavailable), now, CONCURRENCY);
        lane.finish(probe.waiting.id, None, now, CONCURRENCY);
        let begun = lane.take(now, CONCURRENCY).expect("it has begun");
        assert!(lane.take(now, CONCURRENCY).is_none(), "the next probe comes later");
        lane.finish(begun.waiting.id, Some(TargetHealth::Accepted), now, CONCURRENCY);
        assert!(!lane.is_held() && lane.take(now, CONCURRENCY).is_some());
    }

    /// The loader had read a delivery from disk, and added it after its outcome had become durable. It was sent twice.
    #[test]
    fn a_delivery_that_ends_while_the_loader_reads_is_not_added_again() {
        let mut lane = lane(1);
        let taken = lane.take(Timestamp(0), CONCURRENCY).expect("a delivery");
        assert!(!lane.add(taken.clone()), "it is in memory");
        lane.begin_load();
        lane.finish(taken.waiting.id, Some(TargetHealth::Accepted), Timestamp(0), CONCURRENCY);
        lane.release(taken.waiting.id);
        assert!(!lane.add(taken.clone()), "the loader has read it before");
        lane.end_load();
        assert!(lane.add(taken), "a later load sees what is on disk then");
    }
}
