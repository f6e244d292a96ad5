//! The open requests of a port that nobody has signed.
//!
//! They are limited, so that most connections are left for others. Whoever sends them, such as a visitor of a link, needs no
//! account, and may receive the response slowly. When as many as may are open, a new one takes the place of another: of the
//! client with the most of them, the one whose response is received most slowly. So a flood replaces its own. Signed requests
//! do not come here.
//!
//! The table is shared by all executors. Its lock is taken when an unsigned request begins and ends. The search for the next
//! ones to end looks at all of them, once per [`UNSIGNED_CANDIDATES_MAX`] that are ended.
//!
//! Invariant: a request that was told to end is no longer counted. It ends as soon as its task runs.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use cairn_model::client_network;
use cairn_sync::Mutex;
use futures_channel::oneshot;

use crate::limits::{UNSIGNED_CANDIDATES_MAX, UNSIGNED_RATE_PERIOD};

/// The open unsigned requests of a port. Clones share them.
#[derive(Clone, Default, Debug)]
pub(crate) struct UnsignedRequests(Arc<Mutex<Table>>);

#[derive(Default, Debug)]
struct Table {
    requests: HashMap<u64, Entry>,
    /// The number of them that each client has; never 0.
    of_clients: HashMap<IpAddr, usize>,
    next_id: u64,
    /// The next ones to end, as of the last search.
    candidates: VecDeque<u64>,
    /// A candidate is ended only while its client has at least this many.
    least_of_client: usize,
}

#[derive(Debug)]
struct Entry {
    client: IpAddr,
    begun: Instant,
    sent: Arc<AtomicU64>,
    end: oneshot::Sender<()>,
}

/// An open unsigned request. It counts until it is dropped, or told to end.
#[derive(Debug)]
pub(crate) struct UnsignedRequest {
    requests: UnsignedRequests,
    id: u64,
    /// The counter of the response's bytes that the socket took.
    pub(crate) sent: Arc<AtomicU64>,
    /// Ready when the request must end, to make room for another one.
    pub(crate) end: oneshot::Receiver<()>,
    /// Whether another one was told to end for this one.
    pub(crate) has_replaced: bool,
}

impl UnsignedRequests {
    /// Counts a request that begins. If `max` are open, another one is told to end.
    pub(crate) fn begin(&self, peer: IpAddr, max: usize) -> UnsignedRequest {
        let client = client_network(peer);
        let sent = Arc::<AtomicU64>::default();
        let (sender, end) = oneshot::channel();
        let mut table = self.0.lock();
        let has_replaced = table.requests.len() >= max.max(1) && table.end_next();
        let id = table.next_id;
        table.next_id += 1;
        let entry = Entry { client, begun: Instant::now(), sent: Arc::clone(&sent), end: sender };
        table.requests.insert(id, entry);
        *table.of_clients.entry(client).or_default() += 1;
        drop(table);
        UnsignedRequest { requests: self.clone(), id, sent, end, has_replaced }
    }
}

impl Table {
    fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.requests.remove(&id)?;
        let count = self.of_clients.get_mut(&entry.client).expect("a client with a request is in the table");
        *count -= 1;
        if *count == 0 {
            self.of_clients.remove(&entry.client);
        }
        Some(entry)
    }

    /// Tells the next request to end. Returns whether there is one.
    fn end_next(&mut self) -> bool {
        let next = self.next_candidate().or_else(|| {
            self.find_candidates();
            self.next_candidate()
        });
        let Some(entry) = next.and_then(|id| self.remove(id)) else { return false };
        // It may have ended in this moment.
        let _ = entry.end.send(());
        true
    }

    fn next_candidate(&mut self) -> Option<u64> {
        while let Some(id) = self.candidates.pop_front() {
            let count = self.requests.get(&id).and_then(|entry| self.of_clients.get(&entry.client));
            if count.is_some_and(|count| *count >= self.least_of_client) {
                return Some(id);
            }
        }
        None
    }

    /// Finds the slowest requests of the clients with the most. They are candidates until another client has as many.
    fn find_candidates(&mut self) {
        let most = self.of_clients.values().copied().max().unwrap_or(0);
        let clients_with_most = self.of_clients.values().filter(|count| **count == most).count();
        let next_most = self.of_clients.values().copied().filter(|count| *count < most).max().unwrap_or(0);
        self.least_of_client = if clients_with_most == 1 { next_most.max(1) } else { most };
        let now = Instant::now();
        let has_most = |entry: &Entry| self.of_clients.get(&entry.client) == Some(&most);
        let of_them = self.requests.iter().filter(|(_, entry)| has_most(entry));
        let mut found: Vec<_> = of_them.map(|(id, entry)| (entry.speed(now), *id)).collect();
        if found.len() > UNSIGNED_CANDIDATES_MAX {
            found.select_nth_unstable(UNSIGNED_CANDIDATES_MAX);
            found.truncate(UNSIGNED_CANDIDATES_MAX);
        }
        found.sort_unstable();
        self.candidates = found.into_iter().map(|(_, id)| id).collect();
    }
}

