//! Admission of server-side copies, fair between clients and other requests.
//!
//! A copy costs its client some hundred bytes and the server as many as the object has, so copies are bounded. At most
//! [`COPIES_MAX`] run at a time, of one client at most [`COPIES_PER_CLIENT_MAX`]. The others wait: each client has a
//! queue of its own, first in first out, and the queues are served in turn. Beyond [`COPIES_WAITING_MAX`], or
//! [`COPIES_WAITING_PER_CLIENT_MAX`] of one client, a copy is refused.
//!
//! A copy moves [`COPY_TURN_BYTES`] in its turn. If others wait then, it goes to the end of its client's queue, so that
//! a few huge copies do not stop all small ones. While other requests arrive, copies rest between their pieces so that
//! all of them together use half of the executor's time at the device; the others are served in between.

use crate::error::EngineError;
use crate::limits::{
    BACKGROUND_BUSY, BACKGROUND_REST_MAX, COPIES_MAX, COPIES_PER_CLIENT_MAX, COPIES_WAITING_MAX,
    COPIES_WAITING_PER_CLIENT_MAX, COPY_PACE_BYTES, COPY_TURN_BYTES, COPY_YIELD_BYTES,
};
use crate::store::activity::Activities;
use futures_channel::oneshot;
use futures_lite::future::yield_now;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// The copies of one executor.
#[derive(Clone, Default)]
pub(crate) struct CopyQueue(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    /// Clients with copies that run or wait.
    clients: HashMap<Rc<str>, Client>,
    /// Clients whose next copy may run as soon as there is room, in the order in which they are served.
    ready: VecDeque<Rc<str>>,
    running: usize,
    waiting: usize,
    /// Numbers waiting copies in order of arrival.
    next: u64,
}

#[derive(Default)]
struct Client {
    running: usize,
    /// Waiting copies, oldest first.
    waiting: BTreeMap<u64, oneshot::Sender<()>>,
    /// Whether the client is in [`State::ready`].
    is_ready: bool,
}

impl State {
    /// Makes the client one of the ready ones if its next copy may run.
    fn update_ready(&mut self, name: &Rc<str>) {
        let Some(client) = self.clients.get_mut(name) else { return };
        let may_run = !client.waiting.is_empty() && client.running < COPIES_PER_CLIENT_MAX;
        if may_run && !client.is_ready {
            client.is_ready = true;
            self.ready.push_back(Rc::clone(name));
        }
        if client.running == 0 && client.waiting.is_empty() {
            assert!(!client.is_ready, "a client is taken out of the ready ones before its last copy leaves");
            self.clients.remove(name);
        }
    }

    /// Lets waiting copies run while there is room: one copy of each ready client in turn.
    fn serve(&mut self) {
        while self.running < COPIES_MAX {
            let Some(name) = self.ready.pop_front() else { return };
            let client = self.clients.get_mut(&name).expect("a ready client has a waiting copy");
            client.is_ready = false;
            let (_, admitted) = client.waiting.pop_first().expect("a ready client has a waiting copy");
            client.running += 1;
            self.waiting -= 1;
            self.running += 1;
            // The receiver cannot be gone: a copy that stops waiting leaves its queue first.
            let sent = admitted.send(());
            assert!(sent.is_ok(), "a waiting copy is in its queue as long as it waits");
            self.update_ready(&name);
        }
    }
}

/// A place among the waiting copies. Dropping it gives up the place, or the admission that it has got meanwhile.
struct Place {
    queue: CopyQueue,
    client: Rc<str>,
    number: u64,
    /// The admission was taken over by a permit.
    is_taken: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        let mut state = self.queue.0.borrow_mut();
        let client = state.clients.get_mut(&self.client).expect("a client stays while it has a place");
        if client.waiting.remove(&self.number).is_none() {
            drop(state);
            self.queue.release(&self.client);
            return;
        }
        if client.waiting.is_empty() && client.is_ready {
            client.is_ready = false;
            state.ready.retain(|ready| *ready != self.client);
        }
        state.waiting -= 1;
        state.update_ready(&self.client);
    }
}

impl CopyQueue {
    /// Waits until a copy of `client` may run. Dropping the future gives up the place.
    ///
    /// # Errors
    /// [`EngineError::Overloaded`] if too many copies wait; at once.
    pub(crate) async fn admit(
        &self,
        client: &str,
        activities: &Arc<Activities>,
    ) -> Result<CopyPermit, EngineError> {
        let client: Rc<str> = client.into();
        {
            let state = self.0.borrow();
            let own = state.clients.get(&client).map_or(0, |found| found.waiting.len());
            if state.waiting >= COPIES_WAITING_MAX || own >= COPIES_WAITING_PER_CLIENT_MAX {
                return Err(EngineError::Overloaded);
            }
        }
        self.wait(&client).await;
        Ok(CopyPermit {
            queue: self.clone(),
            client,
            pace: Pace::new(activities),
            since_turn: 0,
            since_yield: 0,
            is_running: true,
        })
    }

