//! The lanes of all webhooks, served in round-robin order.
//!
//! Lanes that can send wait in a ring, and each takes one delivery in its turn. So no webhook waits for the backlog of another.
//! Targets whose last attempt did not succeed get at most [`UNPROVEN_MAX`] of the threads, so that dead ones do not hold all.

use super::lane::{Item, Lane, TargetHealth};
use crate::id::{DeliveryId, WebhookId};
use crate::limits::{
    DELIVERY_THREAD_IDLE, DELIVERY_THREADS_MAX, EVENTS_IN_MEMORY_MAX, LANE_DELIVERIES_MAX, TIMER_WAIT_MAX,
    UNPROVEN_MAX,
};
use crate::store::{Observer, Recorded, Shared, Waiting};
use cairn_model::Timestamp;
use cairn_sync::{Condvar, Mutex};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The wait of the loader when nothing is due later. It is woken for everything that it has to do.
const TIMER_WAIT_NONE: Duration = Duration::from_secs(3600);

/// A request to the loader: due deliveries of one kind and one webhook.
pub(super) struct Load {
    pub(super) webhook: WebhookId,
    /// Deliveries that have begun, or the others.
    pub(super) begun: bool,
    /// Deliveries that are in memory already.
    pub(super) taken: HashSet<DeliveryId>,
}

#[derive(Default)]
struct State {
    lanes: HashMap<WebhookId, Lane>,
    ring: VecDeque<WebhookId>,
    /// Lanes whose turn it was while too many requests to unproven targets were running.
    parked: VecDeque<WebhookId>,
    in_flight: usize,
    unproven_in_flight: usize,
    threads: usize,
    idle_threads: usize,
    /// Deliveries in the queues that hold their events.
    events: usize,
    is_closed: bool,
    /// Whether the shutdown interrupts attempts. Their failures are not recorded.
    is_interrupted: bool,
    /// Whether the loader should look again.
    wants_load: bool,
}

/// The lanes of all webhooks.
pub(super) struct Lanes {
    shared: Arc<Shared>,
    concurrency: usize,
    state: Mutex<State>,
    /// There is something to send, or the end.
    work: Condvar,
    /// The loader should look.
    load: Condvar,
    /// No attempt is being made.
    quiet: Condvar,
}

/// A delivery to attempt. [`Lanes::finish`] ends it.
pub(super) struct Job {
    pub(super) item: Item,
    is_unproven: bool,
}