impl Entry {
    /// Returns the order of ends: whether the response has just begun and has no rate yet, then its bytes per second.
    fn speed(&self, now: Instant) -> (bool, u64) {
        let open = now.saturating_duration_since(self.begun);
        let seconds = open.max(UNSIGNED_RATE_PERIOD).as_secs_f64();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a rate only decides an order, and is not negative"
        )]
        let rate = (self.sent.load(Ordering::Relaxed) as f64 / seconds) as u64;
        (open < UNSIGNED_RATE_PERIOD, rate)
    }
}

impl Drop for UnsignedRequest {
    fn drop(&mut self) {
        self.requests.0.lock().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(requests: &UnsignedRequests, client: &str, max: usize) -> UnsignedRequest {
        requests.begin(client.parse().expect("an address"), max)
    }

    fn is_ended(request: &mut UnsignedRequest) -> bool {
        request.end.try_recv() == Ok(Some(()))
    }

    /// Makes the request older, so that it has a rate, and sets that.
    fn set_rate(request: &UnsignedRequest, rate: u64) {
        const SECONDS: u32 = 100;
        let mut table = request.requests.0.lock();
        let entry = table.requests.get_mut(&request.id).expect("open");
        let age = UNSIGNED_RATE_PERIOD * SECONDS;
        entry.begun = entry.begun.checked_sub(age).expect("the clock began earlier");
        entry.sent.store(rate * age.as_secs(), Ordering::Relaxed);
    }

    #[test]
    fn the_slowest_request_of_the_client_with_the_most_makes_room() {
        let requests = UnsignedRequests::default();
        let mut visitor = begin(&requests, "192.0.2.1", 10);
        set_rate(&visitor, 1);
        // Two addresses of one network are one client.
        let addresses = ["2001:db8::1", "2001:db8::2"];
        let mut flood: Vec<_> =
            (0..9_u64).map(|number| begin(&requests, addresses[usize::from(number % 2 == 0)], 10)).collect();
        for (request, rate) in flood.iter().zip([50, 20, 90, 10, 40, 80, 30, 70, 60]) {
            set_rate(request, rate);
        }
        let mut new = vec![begin(&requests, "192.0.2.2", 10), begin(&requests, "2001:db8::3", 10)];
        assert!(new.iter().all(|request| request.has_replaced));
        let ended: Vec<_> = flood.iter_mut().map(is_ended).collect();
        assert_eq!(ended, [false, true, false, true, false, false, false, false, false]);
        // Until the clients have the same number. A new request has no rate yet and is not the slowest one.
        new.extend((0..7).map(|_| begin(&requests, "192.0.2.3", 10)));
        assert!(!is_ended(&mut visitor) && !new.iter_mut().any(is_ended));
        drop((visitor, flood, new));
        let table = requests.0.lock();
        assert!(table.requests.is_empty() && table.of_clients.is_empty());
    }

    #[test]
    fn a_flood_from_many_clients_ends_the_slowest_of_all() {
        let requests = UnsignedRequests::default();
        let mut open: Vec<_> =
            (1..=5).map(|number| begin(&requests, &format!("192.0.2.{number}"), 5)).collect();
        for (request, rate) in open.iter().zip([3, 1, 2, 5, 4]) {
            set_rate(request, rate);
        }
        let _new = [begin(&requests, "192.0.2.8", 5), begin(&requests, "192.0.2.9", 5)];
        let ended: Vec<_> = open.iter_mut().map(is_ended).collect();
        assert_eq!(ended, [false, true, true, false, false]);
    }

    #[test]
    fn a_request_that_ends_makes_room_itself() {
        let requests = UnsignedRequests::default();
        let (one, mut other) = (begin(&requests, "192.0.2.1", 2), begin(&requests, "192.0.2.1", 2));
        drop(one);
        assert!(!begin(&requests, "192.0.2.1", 2).has_replaced && !is_ended(&mut other));
    }
}