    /// Takes a place at the end of the client's queue and waits until it is served.
    async fn wait(&self, client: &Rc<str>) {
        let (admitted, admission) = oneshot::channel();
        let mut place = {
            let mut state = self.0.borrow_mut();
            let number = state.next;
            state.next += 1;
            state.waiting += 1;
            state.clients.entry(Rc::clone(client)).or_default().waiting.insert(number, admitted);
            state.update_ready(client);
            state.serve();
            Place { queue: self.clone(), client: Rc::clone(client), number, is_taken: false }
        };
        let served = admission.await;
        assert!(served.is_ok(), "only the place itself leaves its queue");
        place.is_taken = true;
    }

    /// Ends a running copy, and lets the next one run.
    fn release(&self, client: &Rc<str>) {
        let mut state = self.0.borrow_mut();
        assert!(state.running > 0, "only running copies end");
        state.running -= 1;
        state.clients.get_mut(client).expect("a client stays while a copy of it runs").running -= 1;
        state.update_ready(client);
        state.serve();
    }

    fn running(&self) -> usize {
        self.0.borrow().running
    }

    fn someone_waits(&self) -> bool {
        !self.0.borrow().ready.is_empty()
    }
}

/// Permission to copy. Dropping it lets the next copy run.
pub struct CopyPermit {
    queue: CopyQueue,
    client: Rc<str>,
    pace: Pace,
    since_turn: usize,
    since_yield: usize,
    /// Whether this copy counts as a running one: not while it waits for its next turn.
    is_running: bool,
}

impl CopyPermit {
    /// Returns whether the copy has to wait for another turn after `bytes` more bytes.
    pub(crate) fn is_at_end_of_turn(&self, bytes: usize) -> bool {
        self.since_turn + bytes >= COPY_TURN_BYTES && self.queue.someone_waits()
    }

    /// Makes room for others after `bytes` bytes were moved: yields, rests, and waits for the next turn. The caller must
    /// hold nothing that others wait for, such as a buffer that is not full.
    pub async fn make_room(&mut self, bytes: usize) {
        let is_at_end_of_turn = self.is_at_end_of_turn(bytes);
        self.since_turn += bytes;
        self.since_yield += bytes;
        if self.since_yield >= COPY_YIELD_BYTES {
            self.since_yield = 0;
            yield_now().await;
        }
        self.pace.rest(bytes, self.queue.running()).await;
        if is_at_end_of_turn {
            self.since_turn = 0;
            self.is_running = false;
            self.queue.release(&self.client);
            self.queue.wait(&self.client).await;
            self.is_running = true;
        }
    }
}

impl Drop for CopyPermit {
    fn drop(&mut self) {
        if self.is_running {
            self.queue.release(&self.client);
        }
    }
}

/// Rests between the pieces of a copy while other requests arrive.
struct Pace {
    activities: Arc<Activities>,
    /// Number of requests on all executors at the last look.
    requests_seen: u64,
    busy_until: Option<Instant>,
    begun: Instant,
    bytes: usize,
}

impl Pace {
    fn new(activities: &Arc<Activities>) -> Self {
        let (activities, now) = (Arc::clone(activities), Instant::now());
        Self { requests_seen: activities.total(), activities, busy_until: None, begun: now, bytes: 0 }
    }

    /// Rests after `bytes` bytes, as one of `running` copies.
    async fn rest(&mut self, bytes: usize, running: usize) {
        self.bytes += bytes;
        if self.bytes < COPY_PACE_BYTES {
            return;
        }
        let now = Instant::now();
        let requests = self.activities.total();
        if requests != self.requests_seen {
            self.requests_seen = requests;
            self.busy_until = Some(now + BACKGROUND_BUSY);
        }
        if self.busy_until.is_some_and(|until| now < until) {
            // A copy that works for one of 2 n parts of the time: n of them work for half of it.
            let factor = u32::try_from(2 * running - 1).expect("few copies run");
            let rest = now.saturating_duration_since(self.begun) * factor;
            glommio::timer::sleep(rest.min(BACKGROUND_REST_MAX)).await;
        }
        (self.begun, self.bytes) = (Instant::now(), 0);
    }
}

#[cfg(test)]
mod tests;