impl Lanes {
    /// Makes a lane for each webhook.
    pub(super) fn new(shared: &Arc<Shared>, concurrency: usize) -> Self {
        let now = shared.clock.now();
        let mut state = State::default();
        for (id, webhook) in &shared.state().webhooks {
            let mut lane = Lane::new(webhook.health.target_failures, now);
            lane.is_closed = !webhook.record.settings.enabled;
            state.lanes.insert(*id, lane);
        }
        Self {
            shared: Arc::clone(shared),
            concurrency: concurrency.clamp(1, DELIVERY_THREADS_MAX),
            state: Mutex::new(state),
            work: Condvar::new(),
            load: Condvar::new(),
            quiet: Condvar::new(),
        }
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Adds deliveries that have just become durable. Those without room are loaded later.
    pub(super) fn add(&self, items: Vec<Item>) {
        let now = self.now();
        let mut state = self.state.lock();
        for item in items {
            let State { lanes, events, .. } = &mut *state;
            let Waiting { webhook, begun, .. } = item.waiting;
            let Some(lane) = lanes.get_mut(&webhook) else { continue };
            let has_room = lane.queued(begun) < LANE_DELIVERIES_MAX
                && *events < EVENTS_IN_MEMORY_MAX
                && !lane.is_closed
                && !lane.on_disk(begun).may_be_due;
            if has_room {
                let has_event = usize::from(item.event.is_some());
                *events += if lane.add(item) { has_event } else { 0 };
            } else {
                lane.on_disk(begun).may_be_due = true;
            }
            state.refresh(webhook, now, self.concurrency);
        }
        self.wake(&state);
    }

    /// Wakes as many threads as have something to do.
    fn wake(&self, state: &State) {
        if state.idle_threads > 0 && !state.ring.is_empty() {
            self.work.notify_all();
        }
        if state.wants_load {
            self.load.notify_one();
        }
    }

    /// Returns whether another delivery thread is needed, and counts it.
    pub(super) fn needs_thread(&self) -> bool {
        let mut state = self.state.lock();
        let is_needed = state.lacks_thread() && !state.is_closed;
        state.threads += usize::from(is_needed);
        is_needed
    }

    /// Notes that a delivery thread has ended.
    pub(super) fn thread_ended(&self) {
        self.state.lock().threads -= 1;
    }

    /// Waits for a delivery to attempt. Returns `None` when there is none for a while, and at the end.
    pub(super) fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        let deadline = Instant::now() + DELIVERY_THREAD_IDLE;
        loop {
            if state.is_closed {
                return None;
            }
            let job = state.take(self.now(), self.concurrency);
            if job.is_some() {
                if state.wants_load {
                    self.load.notify_one();
                }
                return job;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state.idle_threads += 1;
            state = self.work.wait_timeout(state, left);
            state.idle_threads -= 1;
        }
    }

    /// Ends an attempt. `health` is `None` if no request was sent.
    pub(super) fn finish(&self, job: &Job, health: Option<TargetHealth>) {
        let now = self.now();
        let Waiting { webhook, id, .. } = job.item.waiting;
        let mut state = self.state.lock();
        state.in_flight -= 1;
        if job.is_unproven {
            state.unproven_in_flight -= 1;
            let parked = std::mem::take(&mut state.parked);
            state.ring.extend(parked);
        }
        if let Some(lane) = state.lanes.get_mut(&webhook) {
            lane.finish(id, health, now, self.concurrency);
            state.refresh(webhook, now, self.concurrency);
        }
        if state.in_flight == 0 {
            self.quiet.notify_all();
        }
        self.wake(&state);
    }

    /// Gives back a delivery whose event could not be read, or that is not wanted now. It stays on disk.
    pub(super) fn give_back(&self, webhook: WebhookId, id: DeliveryId, pause: Duration) {
        let now = self.now();
        let mut state = self.state.lock();
        if let Some(lane) = state.lanes.get_mut(&webhook) {
            lane.release(id);
            lane.first_on_disk.may_be_due = true;
            lane.begun_on_disk.may_be_due = true;
            if !pause.is_zero() {
                lane.pause(after(now, pause));
            }
            state.refresh(webhook, now, self.concurrency);
            self.wake(&state);
        }
    }

    /// Lets held-back first attempts of a webhook be probed now.
    pub(super) fn probe_now(&self, webhook: WebhookId) {
        let now = self.now();
        let mut state = self.state.lock();
        if let Some(lane) = state.lanes.get_mut(&webhook) {
            lane.probe_now(now);
            state.refresh(webhook, now, self.concurrency);
            self.wake(&state);
        }
    }

    /// Forgets that a target was away: what was held back is sent now. If the target is still away, it is held back again.
    pub(super) fn resume(&self, webhook: WebhookId) {
        let now = self.now();
        let mut state = self.state.lock();
        if let Some(lane) = state.lanes.get_mut(&webhook) {
            lane.reset();
            state.refresh(webhook, now, self.concurrency);
            self.wake(&state);
        }
    }

    /// Returns whether first attempts of a webhook are held back.
    pub(super) fn is_held(&self, webhook: WebhookId) -> bool {
        self.state.lock().lanes.get(&webhook).is_some_and(Lane::is_held)
    }

    /// Returns whether the shutdown interrupts attempts, so that their failures are not recorded.
    pub(super) fn is_interrupted(&self) -> bool {
        self.state.lock().is_interrupted
    }

    /// Returns the number of attempts that are being made.
    pub(super) fn in_flight(&self) -> usize {
        self.state.lock().in_flight
    }

    /// Waits until something is to be loaded, and returns it, or until a thread is needed. Returns `None` at the end.
    pub(super) fn next_loads(&self) -> Option<Vec<Load>> {
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return None;
            }
            let now = self.now();
            let loads = state.loads(now, self.concurrency);
            // Everything that could be loaded has just been looked at.
            state.wants_load = false;
            self.wake(&state);
            if !loads.is_empty() || state.lacks_thread() {
                return Some(loads);
            }
            let timer = state.lanes.values().filter_map(|lane| lane.timer(now)).min();
            let wait =
                timer.map_or(TIMER_WAIT_NONE, |due| Duration::from_millis(due.0 - now.0).min(TIMER_WAIT_MAX));
            let is_idle = |state: &mut State| !state.wants_load && !state.is_closed;
            state = self.load.wait_timeout_while(state, wait, is_idle);
        }
    }

    /// Adds what the loader has read. `next_due` is the due time of the first delivery that is not due yet, and `is_cut` says
    /// that more were due than it has read.
    pub(super) fn loaded(&self, load: &Load, found: Vec<Waiting>, next_due: Option<Timestamp>, is_cut: bool) {
        let (now, &Load { webhook, begun, .. }) = (self.now(), load);
        let mut state = self.state.lock();
        let Some(lane) = state.lanes.get_mut(&webhook) else { return };
        for waiting in found {
            if lane.queued(begun) < LANE_DELIVERIES_MAX {
                lane.add(Item { waiting, event: None });
            } else {
                lane.on_disk(begun).may_be_due = true;
            }
        }
        let on_disk = lane.on_disk(begun);
        on_disk.may_be_due |= is_cut;
        next_due.into_iter().for_each(|due| on_disk.add(due));
        lane.end_load();
        state.refresh(webhook, now, self.concurrency);
        self.wake(&state);
    }

    /// Refuses further work. Attempts that are being made go on.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.work.notify_all();
        self.load.notify_all();
    }

    /// From now on, failed attempts are not recorded: the shutdown interrupts them.
    pub(super) fn interrupt(&self) {
        self.state.lock().is_interrupted = true;
    }

    /// Waits until no attempt is being made, at most for `limit`. Returns whether that is so.
    pub(super) fn wait_quiet(&self, limit: Duration) -> bool {
        self.quiet.wait_timeout_while(self.state.lock(), limit, |state| state.in_flight > 0).in_flight == 0
    }
}

fn after(now: Timestamp, wait: Duration) -> Timestamp {
    Timestamp(now.0.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)))
}

impl State {
    /// Returns whether there is something to send and no thread for it.
    fn lacks_thread(&self) -> bool {
        !self.ring.is_empty() && self.idle_threads == 0 && self.threads < DELIVERY_THREADS_MAX
    }

    /// Puts a lane into the ring if it can send something, and lets the loader look if it wants more or waits for a time.
    fn refresh(&mut self, webhook: WebhookId, now: Timestamp, concurrency: usize) {
        let Some(lane) = self.lanes.get_mut(&webhook) else { return };
        self.wants_load |= lane.wants(true, now) || lane.wants(false, now) || lane.timer(now).is_some();
        if !lane.is_in_ring && lane.is_ready(now, concurrency) {
            lane.is_in_ring = true;
            self.ring.push_back(webhook);
        }
    }

    /// Takes a delivery of the lane whose turn it is.
    fn take(&mut self, now: Timestamp, concurrency: usize) -> Option<Job> {
        while let Some(webhook) = self.ring.pop_front() {
            let Some(lane) = self.lanes.get_mut(&webhook) else { continue };
            let is_unproven = !lane.is_proven;
            if is_unproven && self.unproven_in_flight >= UNPROVEN_MAX {
                self.parked.push_back(webhook);
                continue;
            }
            lane.is_in_ring = false;
            let taken = lane.take(now, concurrency);
            self.refresh(webhook, now, concurrency);
            if let Some(item) = taken {
                self.in_flight += 1;
                self.unproven_in_flight += usize::from(is_unproven);
                self.events -= usize::from(item.event.is_some());
                return Some(Job { item, is_unproven });
            }
        }
        None
    }

    /// Returns what should be loaded, and begins these loads. Also looks at timers that have ended.
    fn loads(&mut self, now: Timestamp, concurrency: usize) -> Vec<Load> {
        let mut loads = Vec::new();
        let mut ready = Vec::new();
        for (webhook, lane) in &mut self.lanes {
            for begun in [true, false] {
                if lane.wants(begun, now) {
                    *lane.on_disk(begun) = super::lane::OnDisk::default();
                    loads.push(Load { webhook: *webhook, begun, taken: lane.begin_load() });
                    break;
                }
            }
            ready.extend(lane.is_ready(now, concurrency).then_some(*webhook));
        }
        ready.into_iter().for_each(|webhook| self.refresh(webhook, now, concurrency));
        loads
    }
}

impl Observer for Lanes {
    fn recorded(&self, outcomes: &[Recorded]) {
        let mut state = self.state.lock();
        for outcome in outcomes {
            if let Some(lane) = state.lanes.get_mut(&outcome.webhook) {
                lane.release(outcome.id);
                outcome.next.into_iter().for_each(|due| lane.begun_on_disk.add(due));
                state.wants_load |= outcome.next.is_some();
            }
        }
        if state.wants_load {
            self.load.notify_one();
        }
    }

    fn changed(&self, webhook: WebhookId) {
        let now = self.now();
        let found = self.shared.webhook(webhook);
        let mut state = self.state.lock();
        let State { lanes, events, .. } = &mut *state;
        let lane = lanes.entry(webhook).or_insert_with(|| Lane::new(0, now));
        *events -= lane.clear();
        lane.first_on_disk.may_be_due = true;
        lane.begun_on_disk.may_be_due = true;
        match &found {
            Some(found) => {
                lane.is_closed = !found.record.settings.enabled;
                if found.health.consecutive_failures == 0 && found.health.target_failures == 0 {
                    lane.reset();
                }
            }
            None => drop(lanes.remove(&webhook)),
        }
        state.wants_load = true;
        self.load.notify_one();
    }

    fn failed(&self) {
        self.close();
    }
}
